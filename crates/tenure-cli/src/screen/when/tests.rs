use super::*;

fn now() -> Now {
    Now { store: Instant::from_nanos(5_000_000_000), wall: WallTime::from_millis(1_777_903_391_000) }
}

#[test]
fn an_instant_of_the_store_is_put_onto_the_wall_clock() {
    let wall = |nanos| now().wall_of(Instant::from_nanos(nanos)).as_millis();
    assert_eq!(wall(5_000_000_000), 1_777_903_391_000);
    assert_eq!(wall(3_500_000_000), 1_777_903_389_500);
    assert_eq!(wall(6_000_000_000), 1_777_903_392_000);
    let early = Now { wall: WallTime::from_millis(1), ..now() };
    assert_eq!(early.wall_of(Instant::from_nanos(0)).as_millis(), 0, "the wall clock was set back");
}

#[test]
fn times_are_written_and_read_back() {
    for millis in [0, 1, 999, 1_777_903_391_250, WallTime::MAX.as_millis()] {
        let wall = WallTime::from_millis(millis);
        assert_eq!(parse(&rfc3339(wall)), Some(wall), "{}", rfc3339(wall));
    }
    assert_eq!(rfc3339(WallTime::from_millis(1_777_903_391_000)), "2026-05-04T14:03:11.000Z");
    assert_eq!(parse("yesterday"), None);
    assert_eq!(parse("1969-12-31T23:59:59Z"), None);
}

#[test]
fn how_long_ago_is_said_for_people() {
    let at = |ago: i64| WallTime::from_millis((1_777_903_391_000_i64 - ago).cast_unsigned());
    assert_eq!(relative(now().wall, at(724_000)), "12 min 4 s ago");
    assert_eq!(relative(now().wall, at(-87_000)), "in 87 s");
    assert_eq!(relative(now().wall, at(0)), "0 ms ago");
    let days = 40 * 86_400_000;
    assert!(
        both(now().wall, at(days)).starts_with("2026-03-2") && both(now().wall, at(days)).ends_with(" (40 d 0 h ago)")
    );
    assert!(!both(now().wall, at(0)).contains("2026"), "the date of today says nothing");
}
