use super::{Hint, Plan, WINDOW, jittered, turn};
use std::time::Duration;
use tenure_core::{HolderClock, Instant};

fn at(millis: u64) -> Instant<HolderClock> {
    Instant::from_nanos(millis * 1_000_000)
}

/// A holder was seen at zero whose deadline is at 300.
fn plan() -> Plan {
    Plan { poll: at(1000), over: Some([at(300), at(350)]), told: None }
}

#[test]
fn the_first_moment_that_is_due_counts() {
    assert_eq!(plan().next(), at(350));
    assert_eq!(Plan { poll: at(10), ..plan() }.next(), at(10));
    assert_eq!(Plan { told: Some(at(20)), ..plan() }.next(), at(20));
    assert_eq!(Plan { over: None, ..plan() }.next(), at(1000));
}

#[test]
fn news_that_it_may_be_free_is_followed_within_the_window_and_once() {
    for hint in [Hint::Free, Hint::Unknown] {
        let mut plan = plan();
        plan.hear(hint, at(100), at(180));
        assert_eq!(plan.next(), at(180));
        plan.hear(hint, at(120), at(150));
        assert_eq!(plan.next(), at(180), "it keeps its moment");
    }
}

#[test]
fn a_look_is_spared_when_somebody_else_was_granted_the_resource() {
    let mut released = plan();
    released.hear(Hint::Free, at(100), at(180));
    released.hear(Hint::Taken, at(110), at(190));
    assert_eq!(released.next(), at(1000), "the deadline that was seen is a former holder's");
    let mut overdue = plan();
    overdue.hear(Hint::Taken, at(310), at(400));
    assert_eq!(overdue.next(), at(1000));
}

#[test]
fn news_of_the_same_holder_moves_nothing() {
    let mut sealed = plan();
    sealed.hear(Hint::Taken, at(100), at(180));
    assert_eq!(sealed.next(), at(350), "its deadline is waited for still");
}

#[test]
fn who_has_waited_longer_tends_to_come_first() {
    let (first, last) = (0, 1023);
    for waited in [0, 1, 5, 30, 3600].map(Duration::from_secs) {
        assert!(turn(waited, first) < turn(waited, last) && turn(waited, last) <= WINDOW);
        let later = waited + Duration::from_secs(1);
        assert!(turn(later, first) < turn(waited, first) && turn(later, last) < turn(waited, last));
    }
    assert!(turn(Duration::ZERO, first) >= WINDOW / 2, "a newcomer comes in the second half");
    assert!(turn(Duration::from_mins(10), last) < WINDOW * 51 / 100, "an old one comes in the first half");
}

#[test]
fn spans_are_jittered_by_half_of_them() {
    let span = Duration::from_millis(200);
    let spans: Vec<Duration> = (0..100).map(|_| jittered(span)).collect();
    assert!(spans.iter().all(|jittered| (span / 2..span * 3 / 2).contains(jittered)));
    assert!(spans.iter().any(|jittered| *jittered != spans[0]));
}
