//! An authority that remembers what stands in etcd decides as one that reads.

use super::{fresh, made};
use crate::recalling::{Step, World, memory, step, told};
use crate::world::{ManualClock, TTL, Worker, grant, resource};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::{BootClock, Clock, Store};
use tenure_core::decide::{Refusal, Reply, Request};
use tenure_core::record::Holdings;
use tenure_core::{Actor, Reason, Ttl};

/// The same steps over etcd, where each worker's authority remembers, and over a store in memory, which is read each
/// time: the same answers, fingerprints among them, and at the end the same records and the same history.
#[test]
fn an_authority_that_remembers_answers_as_one_that_reads() {
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    let same = |steps: Vec<Step>| {
        let url = fresh(&format!("max_ttl={}ms", Ttl::MAX.get().as_millis()));
        let open = || made(&url, Clock::Boot(BootClock));
        let read = memory();
        let mut remembering = World::new(open);
        let mut reading = World::new(|| Arc::clone(&read) as Arc<dyn Store>);
        for (at, step) in steps.iter().enumerate() {
            prop_assert_eq!(remembering.does(step), reading.does(step), "step {}: {:?}", at, step);
        }
        prop_assert_eq!(told(&*open()), told(&*read));
        Ok(())
    };
    TestRunner::new(config).run(&prop::collection::vec(step(), 1..40), same).expect("no difference");
}

/// A grant that somebody else has revoked meanwhile is missing in the fingerprint of the next renewal, though the
/// renewing process has read nothing since.
#[test]
fn a_renewal_shows_what_another_has_revoked() {
    let url = fresh("");
    let open = || made(&url, Clock::Boot(BootClock));
    let (a, b) = (Worker::open(open(), 1, false), Worker::open(open(), 2, false));
    assert!(format!("{:?}", a.authority).contains("recall: Some"));
    a.acquire("r", grant(1));
    let holdings = |n| match a.renew(n) {
        Ok(Reply::Renewed { holdings, .. }) => holdings,
        other => unreachable!("{other:?}"),
    };
    assert_ne!(holdings(0), Holdings::default());
    let revoke = Request::Revoke {
        resource: resource("r"),
        only: None,
        actor: Actor::new("operator").expect("a name"),
        reason: Reason::new("a test").expect("a reason"),
    };
    b.ask(&revoke).expect("an answer").expect("revoked");
    assert_eq!(holdings(1), Holdings::default());
}

/// The memory of a process that slept does not help it past its deadline, not by a nanosecond.
#[test]
fn a_remembered_session_ends_at_its_deadline() {
    let clock = ManualClock::at(Duration::from_secs(1));
    let a = Worker::open(made(&fresh(""), clock.clock()), 1, false);
    clock.set(Duration::from_secs(1) + TTL - Duration::from_nanos(1));
    assert!(matches!(a.renew(0), Ok(Reply::Renewed { .. })));
    clock.set(Duration::from_secs(1) + TTL * 2 - Duration::from_nanos(1));
    assert!(matches!(a.renew(1), Err(Refusal::SessionEnded { .. })));
}
