use super::{Import, ImportError, Source};
use crate::WallTime;
use crate::store::Recorded;
use std::time::Duration;
use tenure_core::record::{Event, LeaseRecord, Owner, Phase, Transition};
use tenure_core::{Actor, Epoch, GrantId, InstanceId, Instant, OwnerName, ResourceName, SessionId, StoreIdentity, Ttl};

fn epoch(n: u64) -> Epoch {
    Epoch::new(n).expect("an epoch")
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).expect("a name")
}

fn row(number: u64, resource: &str, n: u64) -> Recorded {
    let transition = Transition {
        at: Instant::from_nanos(7),
        event: Event::Granted,
        resource: Some(name(resource)),
        session: None,
        epoch: Some(epoch(n)),
        grant: None,
        actor: None,
        why: None,
    };
    Recorded { number, wall: WallTime::default(), transition }
}

fn lease(resource: &str, n: u64) -> LeaseRecord {
    LeaseRecord {
        resource: name(resource),
        epoch: epoch(n),
        grant: GrantId::from_bits(1),
        session: SessionId::from_bits(2),
        owner: Owner { name: OwnerName::new("w").expect("a name"), instance: InstanceId::from_bits(3) },
        since: Instant::from_nanos(7),
        phase: Phase::Held,
        sinks: [].into(),
    }
}

fn source() -> Source {
    Source {
        identity: StoreIdentity::new("sqlite:1").expect("a name"),
        incarnation: 1,
        floor: None,
        max_ttl: Ttl::DEFAULT,
        belief: None,
    }
}

fn import(source: Source, rows: &[Recorded], leases: &[LeaseRecord]) -> Result<Import, ImportError> {
    Import::new(source, rows.to_vec(), leases.to_vec(), Actor::new("me").expect("a name"))
}

#[test]
fn what_fits_together_is_taken() {
    let rows = [row(1, "a", 1), row(2, "b", 1), row(3, "a", 2), row(4, "a", 1)];
    assert!(import(source(), &rows, &[lease("a", 2), lease("b", 1)]).is_ok());
    assert!(import(source(), &rows, &[lease("a", 9), lease("b", 1)]).is_ok(), "a receiver may have shown a higher one");
    assert!(import(Source { floor: Some(epoch(2)), ..source() }, &rows, &[]).is_ok(), "both are retired");
    assert!(import(source(), &[], &[]).is_ok());
}

#[test]
fn a_missing_or_misplaced_row_is_named_by_its_place() {
    let gap = [row(1, "a", 1), row(3, "a", 2)];
    let error = import(source(), &gap, &[lease("a", 2)]).expect_err("a gap");
    assert_eq!(error, ImportError::Number { at: 1, expected: 2, found: 3 });
    let error = import(source(), &gap[1..], &[lease("a", 2)]).expect_err("no beginning");
    assert_eq!(error, ImportError::Number { at: 0, expected: 1, found: 3 });
}

/// With such a record, an epoch would be granted a second time.
#[test]
fn a_record_that_lies_behind_the_history_is_refused() {
    let rows = [row(1, "a", 1), row(2, "a", 2)];
    let error = import(source(), &rows, &[lease("a", 1)]).expect_err("behind");
    assert!(matches!(&error, ImportError::Behind { at: 0, number: 2, .. }), "{error:?}");
    let floor = Source { floor: Some(epoch(1)), ..source() };
    let error = import(floor, &rows, &[]).expect_err("no record, and the floor is below");
    assert!(matches!(&error, ImportError::Absent { at: 1, number: 2, .. }), "{error:?}");
    let error = import(source(), &rows, &[lease("a", 2), lease("a", 3)]).expect_err("twice");
    assert_eq!(error, ImportError::Twice { at: 1, resource: name("a") });
}

#[test]
fn what_no_store_has_is_refused() {
    for incarnation in [0, u64::MAX] {
        let error = import(Source { incarnation, ..source() }, &[], &[]).expect_err("no store has it");
        assert_eq!(error, ImportError::Incarnation(incarnation));
    }
    let belief = Ttl::DEFAULT.get() + Duration::from_nanos(1);
    let error = import(Source { belief: Some(belief), ..source() }, &[], &[]).expect_err("too long");
    assert!(matches!(error, ImportError::Belief { .. }), "{error:?}");
}
