use super::{IN_A_ROW, Place, Queued, Slots, Turn};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tenure_core::ResourceName;

fn resource() -> ResourceName {
    ResourceName::new("r").expect("a name")
}

fn mine(slots: &Slots) -> Turn {
    match slots.enter(&resource()) {
        Place::Mine(turn) => turn,
        Place::Behind(_) => panic!("somebody else has it"),
    }
}

fn behind(slots: &Slots) -> Queued {
    match slots.enter(&resource()) {
        Place::Mine(_) => panic!("nobody has it"),
        Place::Behind(queued) => queued,
    }
}

fn turn(queued: &mut Queued) -> Option<Turn> {
    match pin!(queued.turn()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Some(turn.expect("there are turns")),
        Poll::Pending => None,
    }
}

/// Nobody has the place, and nothing is kept of those who were there.
fn is_free(slots: &Slots) -> bool {
    let places = super::locked(&slots.0);
    places.taken.is_empty() && places.queues.is_empty()
}

#[test]
fn turns_come_in_the_order_of_arrival() {
    let slots = Slots::default();
    let mut has = mine(&slots);
    let mut queue: Vec<Queued> = (0..10).map(|_| behind(&slots)).collect();
    for at in 0..queue.len() {
        assert!(queue[at..].iter_mut().all(|queued| turn(queued).is_none()), "a turn before its time");
        drop(has);
        has = turn(&mut queue[at]).expect("its turn");
    }
    drop(has);
    assert!(is_free(&slots));
}

/// A task that came while another one was on its way to its turn went before it.
#[test]
fn whoever_comes_between_a_turn_and_its_taking_is_behind_it() {
    let slots = Slots::default();
    let has = mine(&slots);
    let mut next = behind(&slots);
    drop(has);
    let mut late = behind(&slots);
    assert!(turn(&mut late).is_none());
    drop(turn(&mut next).expect("its turn"));
    drop(turn(&mut late).expect("its turn"));
    assert!(is_free(&slots));
}

#[test]
fn whoever_goes_hands_its_turn_on() {
    let slots = Slots::default();
    let has = mine(&slots);
    let (gone, left, mut last) = (behind(&slots), behind(&slots), behind(&slots));
    drop(gone);
    drop(has);
    // Its turn came, and it went before it looked.
    drop(left);
    drop(turn(&mut last).expect("its turn"));
    assert!(is_free(&slots));
}

#[test]
fn nothing_is_kept_of_those_who_went() {
    let slots = Slots::default();
    let has = mine(&slots);
    for _ in 0..100 {
        drop(behind(&slots));
    }
    assert!(super::locked(&slots.0).queues.is_empty());
    drop(has);
    assert!(is_free(&slots));
}

#[test]
fn after_many_turns_in_a_row_others_are_let_look() {
    let slots = Slots::default();
    let mut has = mine(&slots);
    let mut yielded = Vec::new();
    for number in 1..=IN_A_ROW * 2 {
        // There is never more than one who waits.
        let mut next = behind(&slots);
        drop(has);
        has = turn(&mut next).expect("its turn");
        yielded.extend(has.yields.then_some(number));
    }
    assert_eq!(yielded, [IN_A_ROW, IN_A_ROW * 2]);
    drop(has);
    assert!(!mine(&slots).yields, "nobody waited");
}
