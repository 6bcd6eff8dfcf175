//! The suite that every ledger passes. Each function checks a clause of [`Ledger`]'s contract.
//!
//! A ledger's own tests implement [`LedgerUnderTest`] and call [`run_ledger`].

mod calls;
mod looking;
mod taking_over;

use super::world::{answered, operation, patiently, token};
use crate::digest_of;
use crate::ledger::{AttemptKey, AttemptRecord, Intended, Intent, Ledger, Marked, NoEffect, Refused, Settled, Which};
use crate::{Sink, SinkError};
use std::collections::BTreeSet;
use tenure_core::fence::Sealing;
use tenure_core::ledger::Looked;
use tenure_core::operation::Attempt;
use tenure_core::{OperationId, Outcome, OwnerName, Reason, SinkId, Token};

/// A ledger with a way to write through it, each call in a transaction of its own that is committed unless the call was
/// refused. Its sink is under the rule `Sealed`.
pub trait LedgerUnderTest: Send + Sync {
    /// The sink in whose store it is. Its bound on waiting should be short, some hundred milliseconds.
    fn sink(&self) -> &dyn Sink;

    /// The ledger as a new holder sees it.
    fn ledger(&self) -> &dyn Ledger;

    /// The same place, opened anew with nothing shared in memory, as another process would.
    fn another(&self) -> Box<dyn LedgerUnderTest>;

    /// Writes an intent down.
    ///
    /// # Errors
    /// The ledger's, here and below.
    fn intent(&self, token: &Token, intent: &Intent) -> Result<Result<Intended, Refused>, SinkError>;

    /// The same, in a transaction that is rolled back.
    fn intent_rolled_back(&self, token: &Token, intent: &Intent);

    /// Marks the attempt.
    ///
    /// # Errors
    /// As above.
    fn sent(&self, token: &Token, operation: &OperationId) -> Result<Result<Marked, Refused>, SinkError>;

    /// Says that the effect stands.
    ///
    /// # Errors
    /// As above.
    fn done(
        &self,
        token: &Token,
        operation: &OperationId,
        outcome: &Outcome,
    ) -> Result<Result<Attempt, Refused>, SinkError>;

    /// Says that there was no effect.
    ///
    /// # Errors
    /// As above.
    fn failed(
        &self,
        token: &Token,
        operation: &OperationId,
        proof: NoEffect,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError>;

    /// Says that nobody knows.
    ///
    /// # Errors
    /// As above.
    fn unknown(
        &self,
        token: &Token,
        operation: &OperationId,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError>;

    /// Looks an operation up.
    ///
    /// # Errors
    /// As above.
    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Vec<AttemptRecord>, Refused>, SinkError>;
}

/// Runs every clause, each on a ledger of its own. Prints each name before it runs.
///
/// # Panics
/// When a clause does not hold.
pub fn run_ledger(make: impl Fn() -> Box<dyn LedgerUnderTest>) {
    for (name, clause) in [calls::CLAUSES, taking_over::CLAUSES, looking::CLAUSES].concat() {
        eprintln!("  ledger: {name}");
        clause(&Book(make()));
    }
}

type Clause = (&'static str, fn(&Book));

/// One ledger of one clause.
struct Book(Box<dyn LedgerUnderTest>);

impl Book {
    /// Seals a token, as a takeover does before it is announced.
    #[track_caller]
    fn grant(&self, token: &Token) {
        let generation = patiently(|| answered(self.0.sink().describe(&token.resource))).generation;
        let sealing = patiently(|| answered(self.0.sink().seal(token, &generation, &BTreeSet::new())));
        assert!(matches!(sealing, Sealing::Seal(_)), "{token} was not sealed: {sealing:?}");
    }

    #[track_caller]
    fn intend(&self, token: &Token, name: &str) -> Result<Intended, Refused> {
        patiently(|| self.0.intent(token, &intent(name)))
    }

    #[track_caller]
    fn mark(&self, token: &Token, name: &str) -> Result<AttemptKey, Refused> {
        patiently(|| self.0.sent(token, &operation(name))).map(|marked| marked.key().clone())
    }

    #[track_caller]
    fn done(&self, token: &Token, name: &str) -> Result<Attempt, Refused> {
        patiently(|| self.0.done(token, &operation(name), &outcome(name)))
    }

    #[track_caller]
    fn failed(&self, token: &Token, name: &str) -> Result<Attempt, Refused> {
        patiently(|| self.0.failed(token, &operation(name), NoEffect::Refused, &reason("no such card")))
    }

    #[track_caller]
    fn unknown(&self, token: &Token, name: &str) -> Result<Attempt, Refused> {
        patiently(|| self.0.unknown(token, &operation(name), &reason("no answer")))
    }

    #[track_caller]
    fn settle(&self, token: &Token) -> Result<Settled, Refused> {
        patiently(|| answered(self.0.ledger().settle(token)))
    }

    #[track_caller]
    fn found(&self, token: &Token, attempt: &AttemptKey, looked: &Looked) -> Result<Attempt, Refused> {
        patiently(|| answered(self.0.ledger().found(token, attempt, looked)))
    }

    /// An attempt that was intended and marked.
    #[track_caller]
    fn marked(&self, token: &Token, name: &str) -> AttemptKey {
        assert_eq!(self.intend(token, name), Ok(Intended::Written));
        let marked = self.mark(token, name);
        assert_eq!(marked, Ok(key(token, name)));
        key(token, name)
    }

    /// The same, and unknown since.
    #[track_caller]
    fn lost(&self, token: &Token, name: &str) -> AttemptKey {
        let key = self.marked(token, name);
        assert_eq!(self.unknown(token, name), Ok(Attempt::Unknown));
        key
    }

    #[track_caller]
    fn list(&self, which: Which) -> Vec<AttemptRecord> {
        patiently(|| answered(self.0.ledger().list(which, None, None, 1_000)))
    }

    /// Where each attempt of an operation stands, in the order of their epochs.
    #[track_caller]
    fn states(&self, name: &str) -> Vec<Attempt> {
        let attempts = patiently(|| answered(self.0.ledger().attempts(&operation(name))));
        attempts.into_iter().map(|attempt| attempt.state).collect()
    }
}

fn intent(name: &str) -> Intent {
    let system = SinkId::new("bank").unwrap_or_else(|error| unreachable!("{error}"));
    let owner = OwnerName::new("alice@db3/4711").unwrap_or_else(|error| unreachable!("{error}"));
    Intent { operation: operation(name), digest: digest_of(name.as_bytes()), system, owner }
}

fn key(token: &Token, name: &str) -> AttemptKey {
    AttemptKey { resource: token.resource.clone(), operation: operation(name), epoch: token.epoch }
}

fn outcome(name: &str) -> Outcome {
    Outcome::new(format!("paid {name}")).unwrap_or_else(|error| unreachable!("{error}"))
}

fn reason(text: &str) -> Reason {
    Reason::new(text).unwrap_or_else(|error| unreachable!("{error}"))
}
