//! Keys that change while receivers verify.

use crate::{NOW, authority, sinks, token};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tenure_grant::{KeyFolder, PublicKeys, Signer, Verifier, VerifyError, WallClock};

struct Stage {
    outer: tempfile::TempDir,
    time: Arc<AtomicU64>,
}

impl Stage {
    fn new() -> Self {
        Self { outer: tempfile::tempdir().unwrap(), time: Arc::new(AtomicU64::new(NOW)) }
    }

    fn clock(&self) -> WallClock {
        WallClock::Manual(Arc::clone(&self.time))
    }

    fn folder(&self) -> KeyFolder {
        KeyFolder::new(self.outer.path().join("keys")).with_clock(self.clock())
    }

    fn signer(&self) -> Signer {
        Signer::of_folder(self.folder(), authority("prod")).with_clock(self.clock())
    }

    /// As an operator hands the keys out.
    fn export(&self) -> std::path::PathBuf {
        let path = self.outer.path().join("jwks.json");
        self.folder().make().unwrap();
        std::fs::write(&path, self.folder().public_keys().unwrap().to_json()).unwrap();
        path
    }
}

#[test]
fn a_rotation_is_not_noticed_by_receivers_whose_copy_is_older() {
    let stage = Stage::new();
    let signer = stage.signer();
    let verifier = Verifier::of_file(stage.export()).with_clock(stage.clock());
    let before = signer.sign(&token("r", 1), &sinks(&["shop"])).unwrap();
    stage.folder().rotate().unwrap();
    // The signer was made before, and signs with the new key all the same.
    let after = signer.sign(&token("r", 2), &sinks(&["shop"])).unwrap();
    for (signed, epoch) in [(&before, 1), (&after, 2)] {
        assert_eq!(verifier.verify(signed.as_str()).unwrap().token, token("r", epoch));
    }
    // A second one before the copy was renewed is too much, and the message says what to do.
    stage.folder().rotate().unwrap();
    let newer = signer.sign(&token("r", 3), &sinks(&["shop"])).unwrap();
    let error = verifier.verify(newer.as_str()).unwrap_err();
    assert!(matches!(error, VerifyError::UnknownKey { .. }), "{error}");
    assert!(error.to_string().contains("tenure keys export"), "{error}");
    stage.export();
    assert_eq!(verifier.verify(newer.as_str()).unwrap().token, token("r", 3));
}

#[test]
fn a_retired_key_counts_until_its_last_signature_has_expired_and_no_longer() {
    let stage = Stage::new();
    let verifier = Verifier::of_folder(stage.folder()).with_clock(stage.clock());
    let old = stage.folder().make().unwrap()[0].id.clone();
    let signed = stage.signer().sign(&token("r", 1), &sinks(&["shop"])).unwrap();
    stage.folder().rotate().unwrap();
    stage.time.fetch_add(tenure_grant::LIFETIME.as_secs() - 1, Ordering::AcqRel);
    verifier.verify(signed.as_str()).unwrap();
    stage.time.fetch_add(1, Ordering::AcqRel);
    assert!(matches!(verifier.verify(signed.as_str()), Err(VerifyError::Expired { .. })));
    stage.time.fetch_add(tenure_grant::ALLOWANCE.as_secs(), Ordering::AcqRel);
    // By now whoever has stolen it can sign what he likes.
    assert_eq!(verifier.verify(signed.as_str()), Err(VerifyError::UnknownKey { key: old }));
}

#[test]
fn a_key_that_was_taken_out_counts_no_more_also_for_who_has_read_it_before() {
    let stage = Stage::new();
    let verifier = Verifier::of_folder(stage.folder()).with_clock(stage.clock());
    let stolen = stage.folder().make().unwrap()[0].id.clone();
    let signed = stage.signer().sign(&token("r", 1), &sinks(&["shop"])).unwrap();
    verifier.verify(signed.as_str()).unwrap();
    stage.folder().rotate().unwrap();
    stage.folder().remove(&stolen, true).unwrap();
    assert_eq!(verifier.verify(signed.as_str()), Err(VerifyError::UnknownKey { key: stolen }));
}

#[test]
fn keys_that_cannot_be_read_are_the_receivers_own_fault() {
    let stage = Stage::new();
    let signed = stage.signer().sign(&token("r", 1), &sinks(&["shop"])).unwrap();
    let path = stage.outer.path().join("none.json");
    let error = Verifier::of_file(&path).verify(signed.as_str()).unwrap_err();
    assert!(error.is_receivers() && error.to_string().contains("none.json"), "{error}");
    // Somebody has put the private file there.
    let error = Verifier::of_file(stage.outer.path().join("keys/keys.json")).verify(signed.as_str()).unwrap_err();
    assert!(error.is_receivers() && error.to_string().contains("private key"), "{error}");
    assert_eq!(Verifier::new(PublicKeys::default()).verify(signed.as_str()).unwrap_err().name(), "unknown-key");
}
