use super::*;

fn at(nanos: u64) -> Instant<AuthorityClock> {
    Instant::from_nanos(nanos)
}

#[test]
fn it_stands_still_for_a_second_and_then_refuses() {
    let time = Time::default();
    let second = 1_000_000_000;
    assert_eq!(time.settle(time.seen(), None, at(5 * second)).ok(), Some(at(5 * second)));
    assert_eq!(time.settle(time.seen(), None, at(4 * second)).ok(), Some(at(5 * second)));
    let error = time.settle(time.seen(), None, at(4 * second - 1)).expect_err("more than a second");
    assert!(matches!(error, StoreError::ClockWentBack { by } if by.as_nanos() == 1_000_000_001), "{error:?}");
    let error = time.settle(at(0), Some(at(9 * second)), at(5 * second)).expect_err("behind the records");
    assert!(matches!(error, StoreError::ClockWentBack { .. }), "{error:?}");
    // An answer that was asked for before a later one came back.
    assert_eq!(time.settle(at(3 * second), None, at(4 * second)).ok(), Some(at(4 * second)));
    assert_eq!(time.seen(), at(5 * second));
}
