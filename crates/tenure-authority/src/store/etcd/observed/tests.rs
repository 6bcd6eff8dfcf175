use super::Observed;
use crate::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::record::{Owner, SessionRecord, SessionState};
use tenure_core::{InstanceId, Instant, OwnerName, SessionId, Ttl};

fn session(n: u128) -> SessionRecord {
    let owner = Owner { name: OwnerName::new("worker").expect("a name"), instance: InstanceId::from_bits(1) };
    SessionRecord {
        id: SessionId::from_bits(n),
        owner,
        on_this_host: false,
        ttl: Ttl::new(Duration::from_nanos(50_000_000)).expect("a ttl"),
        // Of another machine: it says nothing here.
        deadline: Instant::from_nanos(7),
        renew_seq: 0,
        incarnation: 1,
        state: SessionState::Live,
    }
}

const TTL: u64 = 50_000_000;

#[test]
fn a_deadline_counts_from_the_first_sight_of_each_renewal() {
    let nanos = Arc::new(AtomicU64::new(1_000));
    let observed = Observed::new(Clock::Manual(Arc::clone(&nanos)));
    let deadline = |changed| {
        let now = observed.now().expect("a clock");
        observed.session(session(1), changed, false, now).deadline.as_nanos()
    };
    assert_eq!(deadline(10), 1_000 + TTL);
    nanos.store(2_000, Ordering::Release);
    assert_eq!(deadline(10), 1_000 + TTL, "nothing new was seen");
    assert_eq!(deadline(11), 2_000 + TTL, "it was renewed");
    nanos.store(3_000, Ordering::Release);
    assert_eq!(deadline(10), 3_000 + TTL, "an answer that was overtaken");
    assert_eq!(deadline(11), 2_000 + TTL);
}

#[test]
fn what_was_forgotten_is_only_late() {
    let nanos = Arc::new(AtomicU64::new(1_000));
    let observed = Observed::new(Clock::Manual(Arc::clone(&nanos)));
    let see = |n| observed.session(session(n), 10, false, observed.now().expect("a clock")).deadline.as_nanos();
    assert_eq!(see(1), 1_000 + TTL);
    nanos.store(2_000, Ordering::Release);
    for n in 2..3 * super::SIGHTS_MAX as u128 {
        see(n);
    }
    assert_eq!(see(1), 2_000 + TTL);
    let kept = observed.sights();
    assert!(kept.young.len() + kept.old.len() <= 2 * super::SIGHTS_MAX);
}

#[test]
fn a_key_that_etcd_has_removed_ends_the_wait() {
    let observed = Observed::new(Clock::Manual(Arc::new(AtomicU64::new(1_000))));
    let now = observed.now().expect("a clock");
    assert!(now.reached(&observed.session(session(1), 10, true, now).deadline));
}
