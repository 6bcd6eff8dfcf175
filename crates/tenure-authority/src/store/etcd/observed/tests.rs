use super::Observed;
use crate::Clock;
use crate::store::etcd::document::Charter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::decide::EXPLAINED_FOR;
use tenure_core::record::{AuthorityRecord, Owner, Seen, SessionRecord, SessionState};
use tenure_core::{InstanceId, Instant, OwnerName, SessionId, StoreIdentity, Ttl};

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

/// A week after a quarantine has ended, nothing odd is put down to it any more, however young the process is that looks.
#[test]
fn a_quarantine_of_long_ago_is_forgotten_once_it_is_over_by_sight() {
    let nanos = Arc::new(AtomicU64::new(1_000));
    let observed = Observed::new(Clock::Manual(Arc::clone(&nanos)));
    let identity = StoreIdentity::new("etcd:1").expect("a name");
    let now = observed.now().expect("a clock");
    let record = AuthorityRecord::new(identity.clone(), Ttl::DEFAULT).quarantined(identity, Seen::default(), now);
    let mut charter = Charter::new("0".to_owned(), record, now, true);
    let end = charter.quarantine_end_ms.expect("it has an end");
    assert_eq!(Charter::of(&charter.to_text().expect("a text")).expect("a record").quarantine_end_ms, Some(end));
    let until = |charter: &Charter, is_gone| {
        observed.authority(charter, 5, is_gone, observed.now().expect("a clock")).quarantined_until
    };
    assert!(until(&charter, true).is_some(), "it has just been");
    let week = u64::try_from(EXPLAINED_FOR.as_millis()).expect("small");
    let span = u64::try_from(Ttl::DEFAULT.get().as_millis()).expect("small");
    charter.quarantine_end_ms = Some(end - span - week - 60_000);
    assert!(until(&charter, false).is_some(), "nobody says that it is over");
    assert_eq!(until(&charter, true), None);
}

/// Others count a quarantine from when they see it. Whoever made it counts from the answer: until then sessions of the
/// former incarnation were renewed.
#[test]
fn whoever_makes_a_quarantine_counts_from_the_answer() {
    let nanos = Arc::new(AtomicU64::new(1_000));
    let observed = Observed::new(Clock::Manual(Arc::clone(&nanos)));
    let identity = StoreIdentity::new("etcd:1").expect("a name");
    let then = observed.now().expect("a clock");
    let record = AuthorityRecord::new(identity.clone(), Ttl::DEFAULT).quarantined(identity, Seen::default(), then);
    nanos.store(3_000, Ordering::Release);
    observed.made_authority(&record, then, 5);
    let now = observed.now().expect("a clock");
    let charter = Charter::new("0".to_owned(), record, then, false);
    let seen = observed.authority(&charter, 5, false, now);
    assert_eq!(seen.quarantined_until, Some(now.after(Ttl::DEFAULT.get())));
}
