//! What a takeover finds, and what it makes of it.

use super::{Book, Clause, key, outcome, token};
use crate::conformance::world::stale;
use crate::ledger::{Intended, Refused, Settled};
use tenure_core::Verdict;
use tenure_core::ledger::{Looked, Unheard};
use tenure_core::operation::Attempt;

pub(super) const CLAUSES: &[Clause] = &[
    ("nothing is settled before the seal", nothing_before_the_seal),
    ("after the seal, marked is unknown and intended is not applied", after_the_seal),
    ("once a newer token is registered, no older one moves an entry", the_old_holder_is_out),
    ("L4: an unknown attempt keeps its operation from running", an_unknown_attempt_blocks),
    ("what was not applied runs again, once", not_applied_runs_again),
    ("a takeover settles nothing that is its own", its_own_stays),
    ("L6: an absence under the attempt's own token comes too soon", an_absence_too_soon),
    ("L6: an absence that proves nothing changes nothing", an_absence_that_proves_nothing),
];

fn nothing_before_the_seal(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    book.marked(&first, "one");
    // The candidate is granted, and not sealed yet: the old holder is still the owner here.
    assert_eq!(book.settle(&second), Err(Refused::Token(Verdict::Unsealed)));
    assert_eq!(book.states("one"), [Attempt::Sent]);
    assert_eq!(book.done(&first, "one"), Ok(Attempt::Done));
}

fn after_the_seal(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    assert_eq!(book.intend(&first, "intended"), Ok(Intended::Written));
    book.marked(&first, "marked");
    book.lost(&first, "lost");
    book.marked(&first, "done");
    assert_eq!(book.done(&first, "done"), Ok(Attempt::Done));
    book.marked(&first, "failed");
    assert_eq!(book.failed(&first, "failed"), Ok(Attempt::Failed));
    book.grant(&second);
    assert_eq!(book.settle(&second), Ok(Settled { unknown: 1, not_applied: 1 }));
    for (name, state) in [
        ("intended", Attempt::NotApplied),
        ("marked", Attempt::Unknown),
        ("lost", Attempt::Unknown),
        ("done", Attempt::Done),
        ("failed", Attempt::Failed),
    ] {
        assert_eq!(book.states(name), [state], "{name}");
    }
    assert_eq!(book.settle(&second), Ok(Settled::default()), "it may be repeated");
}

fn the_old_holder_is_out(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    book.marked(&first, "marked");
    assert_eq!(book.intend(&first, "intended"), Ok(Intended::Written));
    book.grant(&second);
    // Before the new holder has settled anything: the seal alone closes the book.
    let refused = || Refused::Token(stale(&first, &second));
    assert_eq!(book.mark(&first, "intended"), Err(refused()), "it would send after it was overtaken");
    assert_eq!(book.done(&first, "marked"), Err(refused()));
    assert_eq!(book.failed(&first, "marked"), Err(refused()));
    assert_eq!(book.unknown(&first, "marked"), Err(refused()));
    assert_eq!(book.found(&first, &key(&first, "marked"), &Looked::AbsentForGood), Err(refused()));
    assert_eq!(book.intend(&first, "new"), Err(refused()));
    assert_eq!(book.states("marked"), [Attempt::Sent]);
    assert_eq!(book.states("intended"), [Attempt::Intent]);
    // Nor does the new holder speak for the old one's call.
    assert_eq!(book.done(&second, "marked"), Err(Refused::Missing), "its own attempt is another one");
}

fn an_unknown_attempt_blocks(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    book.marked(&first, "one");
    book.grant(&second);
    // Also without `settle` before it.
    let unsettled = Intended::Unsettled { epoch: first.epoch, state: Attempt::Unknown };
    assert_eq!(book.intend(&second, "one"), Ok(unsettled));
    assert_eq!(book.states("one"), [Attempt::Unknown]);
}

fn not_applied_runs_again(book: &Book) {
    let (first, second, third) = (token(1), token(2), token(3));
    book.grant(&first);
    let attempt = book.marked(&first, "one");
    book.grant(&second);
    assert!(book.settle(&second).is_ok());
    assert_eq!(book.found(&second, &attempt, &Looked::AbsentForGood), Ok(Attempt::NotApplied));
    book.marked(&second, "one");
    assert_eq!(book.states("one"), [Attempt::NotApplied, Attempt::Sent]);
    assert_eq!(book.done(&second, "one"), Ok(Attempt::Done));
    book.grant(&third);
    let effective = Intended::Effective { epoch: second.epoch, outcome: Some(outcome("one")) };
    assert_eq!(book.intend(&third, "one"), Ok(effective));
}

fn its_own_stays(book: &Book) {
    let first = token(1);
    book.grant(&first);
    book.marked(&first, "one");
    assert_eq!(book.intend(&first, "two"), Ok(Intended::Written));
    assert_eq!(book.settle(&first), Ok(Settled::default()));
    assert_eq!(book.states("one"), [Attempt::Sent]);
    assert_eq!(book.states("two"), [Attempt::Intent]);
}

fn an_absence_too_soon(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    let attempt = book.lost(&first, "one");
    let too_soon = Refused::Unheard(Unheard::TooSoon { attempt: first.epoch });
    assert_eq!(book.found(&first, &attempt, &Looked::AbsentForGood), Err(too_soon));
    assert_eq!(book.states("one"), [Attempt::Unknown]);
    book.grant(&second);
    assert_eq!(book.found(&second, &attempt, &Looked::AbsentForGood), Ok(Attempt::NotApplied));
}

fn an_absence_that_proves_nothing(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    let attempt = book.lost(&first, "one");
    book.grant(&second);
    for _ in 0..2 {
        assert_eq!(book.found(&second, &attempt, &Looked::NotSeen), Ok(Attempt::Unknown));
    }
    // It arrives after that.
    let late = Looked::Found(outcome("one"));
    assert_eq!(book.found(&second, &attempt, &late), Ok(Attempt::Applied));
}
