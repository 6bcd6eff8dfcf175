//! Findings, people, lists, and the reconciliation that puts them together.

use super::{Book, Clause, key, outcome, reason, token};
use crate::Answer;
use crate::conformance::world::{answered, of, patiently, stale};
use crate::ledger::{
    AttemptKey, AttemptRecord, Decision, Intended, Probe, ProbeError, Refused, Settled, Which, reconcile,
};
use std::collections::BTreeSet;
use tenure_core::ledger::{Looked, Unheard};
use tenure_core::operation::Attempt;
use tenure_core::{Actor, Outcome, SinkId, Token};

pub(super) const CLAUSES: &[Clause] = &[
    ("L2: what was found stays found, and what is over stays over", l2_over_is_over),
    ("a person decides what is unknown, and is named", a_person_is_named),
    ("a person decides nothing else", a_person_decides_nothing_else),
    ("each attempt is listed once, in order, with its age", each_is_listed_once),
    ("V5: one reconciliation settles all that probes can see", v5_reconciliation),
    ("a reconciliation under an old token settles nothing", an_old_token_reconciles_nothing),
    ("a token says nothing of another resource's attempts, and hears nothing of them", nothing_of_another_resource),
];

fn l2_over_is_over(book: &Book) {
    let (first, second, third) = (token(1), token(2), token(3));
    book.grant(&first);
    let (there, absent) = (book.marked(&first, "there"), book.marked(&first, "absent"));
    book.grant(&second);
    assert!(book.settle(&second).is_ok());
    let found = Looked::Found(outcome("there"));
    assert_eq!(book.found(&second, &there, &found), Ok(Attempt::Applied));
    assert_eq!(book.found(&second, &absent, &Looked::AbsentForGood), Ok(Attempt::NotApplied));
    book.grant(&third);
    assert_eq!(book.settle(&third), Ok(Settled::default()));
    // The same again is no news; the opposite is refused.
    assert_eq!(book.found(&third, &there, &found), Ok(Attempt::Applied));
    assert_eq!(book.found(&third, &absent, &Looked::AbsentForGood), Ok(Attempt::NotApplied));
    for (attempt, looked) in [(&there, Looked::AbsentForGood), (&absent, found)] {
        let said = book.found(&third, attempt, &looked);
        assert!(matches!(said, Err(Refused::Unheard(Unheard::Illegal(_)))), "{said:?}");
    }
    assert_eq!((book.states("there"), book.states("absent")), (vec![Attempt::Applied], vec![Attempt::NotApplied]));
}

fn decide(book: &Book, attempt: &AttemptKey, decision: &Decision) -> Result<Attempt, Refused> {
    let by = Actor::new("bob@desk").unwrap_or_else(|error| unreachable!("{error}"));
    patiently(|| answered(book.0.ledger().decide(attempt, decision, &by, &reason("seen in the statement"))))
}

fn a_person_is_named(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    let (there, absent) = (book.lost(&first, "there"), book.lost(&first, "absent"));
    let applied = Decision::Applied(Some(outcome("there")));
    assert_eq!(decide(book, &there, &applied), Ok(Attempt::Applied));
    assert_eq!(decide(book, &absent, &Decision::NotApplied), Ok(Attempt::NotApplied));
    for record in book.list(Which::All) {
        assert_eq!(record.decided_by.as_ref().map(Actor::as_str), Some("bob@desk"), "{record:?}");
        assert_eq!(record.why, Some(reason("seen in the statement")));
    }
    assert_eq!(decide(book, &there, &applied), Ok(Attempt::Applied), "the same again is no quarrel");
    assert!(decide(book, &there, &Decision::NotApplied).is_err());
    book.grant(&second);
    let effective = Intended::Effective { epoch: first.epoch, outcome: Some(outcome("there")) };
    assert_eq!(book.intend(&second, "there"), Ok(effective));
    assert_eq!(book.intend(&second, "absent"), Ok(Intended::Written));
}

fn a_person_decides_nothing_else(book: &Book) {
    let first = token(1);
    book.grant(&first);
    assert_eq!(decide(book, &key(&first, "one"), &Decision::NotApplied), Err(Refused::Missing));
    let attempt = book.marked(&first, "one");
    let refused = Refused::Unheard(Unheard::NotUnknown { state: Attempt::Sent });
    assert_eq!(decide(book, &attempt, &Decision::NotApplied), Err(refused.clone()));
    assert_eq!(decide(book, &attempt, &Decision::Applied(None)), Err(refused));
    // Its holder hears the answer after all.
    assert_eq!(book.done(&first, "one"), Ok(Attempt::Done));
    assert!(decide(book, &attempt, &Decision::NotApplied).is_err());
    assert_eq!(book.states("one"), [Attempt::Done]);
}

fn each_is_listed_once(book: &Book) {
    let tokens = [of("a", 1, 1), of("b", 1, 2)];
    let mut expected = BTreeSet::new();
    for token in &tokens {
        book.grant(token);
        for name in ["x", "y", "z"] {
            expected.insert(book.lost(token, name));
        }
        assert_eq!(book.intend(token, "intended"), Ok(Intended::Written));
    }
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page: Vec<_> = patiently(|| answered(book.0.ledger().list(Which::Unknown, None, after.as_ref(), 4)));
        after = page.last().map(|last| last.key.clone());
        let is_last = page.len() < 4;
        pages.extend(page);
        if is_last {
            break;
        }
    }
    assert_eq!(pages.iter().map(|attempt| &attempt.key).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    assert!(pages.iter().all(|attempt| attempt.state == Attempt::Unknown && attempt.age_ms < 3_600_000), "{pages:?}");
    for token in &tokens {
        let own = patiently(|| answered(book.0.ledger().list(Which::Unknown, Some(&token.resource), None, 2)));
        let rest = own.last().map(|last| &last.key);
        let rest = patiently(|| answered(book.0.ledger().list(Which::Unknown, Some(&token.resource), rest, 2)));
        let names: Vec<_> = own.iter().chain(&rest).map(|attempt| attempt.key.clone()).collect();
        assert_eq!(names, ["x", "y", "z"].map(|name| key(token, name)), "of one resource");
    }
    assert_eq!(book.list(Which::Open).len(), 8);
    assert_eq!(book.list(Which::All).len(), 8);
}

/// A look-up that has seen nothing was answered for any resource.
fn nothing_of_another_resource(book: &Book) {
    let (own, other) = (of("a", 1, 1), of("b", 1, 2));
    book.grant(&own);
    book.grant(&other);
    let attempt = book.lost(&other, "there");
    for looked in [Looked::NotSeen, Looked::AbsentForGood, Looked::Found(outcome("there"))] {
        assert_eq!(book.found(&own, &attempt, &looked), Err(Refused::Missing), "{looked:?}");
    }
    assert_eq!(book.found(&other, &attempt, &Looked::NotSeen), Ok(Attempt::Unknown));
}

/// An outside system with these effects.
struct Outside {
    id: SinkId,
    effects: Vec<&'static str>,
    checks_tokens: bool,
}

impl Probe for Outside {
    fn system(&self) -> &SinkId {
        &self.id
    }

    fn look<'a>(&'a self, _: &'a Token, attempt: &'a AttemptRecord) -> Answer<'a, Result<Looked, ProbeError>> {
        let asked = attempt.key.operation.as_str();
        let looked = match (asked, self.checks_tokens) {
            ("unreachable", _) => Err(ProbeError("no answer from the bank".to_owned())),
            (asked, _) if self.effects.contains(&asked) => Ok(Looked::Found(paid(asked))),
            (_, true) => Ok(Looked::AbsentForGood),
            (_, false) => Ok(Looked::NotSeen),
        };
        Box::pin(async { looked })
    }
}

fn paid(asked: &str) -> Outcome {
    outcome(asked)
}

fn bank(checks_tokens: bool) -> Outside {
    let id = SinkId::new("bank").unwrap_or_else(|error| unreachable!("{error}"));
    Outside { id, effects: vec!["there"], checks_tokens }
}

fn v5_reconciliation(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    let names = ["there", "absent", "unreachable"];
    let [there, absent, unreachable] = names.map(|name| book.marked(&first, name));
    assert_eq!(book.intend(&first, "intended"), Ok(Intended::Written));
    book.grant(&second);
    let ledger = book.0.ledger();
    // Nobody to ask: all stay as they are.
    let alone = patiently(|| answered(reconcile(ledger, &second, &[])));
    let alone = alone.unwrap_or_else(|refused| unreachable!("{refused}"));
    assert_eq!(alone.settled, Settled { unknown: 3, not_applied: 1 });
    assert_eq!(alone.unknown.len(), 3);
    // A system that checks no token: what is there is there, what is not seen says nothing.
    let open = patiently(|| answered(reconcile(ledger, &second, &[&bank(false)])));
    let open = open.unwrap_or_else(|refused| unreachable!("{refused}"));
    assert_eq!((open.applied, open.not_applied), (vec![there], vec![]));
    let stay: Vec<_> = open.unknown.iter().map(|(key, why)| (key, why.contains("bank"))).collect();
    assert_eq!(stay, [(&absent, false), (&unreachable, true)]);
    // One that is sealed for this token: what is absent is so for good.
    let sealed = patiently(|| answered(reconcile(ledger, &second, &[&bank(true)])));
    let sealed = sealed.unwrap_or_else(|refused| unreachable!("{refused}"));
    assert_eq!((sealed.applied, sealed.not_applied), (vec![], vec![absent]));
    assert_eq!(sealed.unknown.iter().map(|(key, _)| key).collect::<Vec<_>>(), [&unreachable]);
}

fn an_old_token_reconciles_nothing(book: &Book) {
    let (first, second) = (token(1), token(2));
    book.grant(&first);
    book.lost(&first, "there");
    book.grant(&second);
    let refused = patiently(|| answered(reconcile(book.0.ledger(), &first, &[&bank(true)])));
    assert_eq!(refused, Err(Refused::Token(stale(&first, &second))));
    assert_eq!(book.states("there"), [Attempt::Unknown]);
}
