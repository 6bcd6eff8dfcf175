use super::*;

fn at(nanos: u64) -> Instant<HolderClock> {
    Instant::from_nanos(nanos)
}

fn error() -> SinkError {
    SinkError::Unreachable { place: "a test".into(), why: "a test".into() }
}

#[test]
fn pauses_grow_to_a_bound_and_are_spread() {
    let (mut lane, mut pauses) = (Lane::default(), Vec::new());
    for _ in 0..40 {
        lane.begins(at(7));
        assert!(lane.is_busy() && !lane.is_ready(at(u64::MAX)), "it is asked once at a time");
        lane.failed(at(7), error());
        pauses.push(lane.again().unwrap().since(&at(7)));
    }
    let within = |pause: &Duration, middle: Duration| *pause >= middle / 2 && *pause <= middle * 3 / 2;
    assert!(within(&pauses[0], FIRST_PAUSE) && within(&pauses[3], FIRST_PAUSE * 8), "{pauses:?}");
    assert!(pauses[10..].iter().all(|pause| within(pause, LONGEST_PAUSE)), "{pauses:?}");
    let first = pauses[10];
    assert!(pauses[10..].iter().any(|pause| *pause != first), "all come in step: {pauses:?}");
}

#[test]
fn it_is_ready_again_at_the_end_of_its_pause_and_at_once_when_it_was_sealed() {
    let mut lane = Lane::default();
    lane.begins(at(1));
    lane.failed(at(1), error());
    let again = lane.again().unwrap();
    assert!(!lane.is_ready(at(again.as_nanos() - 1)) && lane.is_ready(again));
    lane.begins(again);
    lane.sealed();
    assert!(lane.is_ready(at(0)) && lane.failures == 0);
}

#[test]
fn it_is_excused_after_a_failure_or_a_long_silence_and_never_untried() {
    let (mut lane, long) = (Lane::default(), Duration::from_nanos(5));
    assert_eq!(lane.excusable_from(long), None);
    lane.begins(at(10));
    assert_eq!(lane.excusable_from(long), Some(at(15)));
    lane.failed(at(11), error());
    assert_eq!(lane.excusable_from(long), Some(at(0)));
}

#[test]
fn it_may_move_once_before_it_is_sealed() {
    let mut lane = Lane::default();
    assert!(!lane.moves() && lane.moves());
    lane.sealed();
    assert!(!lane.moves());
}
