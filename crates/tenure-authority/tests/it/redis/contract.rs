use super::{fresh, made, open};
use crate::stores::Pair;
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::Store;
use tenure_authority::conformance::{Subject, run_all};
use tenure_servers::Redis;

/// Its time cannot be driven: it passes by itself.
fn subject(store: Arc<dyn Store>) -> Subject {
    Subject { store, pass: Box::new(wait), exact: false }
}

pub(super) fn wait(span: Duration) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    // A hair more, since the server's clock ticks in microseconds.
    let _ = never.recv_timeout(span + Duration::from_millis(1));
}

#[test]
fn the_redis_store_keeps_the_contract() {
    let server = Redis::shared();
    run_all(&|| subject(made(&server.url())));
}

/// Reads go to one opening of the store and swaps to another, as from two processes.
#[test]
fn two_openings_of_one_redis_store_keep_the_contract_together() {
    let server = Redis::shared();
    run_all(&|| {
        let url = fresh(&server.url());
        let open = || open(&url).expect("a store");
        subject(Arc::new(Pair { reads: open(), writes: open() }))
    });
}
