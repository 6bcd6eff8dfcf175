//! Receivers that ask for a signature, and holders that sign.

use crate::receivers::{Receivers, id};
use crate::stage::{RESOURCE, Stage};
use std::sync::Arc;
use std::time::Duration;
use tenure::grant::{KeyFolder, Verifier};
use tenure::sink::{SignedOnly, Sink, SqliteSink};
use tenure::{AcquireError, SigningError, Tenure, Verdict};

const NOW: Duration = Duration::ZERO;

struct Site {
    stage: Stage,
    receivers: Receivers,
}

impl Site {
    fn new() -> Self {
        Self { stage: Stage::new(), receivers: Receivers::new() }
    }

    fn keys(&self) -> std::path::PathBuf {
        self.receivers.path("keys")
    }

    async fn worker(&self, keys: Option<&str>) -> Tenure {
        let builder = Tenure::builder().owner("a").clock(self.stage.clock());
        let builder = match keys {
            Some(keys) => builder.keys(self.receivers.path(keys)),
            None => builder,
        };
        builder.over(self.stage.store()).await.unwrap()
    }

    fn shop(&self) -> Arc<SignedOnly<SqliteSink>> {
        let verifier = Verifier::of_folder(KeyFolder::new(self.keys()));
        Arc::new(SignedOnly::new(self.receivers.sqlite(), verifier))
    }
}

#[tokio::test]
async fn a_holder_with_keys_seals_a_receiver_that_asks_for_a_signature() {
    let site = Site::new();
    let worker = site.worker(Some("keys")).await;
    assert!(!site.keys().exists(), "no key is made before one is needed");
    let lease = worker.acquire(RESOURCE).sink(site.shop()).sink(Arc::new(site.receivers.files())).await.unwrap();
    assert_eq!(site.receivers.write(lease.token()), Verdict::Written);
    // Named are all receivers that are enrolled with it.
    let signed = lease.signed().unwrap();
    let claims = Verifier::of_folder(KeyFolder::new(site.keys())).verify(signed.as_str()).unwrap();
    assert_eq!((&claims.token, claims.sinks.len()), (lease.token(), 2));
    assert_eq!(claims.authority.as_str(), site.stage.identity().await);
    // Sealed again in another generation, it is signed again, with the key of then.
    KeyFolder::new(site.keys()).rotate().unwrap();
    site.receivers.sqlite().reopen().await.unwrap();
    lease.heed(&id("shop"), &Verdict::Unsealed).await.unwrap();
    assert_eq!(site.receivers.write(lease.token()), Verdict::Written);
    lease.release().await.unwrap();
    let next = worker.acquire(RESOURCE).sink(site.shop()).sink(Arc::new(site.receivers.files())).await.unwrap();
    assert_eq!(next.epoch().get(), 2);
}

#[tokio::test]
async fn without_the_right_keys_nothing_is_sealed_and_the_grant_is_given_back() {
    let site = Site::new();
    // The receiver knows the keys of this folder.
    KeyFolder::new(site.keys()).make().unwrap();
    for (keys, says) in [(None, "Builder::keys"), (Some("others"), "not known here")] {
        let worker = site.worker(keys).await;
        let error = worker.acquire(RESOURCE).sink(site.shop()).wait(NOW).await.unwrap_err();
        assert!(matches!(error, AcquireError::Sink { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        site.stage.until("the grant is given back", async || !site.stage.is_held().await).await;
        let token = tenure::ResourceName::new(RESOURCE).unwrap();
        assert_eq!(site.receivers.sqlite().describe(&token).await.unwrap().row, None);
    }
}

#[tokio::test]
async fn keys_that_cannot_be_used_are_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let site = Site::new();
    let keys = KeyFolder::new(site.keys());
    keys.make().unwrap();
    let shop = site.shop();
    std::fs::set_permissions(site.keys().join("keys.json"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let worker = site.worker(Some("keys")).await;
    let error = worker.acquire(RESOURCE).sink(shop).wait(NOW).await.unwrap_err().to_string();
    assert!(error.contains("keys.json can be read by others") && error.contains("chmod 600"), "{error}");
}

#[tokio::test]
async fn a_lost_lease_signs_nothing_more() {
    let site = Site::new();
    let worker = site.worker(Some("keys")).await;
    let lease = worker.acquire(RESOURCE).await.unwrap();
    lease.signed().unwrap();
    site.stage.advance(crate::stage::TTL);
    let error = lease.signed().unwrap_err();
    assert!(matches!(error, SigningError::Lost(_)), "{error}");
    let without = site.worker(None).await.acquire("other").await.unwrap();
    assert!(matches!(without.signed(), Err(SigningError::NoKeys)));
}
