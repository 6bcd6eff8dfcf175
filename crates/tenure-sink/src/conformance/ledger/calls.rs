//! The life of a call under one epoch.

use super::{Book, Clause, intent, outcome, reason, token};
use crate::conformance::world::{of, operation, patiently, stale};
use crate::digest_of;
use crate::ledger::{Intended, Refused, Which};
use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use tenure_core::Verdict;
use tenure_core::ledger::Unheard;
use tenure_core::operation::Attempt;

pub(super) const CLAUSES: &[Clause] = &[
    ("a call from its intent to its answer", from_intent_to_answer),
    ("an intent goes back with the caller's transaction", an_intent_goes_back),
    ("L1: an intent stands before anything else is said", l1_an_intent_first),
    ("L5: nothing leaves an intent but by the mark", l5_the_mark_first),
    ("L5: of those who mark at once, one gets it", l5_one_mark),
    ("L6: a timeout is unknown, and stays so", l6_a_timeout_stays_unknown),
    ("what failed is over in its epoch", a_failure_is_over),
    ("L4: what took effect is not begun again", l4_once),
    ("other content under the same id is a conflict", other_content),
    ("a token that is not registered writes nothing", an_unregistered_token),
    ("resources do not share attempts", resources_apart),
    ("odd names and long texts come back whole", odd_texts),
];

fn from_intent_to_answer(book: &Book) {
    let first = token(1);
    book.grant(&first);
    assert_eq!(book.intend(&first, "one"), Ok(Intended::Written));
    assert_eq!(book.states("one"), [Attempt::Intent]);
    assert!(book.mark(&first, "one").is_ok());
    assert_eq!(book.states("one"), [Attempt::Sent]);
    assert_eq!(book.done(&first, "one"), Ok(Attempt::Done));
    let found = patiently(|| book.0.lookup(&first, &operation("one")));
    let [record] = found.as_deref().unwrap_or_default() else { unreachable!("one attempt, not {found:?}") };
    assert_eq!((record.state, record.outcome.as_ref()), (Attempt::Done, Some(&outcome("one"))));
    assert_eq!(record.digest, digest_of(b"one"));
    assert_eq!((record.owner.as_str(), record.system.as_str()), ("alice@db3/4711", "bank"));
    assert!(record.intended_ms > 0 && record.intended_ms <= record.changed_ms, "{record:?}");
    assert!(record.seal_no > 0, "{record:?}");
    // The same news again is none.
    assert_eq!(book.done(&first, "one"), Ok(Attempt::Done));
}

fn an_intent_goes_back(book: &Book) {
    let first = token(1);
    book.grant(&first);
    book.0.intent_rolled_back(&first, &intent("one"));
    assert_eq!(book.states("one"), []);
    assert_eq!(book.intend(&first, "one"), Ok(Intended::Written));
    assert_eq!(book.intend(&first, "one"), Ok(Intended::Written), "it stands, and nothing was sent");
    assert_eq!(book.states("one"), [Attempt::Intent]);
}

fn l1_an_intent_first(book: &Book) {
    let first = token(1);
    book.grant(&first);
    assert_eq!(book.mark(&first, "one"), Err(Refused::Missing));
    assert_eq!(book.done(&first, "one"), Err(Refused::Missing));
    assert_eq!(book.unknown(&first, "one"), Err(Refused::Missing));
    assert_eq!(book.states("one"), []);
}

fn l5_the_mark_first(book: &Book) {
    let first = token(1);
    book.grant(&first);
    assert_eq!(book.intend(&first, "one"), Ok(Intended::Written));
    for said in [book.done(&first, "one"), book.failed(&first, "one")] {
        assert!(matches!(said, Err(Refused::Unheard(Unheard::Illegal(_)))), "{said:?}");
    }
    assert_eq!(book.states("one"), [Attempt::Intent]);
}

fn l5_one_mark(book: &Book) {
    const WORKERS: usize = 4;
    const ROUNDS: usize = 20;
    let first = token(1);
    book.grant(&first);
    let names: Vec<_> = (0..ROUNDS).map(|round| format!("round {round}")).collect();
    for name in &names {
        assert_eq!(book.intend(&first, name), Ok(Intended::Written));
    }
    let (start, handles) = (Barrier::new(WORKERS), [(); WORKERS].map(|()| book.0.another()));
    let marks = Mutex::new(BTreeMap::<&str, usize>::new());
    thread::scope(|scope| {
        for handle in &handles {
            let (first, start, names, marks) = (&first, &start, &names, &marks);
            scope.spawn(move || {
                for name in names {
                    start.wait();
                    if patiently(|| handle.sent(first, &operation(name))).is_ok() {
                        *marks.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default() += 1;
                    }
                }
            });
        }
    });
    let marks = marks.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(marks.len() == ROUNDS && marks.values().all(|marks| *marks == 1), "one alone may send: {marks:?}");
}

fn l6_a_timeout_stays_unknown(book: &Book) {
    let first = token(1);
    book.grant(&first);
    book.lost(&first, "one");
    // No later news of the call itself, no second try, no time.
    for said in [book.done(&first, "one"), book.failed(&first, "one")] {
        assert!(matches!(said, Err(Refused::Unheard(Unheard::Illegal(_)))), "{said:?}");
    }
    assert!(book.mark(&first, "one").is_err());
    let unsettled = Intended::Unsettled { epoch: first.epoch, state: Attempt::Unknown };
    assert_eq!(book.intend(&first, "one"), Ok(unsettled));
    assert_eq!(book.states("one"), [Attempt::Unknown]);
    let listed = book.list(Which::Unknown);
    assert_eq!(listed.iter().map(|attempt| attempt.why.clone()).collect::<Vec<_>>(), [Some(reason("no answer"))]);
}

fn a_failure_is_over(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    book.marked(&first, "one");
    assert_eq!(book.failed(&first, "one"), Ok(Attempt::Failed));
    assert_eq!(book.intend(&first, "one"), Ok(Intended::Over { state: Attempt::Failed }));
    for said in [book.done(&first, "one"), book.unknown(&first, "one")] {
        assert!(said.is_err(), "{said:?}");
    }
    book.grant(&second);
    assert_eq!(book.intend(&second, "one"), Ok(Intended::Written));
    assert_eq!(book.states("one"), [Attempt::Failed, Attempt::Intent]);
}

fn l4_once(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    book.marked(&first, "one");
    assert_eq!(book.done(&first, "one"), Ok(Attempt::Done));
    let effective = || Intended::Effective { epoch: first.epoch, outcome: Some(outcome("one")) };
    assert_eq!(book.intend(&first, "one"), Ok(effective()));
    book.grant(&second);
    assert_eq!(book.intend(&second, "one"), Ok(effective()));
    assert_eq!(book.states("one"), [Attempt::Done]);
}

fn other_content(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    book.marked(&first, "one");
    assert_eq!(book.failed(&first, "one"), Ok(Attempt::Failed));
    book.grant(&second);
    let mut other = intent("one");
    other.digest = digest_of(b"another amount");
    let said = patiently(|| book.0.intent(&second, &other));
    assert_eq!(said, Ok(Intended::Conflict { current: first.epoch }));
    assert_eq!(book.states("one"), [Attempt::Failed]);
}

fn an_unregistered_token(book: &Book) {
    let (first, second) = (token(1), token(2));
    assert_eq!(book.intend(&first, "one"), Err(Refused::Token(Verdict::Unsealed)));
    book.grant(&second);
    assert_eq!(book.intend(&first, "one"), Err(Refused::Token(stale(&first, &second))));
    assert_eq!(book.settle(&first), Err(Refused::Token(stale(&first, &second))));
    assert_eq!(book.list(Which::All), []);
}

fn resources_apart(book: &Book) {
    let (one, two) = (of("one", 1, 1), of("two", 1, 2));
    book.grant(&one);
    book.grant(&two);
    book.marked(&one, "op");
    book.marked(&two, "op");
    assert_eq!(book.done(&one, "op"), Ok(Attempt::Done));
    assert_eq!(book.states("op"), [Attempt::Done, Attempt::Sent]);
    let foreign = super::key(&two, "op");
    let said = book.found(&one, &foreign, &tenure_core::ledger::Looked::Found(outcome("op")));
    assert_eq!(said, Err(Refused::Missing), "a token speaks of its own resource only");
}

fn odd_texts(book: &Book) {
    let first = of("../'\"%\u{1F600}", 1, 1);
    book.grant(&first);
    let name = "'; DROP TABLE tenure_ledger; --/\"\u{202e}é";
    book.marked(&first, name);
    let zero = book.0.unknown(&first, &operation(name), &reason("zero \0"));
    if let Err(error) = zero {
        assert!(error.to_string().contains("zero byte") && !error.is_transient(), "{error}");
        assert_eq!(book.states(name), [Attempt::Sent], "what was refused changes nothing");
    } else {
        assert_eq!(book.list(Which::Unknown).first().and_then(|record| record.why.clone()), Some(reason("zero \0")));
    }
    book.marked(&first, "long");
    let (name, long) = ("long", "ä\n\"'\u{1F600}".repeat(4000));
    let told = patiently(|| book.0.unknown(&first, &operation(name), &reason(&long)));
    assert_eq!(told, Ok(Attempt::Unknown));
    let listed = book.list(Which::Unknown);
    let Some(record) = listed.iter().find(|record| record.key == super::key(&first, name)) else {
        unreachable!("it is not in {listed:?}")
    };
    assert_eq!(record.why, Some(reason(&long)));
}
