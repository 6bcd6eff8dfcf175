//! Connections that nobody else reads.

use super::{fresh_on, made};
use crate::world::{Worker, grant};
use tenure_authority::conformance::block_on;
use tenure_authority::{BootClock, Clock, StoreError};
use tenure_core::decide::Keys;
use tenure_servers::{Certificates, Etcd};

#[test]
fn tls_is_spoken_and_the_server_is_checked() {
    let server = Etcd::with_tls();
    let url = |ca: &Certificates| fresh_on(&server.tls_url(), &format!("tls_ca={}", ca.ca().display()));
    let trusted = url(Certificates::shared());
    let worker = Worker::open(made(&trusted, Clock::Boot(BootClock)), 1, false);
    assert_eq!(worker.acquire("r", grant(1)).epoch.get(), 1);
    worker.renew(0).expect("a renewal");
    // Nobody vouches for it, and another authority does not either.
    for url in [fresh_on(&server.tls_url(), ""), url(&Certificates::make())] {
        let store = made(&url, Clock::Boot(BootClock));
        let error = block_on(store.read(&Keys::default())).expect_err("nobody vouches for the server");
        assert!(matches!(&error, StoreError::Address { .. }), "{error:?}");
        assert!(error.to_string().contains("tls_ca=FILE"), "{error}");
    }
}
