//! Each record comes back as it was written.

use super::*;
use tenure_core::{Actor, GrantId, Outcome, OwnerName, Reason, ResourceName, SessionId, StoreIdentity};

fn owner_named(name: &str) -> Owner {
    Owner { name: OwnerName::new(name).expect("a name"), instance: InstanceId::from_bits(7) }
}

fn lease(phase: Phase) -> LeaseRecord {
    LeaseRecord {
        resource: ResourceName::new("jobs/\"nightly\" ü").expect("a name"),
        epoch: Epoch::new(i64::MAX.cast_unsigned()).expect("an epoch"),
        grant: GrantId::from_bits(u128::MAX),
        session: SessionId::from_bits(1),
        owner: owner_named("w"),
        since: Instant::from_nanos(u64::MAX),
        phase,
        sinks: BTreeMap::from([
            (SinkId::new("a \"sink\"").expect("a name"), SinkMark::default()),
            (
                SinkId::new("b").expect("a name"),
                SinkMark { bound: Some(Generation::new("g/1").expect("one")), sealed: true, excused: false },
            ),
        ]),
    }
}

#[test]
fn every_phase_comes_back() {
    for phase in [
        Phase::Free,
        Phase::Sealing,
        Phase::Held,
        Phase::Completed { outcome: Outcome::new("").expect("an outcome") },
        Phase::Completed { outcome: Outcome::new("a\0b\n\u{1f980}").expect("an outcome") },
        Phase::Retiring {
            cut: Epoch::new(3).expect("an epoch"),
            forgotten: BTreeSet::from([SinkId::new("a \"sink\"").expect("a name")]),
        },
    ] {
        let record = lease(phase);
        assert_eq!(lease_from(&lease_to(&record).expect("text")).expect("a record"), record);
    }
}

#[test]
fn every_state_of_a_session_comes_back() {
    let live = SessionRecord {
        id: SessionId::from_bits(5),
        owner: owner_named("worker \\ 1"),
        on_this_host: true,
        ttl: Ttl::MIN,
        deadline: Instant::from_nanos(9),
        renew_seq: u64::MAX,
        incarnation: u64::MAX,
        state: SessionState::Live,
    };
    let ended = EndReason::ALL.map(|why| live.ended(why, Instant::from_nanos(3)));
    for record in ended.into_iter().chain([live]) {
        assert_eq!(session_from(&session_to(&record).expect("text")).expect("a record"), record);
    }
}

#[test]
fn a_stores_record_and_its_history_come_back() {
    let fresh = AuthorityRecord::new(StoreIdentity::new("pg:1").expect("a name"), Ttl::MAX);
    let quarantined = AuthorityRecord {
        floor: Some(Epoch::new(4).expect("an epoch")),
        quarantined_until: Some(Instant::from_nanos(1)),
        incarnation: u64::MAX,
        ..fresh.clone()
    };
    for record in [fresh, quarantined] {
        assert_eq!(authority_from(&authority_to(&record).expect("text")).expect("a record"), record);
    }
    for event in Event::ALL {
        let bare = Transition {
            at: Instant::from_nanos(1),
            event,
            resource: None,
            session: None,
            epoch: None,
            grant: None,
            actor: None,
            why: None,
        };
        let full = Transition {
            resource: ResourceName::new("r").ok(),
            session: Some(SessionId::from_bits(1)),
            epoch: Epoch::new(1).ok(),
            grant: Some(GrantId::from_bits(2)),
            actor: Actor::new("operator").ok(),
            why: Reason::new("because\0\n").ok(),
            ..bare.clone()
        };
        for row in [bare, full] {
            assert_eq!(transition_from(&transition_to(&row).expect("text")).expect("a row"), row);
        }
    }
}

#[test]
fn what_makes_no_sense_is_told_by_name() {
    let text = lease_to(&lease(Phase::Held)).expect("text");
    for (from, to, says) in [
        ("\"held\"", "\"hold\"", "\"hold\" is not known"),
        ("\"held\"", "\"completed\"", "\"completed\" lacks a part"),
        ("\"epoch\":9223372036854775807", "\"epoch\":0", "a resource cannot be read"),
    ] {
        let error = lease_from(&text.replace(from, to)).expect_err(to).to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(lease_from("{}").is_err() && session_from("").is_err() && authority_from("[]").is_err());
}
