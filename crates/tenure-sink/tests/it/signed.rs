//! A sink that seals signed grants alone, without a network.

use crate::{id, token};
use std::collections::BTreeSet;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{SinkId, StoreIdentity, Token};
use tenure_grant::{PublicKeys, Signer, SigningKey, Verifier};
use tenure_sink::conformance::answered;
use tenure_sink::{SignedOnly, Sink, SinkError, SqliteSink};

struct Stage {
    _folder: tempfile::TempDir,
    sink: SignedOnly<SqliteSink>,
    signer: Signer,
}

impl Stage {
    fn new(rule: Rule) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = SigningKey::generate().unwrap();
        let verifier = Verifier::new(PublicKeys::new([key.public().clone()]));
        let sink = SqliteSink::create(folder.path().join("shop.sqlite"), id(), rule).unwrap();
        let signer = Signer::of_key(key, StoreIdentity::new("prod").unwrap());
        Self { _folder: folder, sink: SignedOnly::new(sink, verifier), signer }
    }

    fn seal(&self, signed: Option<&str>, token: &Token, enrolled: &BTreeSet<SinkId>) -> Result<Sealing, SinkError> {
        let generation = answered(self.sink.describe(&token.resource)).unwrap().generation;
        match signed {
            Some(signed) => answered(self.sink.seal_signed(signed, token, &generation, enrolled)),
            None => answered(self.sink.seal(token, &generation, enrolled)),
        }
    }
}

fn sinks(names: &[&str]) -> BTreeSet<SinkId> {
    names.iter().map(|name| SinkId::new(name).unwrap()).collect()
}

#[test]
fn only_the_grant_that_was_signed_for_this_sink_and_these_receivers_is_sealed() {
    let stage = Stage::new(Rule::Sealed);
    assert!(stage.sink.asks_signature());
    let (mine, other) = (token(3), token(4));
    let all = sinks(&["sink", "files"]);
    let sign = |token: &Token, sinks: &BTreeSet<SinkId>| stage.signer.sign(token, sinks).unwrap().as_str().to_owned();
    let refusals = [
        (None, "not signed"),
        (Some(String::new()), "parts instead of three"),
        (Some(sign(&other, &all)), "epoch is wrong"),
        (Some(sign(&mine, &sinks(&["files"]))), "not for the receiver \"sink\""),
        (Some(sign(&mine, &sinks(&["sink"]))), "the receiver files would be enrolled"),
    ];
    for (signed, says) in refusals {
        let error = stage.seal(signed.as_deref(), &mine, &all).unwrap_err();
        assert!(matches!(error, SinkError::Unverified { .. }) && !error.is_transient(), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(answered(stage.sink.describe(&mine.resource)).unwrap().row, None, "the fence has moved");
    }
    let sealed = stage.seal(Some(&sign(&mine, &all)), &mine, &all).unwrap();
    assert!(matches!(&sealed, Sealing::Seal(row) if row.enrolled == all), "{sealed:?}");
    // A signature says that it was granted, and not whose turn it is.
    let late = stage.seal(Some(&sign(&token(2), &all)), &token(2), &all).unwrap();
    assert_eq!(late, Sealing::Stale { epoch: mine.epoch, grant: mine.grant });
}

#[test]
fn a_high_water_sink_asks_for_none_and_is_never_sealed() {
    let stage = Stage::new(Rule::HighWater);
    assert!(!stage.sink.asks_signature());
    assert!(matches!(stage.seal(None, &token(1), &sinks(&[])), Err(SinkError::NeverSealed { .. })));
    let signed = stage.signer.sign(&token(1), &sinks(&["sink"])).unwrap();
    assert!(matches!(stage.seal(Some(signed.as_str()), &token(1), &sinks(&[])), Err(SinkError::NeverSealed { .. })));
}
