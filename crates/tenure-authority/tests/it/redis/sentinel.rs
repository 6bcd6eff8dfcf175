//! Under Sentinel.

use super::{fresh, made, open, read, try_read};
use crate::world::{Worker, grant};
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::StoreError;
use tenure_authority::conformance::{Subject, run_all};
use tenure_core::decide::Refusal;
use tenure_servers::{Redis, Sentinels, eventually};

fn url(sentinels: &Sentinels) -> String {
    let hosts: Vec<_> = sentinels.addrs().iter().map(ToString::to_string).collect();
    format!("redis+sentinel://{}/{}", hosts.join(","), Sentinels::NAME)
}

fn watched(primary: &Redis) -> Sentinels {
    Sentinels::start(3, primary, 2, Duration::from_millis(500), Duration::from_secs(3))
}

#[test]
fn the_store_keeps_the_contract_under_sentinel() {
    let primary = Redis::start();
    let sentinels = watched(&primary);
    run_all(&|| Subject { store: made(&url(&sentinels)), pass: Box::new(super::contract::wait), exact: false });
}

#[test]
fn a_name_that_no_sentinel_knows() {
    let primary = Redis::start();
    let sentinels = watched(&primary);
    let store = open(&url(&sentinels).replace("/tenure", "/other")).expect("an address");
    let error = try_read(&store).expect_err("nobody knows it");
    assert!(matches!(error, StoreError::Address { .. }) && error.to_string().contains("\"other\""), "{error}");
    let store = open("redis+sentinel://127.0.0.1:1,127.0.0.1:2/tenure").expect("an address");
    let error = try_read(&store).expect_err("nobody answers");
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    // One that answers is enough.
    let first = sentinels.addrs()[0];
    made(&format!("redis+sentinel://127.0.0.1:1,{first},127.0.0.1:2/tenure"));
}

/// The primary is stopped where it is and another one named. When it goes on, it believes in itself and answers: whoever
/// has a connection to it gives that up, also when it was quiet all the time.
#[test]
fn a_former_primary_that_goes_on_is_left() {
    let primary = Redis::start();
    let replica = primary.replica();
    let sentinels = watched(&primary);
    let store = open(&fresh(&format!("{}?timeout=2s", url(&sentinels)))).expect("an address");
    let worker = Worker::open(Arc::clone(&store), 1, false);
    worker.acquire("r", grant(1));
    let before = read(&store).view.observed;
    let size = |server: &Redis| server.cli(&["dbsize"]);
    eventually("the replica has everything", || (size(&replica) == size(&primary)).then_some(()));
    primary.pause();
    let _new = sentinels.wait_for_change(primary.addr());
    primary.resume();
    let view = eventually("the new primary is asked", || {
        try_read(&store).ok().map(|found| found.view).filter(|view| view.observed != before)
    });
    assert_eq!(view.authority.identity, before, "its record is of the former one");
    let refused = eventually("the authority answers", || worker.ask(&worker.acquiring("s", grant(2))).ok());
    assert!(matches!(refused, Err(Refusal::Quarantined { .. } | Refusal::SessionEnded { .. })), "{refused:?}");
    // From now on nobody asks the former one again.
    for _ in 0..20 {
        assert_eq!(read(&store).view.observed, view.observed);
    }
}

/// One Sentinel was away while the others made another server the primary, and still names the former one. The newer
/// configuration counts, however many name which.
#[test]
fn a_sentinel_that_was_away_is_not_believed() {
    let (former, primary) = (Redis::start(), Redis::start());
    let _replica = primary.replica();
    let away = Sentinels::start(1, &former, 1, Duration::from_secs(60), Duration::from_secs(60));
    let there = Sentinels::start(1, &primary, 1, Duration::from_millis(500), Duration::from_secs(3));
    primary.kill();
    let new = there.wait_for_change(primary.addr());
    for _ in 0..8 {
        let url = format!("redis+sentinel://{},{}/{}", away.addrs()[0], there.addrs()[0], Sentinels::NAME);
        made(&url);
    }
    assert_eq!(former.cli(&["dbsize"]), "0", "nothing is asked of {} but of {new}", former.addr());
}
