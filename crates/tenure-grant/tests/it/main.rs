//! Signed grants: what is accepted, what is refused and how, and that others can verify them.

#![expect(clippy::unwrap_used, reason = "in a test, that is how to fail")]

mod hostile;
mod page;
mod python;
mod rotation;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tenure_core::{Epoch, GrantId, ResourceName, SinkId, StoreIdentity, Token};
use tenure_grant::{PublicKeys, SignedGrant, Signer, SigningKey, Verifier, WallClock};

const NOW: u64 = 1_800_000_000;

/// A signer and a verifier, each with a clock of its own.
struct Pair {
    signer: Signer,
    verifier: Verifier,
    signers_time: Arc<AtomicU64>,
    verifiers_time: Arc<AtomicU64>,
}

impl Pair {
    fn new() -> Self {
        let [signers_time, verifiers_time] = [(); 2].map(|()| Arc::new(AtomicU64::new(NOW)));
        let key = SigningKey::generate().unwrap();
        let keys = PublicKeys::new([key.public().clone()]);
        Self {
            signer: Signer::of_key(key, authority("prod")).with_clock(WallClock::Manual(Arc::clone(&signers_time))),
            verifier: Verifier::new(keys).with_clock(WallClock::Manual(Arc::clone(&verifiers_time))),
            signers_time,
            verifiers_time,
        }
    }

    fn sign(&self, token: &Token) -> SignedGrant {
        self.signer.sign(token, &sinks(&["shop", "files"])).unwrap()
    }
}

fn authority(name: &str) -> StoreIdentity {
    StoreIdentity::new(name).unwrap()
}

fn token(resource: &str, epoch: u64) -> Token {
    Token {
        resource: ResourceName::new(resource).unwrap(),
        epoch: Epoch::new(epoch).unwrap(),
        grant: GrantId::from_bits(u128::from(epoch) << 64 | 7),
    }
}

fn sink(name: &str) -> SinkId {
    SinkId::new(name).unwrap()
}

fn sinks(names: &[&str]) -> BTreeSet<SinkId> {
    names.iter().map(|name| sink(name)).collect()
}
