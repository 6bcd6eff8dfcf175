//! Processes that are killed in the midst of a call, by the kernel and without a last word.

use super::{Database, intent};
use crate::process::{Process, job, say, wait_for_go};
use crate::{operation, seal, token};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use tenure_core::fence::Sealing;
use tenure_core::operation::Attempt;
use tenure_sink::SqliteLedger;
use tenure_sink::conformance::{LedgerUnderTest, answered};
use tenure_sink::ledger::{Intended, Ledger, Settled, Which};

const ENTRY: &str = "ledger::crashes::child";

/// What the child does: a call, and a word after each step of it. In the ordinary run there is no job.
#[test]
fn child() {
    let Some((job, place)) = job() else { return };
    let mut connection = Connection::open(place).unwrap();
    let stop_at = |point: &str| {
        if job == point {
            say(point);
            wait_for_go();
        }
    };
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert_eq!(SqliteLedger.intent(&tx, &token(1), &intent("one")).unwrap(), Ok(Intended::Written));
    stop_at("before-intent");
    tx.commit().unwrap();
    stop_at("after-intent");
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    if let Err(refused) = SqliteLedger.sent(tx, &token(1), &operation("one")).unwrap() {
        return say(format_args!("refused: {refused}"));
    }
    stop_at("after-mark");
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let outcome = "paid".parse().unwrap();
    assert_eq!(SqliteLedger.done(&tx, &token(1), &operation("one"), &outcome).unwrap(), Ok(Attempt::Done));
    stop_at("before-answer");
    tx.commit().unwrap();
    stop_at("after-answer");
}

fn killed_at(point: &str) -> Database {
    let database = Database::create();
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let path: &Path = &database.path();
    let mut worker = Process::start(ENTRY, point, path);
    assert_eq!(worker.hear().as_deref(), Some(point));
    worker.kill();
    database
}

/// Wherever the worker dies, what the next one finds is true: nothing is called done that is not, and nothing is called
/// not applied that may have been sent.
#[test]
fn a_worker_killed_anywhere_leaves_a_true_book() {
    for (point, before, after) in [
        ("before-intent", None, None),
        ("after-intent", Some(Attempt::Intent), Some(Attempt::NotApplied)),
        ("after-mark", Some(Attempt::Sent), Some(Attempt::Unknown)),
        ("before-answer", Some(Attempt::Sent), Some(Attempt::Unknown)),
        ("after-answer", Some(Attempt::Done), Some(Attempt::Done)),
    ] {
        let database = killed_at(point);
        let state = || {
            let all = answered(database.sink.list(Which::All, None, None, 10)).unwrap();
            all.first().map(|attempt| attempt.state)
        };
        assert_eq!(state(), before, "{point}");
        assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
        let settled = answered(database.sink.settle(&token(2))).unwrap();
        assert!(settled.is_ok(), "{point}: {settled:?}");
        assert_eq!(state(), after, "{point}");
        let again = database.intent(&token(2), &intent("one")).unwrap().unwrap();
        let may_run = matches!(after, None | Some(Attempt::NotApplied));
        assert_eq!(again == Intended::Written, may_run, "{point}: {again:?}");
    }
}

/// A worker that is stopped between its intent and its mark, overtaken, and woken.
#[test]
fn a_worker_that_wakes_up_before_its_mark_sends_nothing() {
    let database = Database::create();
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut worker = Process::start(ENTRY, "after-intent", &database.path());
    assert_eq!(worker.hear().as_deref(), Some("after-intent"));
    worker.stop();
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
    let settled = answered(database.sink.settle(&token(2))).unwrap();
    assert_eq!(settled, Ok(Settled { unknown: 0, not_applied: 1 }));
    worker.resume();
    worker.go();
    let said = worker.hear().unwrap();
    assert!(said.starts_with("refused: stale"), "{said}");
    let [attempt] = answered(database.sink.list(Which::All, None, None, 10)).unwrap().try_into().unwrap();
    assert_eq!(attempt.state, Attempt::NotApplied);
}
