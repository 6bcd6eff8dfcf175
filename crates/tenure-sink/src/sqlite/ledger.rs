//! The ledger inside the caller's own transaction.

mod book;
mod schema;

use super::failure::{place_of, sink_error};
use super::{SqliteFence, SqliteSink};
use crate::ledger::{
    AttemptKey, AttemptRecord, Decision, Intended, Intent, Ledger, Marked, NoEffect, Probe, ProbeError, Refused,
    Settled, Which,
};
use crate::{Answer, Lookup, SinkError};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tenure_core::fence::Rule;
use tenure_core::ledger::{Intending, Looked, Voice, intend, take_over};
use tenure_core::operation::{Attempt, Happening};
use tenure_core::{Actor, OperationId, Outcome, Reason, ResourceName, SinkId, Token};

/// The ledger of calls in a SQLite database, beside a fence under [`Rule::Sealed`] or [`Rule::Held`]. A cheap value: keep one, copy it,
/// make it anew.
///
/// All calls take the caller's own transaction, as [`SqliteFence`]'s do, and check the token in it. Begin it with
/// `IMMEDIATE`.
///
/// ```
/// # use tenure_core::{Epoch, GrantId, OperationId, Outcome, ResourceName, SinkId, Token, fence::Rule};
/// # use tenure_sink::conformance::answered;
/// # use tenure_sink::ledger::{Intended, Intent};
/// # use tenure_sink::{Sink, SqliteLedger, SqliteSink, digest_of};
/// # use rusqlite::{Connection, TransactionBehavior::Immediate};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// # let sink = SqliteSink::create(&path, SinkId::new("shop")?, Rule::Sealed)?;
/// # let token = Token { resource: ResourceName::new("orders")?, epoch: Epoch::FIRST, grant: GrantId::from_bits(7) };
/// # let generation = answered(sink.describe(&token.resource))?.generation;
/// # let _ = answered(sink.seal(&token, &generation, &Default::default()))?;
/// # let charge = |_key: &str| Ok::<_, std::io::Error>("charge 4711");
/// let ledger = SqliteLedger::new();
/// let mut connection = Connection::open(&path)?;
/// ledger.install(&connection)?; // once, beside the fence
///
/// let request = b"charge 12.50 to card 9";
/// let intent = Intent {
///     operation: OperationId::for_intent("order-81", "charge", &digest_of(request))?,
///     digest: digest_of(request),
///     system: SinkId::new("bank")?,
///     owner: "alice@db3/4711".parse()?,
/// };
/// let tx = connection.transaction_with_behavior(Immediate)?;
/// let intended = ledger.intent(&tx, &token, &intent)?;
/// tx.commit()?; // with whatever else belongs to the decision
/// if intended == Ok(Intended::Written) {
///     let tx = connection.transaction_with_behavior(Immediate)?;
///     if let Ok(marked) = ledger.sent(tx, &token, &intent.operation)? {
///         let answer = charge(marked.key().operation.as_str()); // the first byte leaves after the mark
///         let tx = connection.transaction_with_behavior(Immediate)?;
///         let told = match answer {
///             Ok(outcome) => ledger.done(&tx, &token, &intent.operation, &Outcome::new(outcome)?)?,
///             Err(error) => ledger.unknown(&tx, &token, &intent.operation, &error.to_string().parse()?)?,
///         };
///         tx.commit()?;
/// #       assert!(told.is_ok());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteLedger;

impl SqliteLedger {
    /// A ledger. Its tables are made by [`install`](Self::install).
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// Creates the ledger's tables beside the fence's, where they are missing, and brings older ones up to this version. In an
    /// open transaction that becomes part of it, as a migration wants; otherwise it uses one of its own.
    ///
    /// The fence's tables stay as they are: a program that knows no ledger goes on with them.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was installed. The fence must be there, under [`Rule::Sealed`] or [`Rule::Held`].
    pub fn install(&self, connection: &Connection) -> Result<(), SinkError> {
        under_its_rule(|rule| super::rows::namespace(connection, rule))?;
        if !connection.is_autocommit() {
            return book::install(connection);
        }
        let fail = |error| sink_error(connection, "installing the ledger", error);
        let tx = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
        book::install(&tx)?;
        tx.commit().map_err(fail)
    }

    /// Writes an intent down, unless something speaks against the call. What older epochs have left of the same operation is
    /// settled with it. The inner `Err` is the verdict that refuses the token: roll the transaction back.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was written. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub fn intent(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        intent: &Intent,
    ) -> Result<Result<Intended, Refused>, SinkError> {
        let seal_no = match self.open(tx, token)? {
            Ok(seal_no) => seal_no,
            Err(refused) => return Ok(Err(refused)),
        };
        let mut entries = book::entries(tx, &token.resource, &intent.operation)?;
        for entry in &mut entries {
            if let Some(next) = take_over(entry, token.epoch) {
                let key = key(token, &intent.operation, entry.epoch);
                book::change(tx, &key, next, None, &book::Said::taken_over(token.epoch))?;
                entry.state = next;
            }
        }
        let intending = intend(&entries, token.epoch, &intent.digest);
        if intending == Intending::Write {
            book::write(tx, token, seal_no, intent)?;
        }
        Ok(Ok(intending.into()))
    }

    /// Marks the attempt of this epoch as sent, and commits the transaction: when this returns [`Marked`], the mark is
    /// durable, and the first byte may leave (L5). The inner `Err` is a refusal, and the transaction is rolled back.
    ///
    /// # Errors
    /// [`SinkError`]: whether it was marked is not known, so nothing may be sent. [`SinkError::NotDurable`] when the connection's
    /// `PRAGMA synchronous` is below `FULL`: a power failure could take the mark of a call that was made.
    pub fn sent(
        &self,
        tx: Transaction<'_>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Marked, Refused>, SinkError> {
        book::durable(&tx)?;
        let key = key(token, operation, token.epoch);
        if let Err(refused) = self.say(&tx, token, &key, Happening::Marked, None, &book::Said::Nothing)? {
            return Ok(Err(refused));
        }
        let place = place_of(&tx);
        tx.commit().map_err(|error| super::failure::named_error(&place, super::WAIT, "committing the mark", &error))?;
        Ok(Ok(Marked::new(key)))
    }

    /// Says that the answer came: the effect stands. Returns where the attempt stands; the inner `Err` is a refusal.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was written. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub fn done(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        outcome: &Outcome,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let key = key(token, operation, token.epoch);
        self.say(tx, token, &key, Happening::Confirmed, Some(outcome), &book::Said::Nothing)
    }

    /// Says that the call had no effect, and what proves it. A timeout or a broken connection proves nothing: say
    /// [`unknown`](Self::unknown).
    ///
    /// # Errors
    /// As [`done`](Self::done).
    pub fn failed(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        proof: NoEffect,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let key = key(token, operation, token.epoch);
        let said = book::Said::By(None, format!("{}: {why}", proof.name()));
        self.say(tx, token, &key, Happening::RefusedWithoutEffect, None, &said)
    }

    /// Says that nobody knows: a timeout, a reset, an answer that makes no sense.
    ///
    /// # Errors
    /// As [`done`](Self::done).
    pub fn unknown(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let key = key(token, operation, token.epoch);
        self.say(tx, token, &key, Happening::Unanswered, None, &book::Said::By(None, why.to_string()))
    }

    /// Every attempt of an operation under the token's resource, in the order of their epochs. The inner `Err` refuses the
    /// token: only for the holder is what it reads still so when it commits.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read.
    pub fn lookup(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Vec<AttemptRecord>, Refused>, SinkError> {
        if let Err(refused) = self.open(tx, token)? {
            return Ok(Err(refused));
        }
        let mut attempts = book::attempts(tx, operation)?;
        attempts.retain(|attempt| attempt.key.resource == token.resource);
        Ok(Ok(attempts))
    }

    /// Settles what older epochs of the token's resource have left, once the token is registered here: what was marked is
    /// unknown, and what was a mere intent is not applied. May be repeated.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was written. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub fn settle_after_seal(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
    ) -> Result<Result<Settled, Refused>, SinkError> {
        if let Err(refused) = self.open(tx, token)? {
            return Ok(Err(refused));
        }
        let mut settled = Settled::default();
        for (operation, entry) in book::left(tx, token)? {
            let Some(next) = take_over(&entry, token.epoch) else { continue };
            let key = key(token, &operation, entry.epoch);
            book::change(tx, &key, next, None, &book::Said::taken_over(token.epoch))?;
            match next {
                Attempt::NotApplied => settled.not_applied += 1,
                _ => settled.unknown += 1,
            }
        }
        Ok(Ok(settled))
    }

    /// Writes down what a look-up under this token has shown of an attempt. Returns where it stands.
    ///
    /// # Errors
    /// As [`done`](Self::done).
    pub fn found(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        attempt: &AttemptKey,
        looked: &Looked,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let outcome = match looked {
            Looked::Found(outcome) => Some(outcome),
            Looked::AbsentForGood | Looked::NotSeen => None,
        };
        let said = book::Said::By(None, format!("looked for under epoch {}", token.epoch));
        if let Some(news) = looked.happening() {
            return self.say(tx, token, attempt, news, outcome, &said);
        }
        // It proves nothing, and changes nothing.
        if let Err(refused) = self.open(tx, token)? {
            return Ok(Err(refused));
        }
        if attempt.resource != token.resource {
            return Ok(Err(Refused::Missing));
        }
        Ok(book::entry(tx, attempt)?.map(|entry| entry.state).ok_or(Refused::Missing))
    }

    /// Checks the token, which makes a deferred transaction a writer before it reads anything, and the tables. The number of
    /// its seal.
    fn open(&self, tx: &Transaction<'_>, token: &Token) -> Result<Result<u64, Refused>, SinkError> {
        let seal_no = match under_its_rule(|rule| SqliteFence::new(rule).admit(tx, token))? {
            Ok(admitted) => admitted.seal_no(),
            Err(verdict) => return Ok(Err(Refused::Token(verdict))),
        };
        book::version(tx)?;
        Ok(Ok(seal_no))
    }

    /// The holder of `token` speaks of an attempt.
    fn say(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        attempt: &AttemptKey,
        news: Happening,
        outcome: Option<&Outcome>,
        said: &book::Said,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        if let Err(refused) = self.open(tx, token)? {
            return Ok(Err(refused));
        }
        if attempt.resource != token.resource {
            return Ok(Err(Refused::Missing));
        }
        book::speak(tx, attempt, Voice::Holder(token.epoch), news, outcome, said)
    }
}

/// Asks the fence under the rule that it has: one that is sealed.
fn under_its_rule<T>(ask: impl Fn(Rule) -> Result<T, SinkError>) -> Result<T, SinkError> {
    match ask(Rule::Sealed) {
        Err(SinkError::Rule { found, .. }) if found == Rule::Held.name() => ask(Rule::Held),
        answer => answer,
    }
}

fn key(token: &Token, operation: &OperationId, epoch: tenure_core::Epoch) -> AttemptKey {
    AttemptKey { resource: token.resource.clone(), operation: operation.clone(), epoch }
}

impl Ledger for SqliteSink {
    fn id(&self) -> &SinkId {
        &self.0.id
    }

    fn list<'a>(
        &'a self,
        which: Which,
        resource: Option<&'a ResourceName>,
        after: Option<&'a AttemptKey>,
        limit: usize,
    ) -> Answer<'a, Result<Vec<AttemptRecord>, SinkError>> {
        let (resource, after) = (resource.cloned(), after.cloned());
        self.answer(move |place| {
            let connection = place.existing()?;
            book::version(&connection)?;
            book::list(&connection, which, resource.as_ref(), after.as_ref(), limit)
        })
    }

    fn attempts<'a>(&'a self, operation: &'a OperationId) -> Answer<'a, Result<Vec<AttemptRecord>, SinkError>> {
        let operation = operation.clone();
        self.answer(move |place| {
            let connection = place.existing()?;
            book::version(&connection)?;
            book::attempts(&connection, &operation)
        })
    }

    fn settle<'a>(&'a self, token: &'a Token) -> Answer<'a, Result<Result<Settled, Refused>, SinkError>> {
        let token = token.clone();
        self.answer(move |place| place.transact(|tx| SqliteLedger.settle_after_seal(tx, &token)))
    }

    fn found<'a>(
        &'a self,
        token: &'a Token,
        attempt: &'a AttemptKey,
        looked: &'a Looked,
    ) -> Answer<'a, Result<Result<Attempt, Refused>, SinkError>> {
        let (token, attempt, looked) = (token.clone(), attempt.clone(), looked.clone());
        self.answer(move |place| place.transact(|tx| SqliteLedger.found(tx, &token, &attempt, &looked)))
    }

    fn decide<'a>(
        &'a self,
        attempt: &'a AttemptKey,
        decision: &'a Decision,
        by: &'a Actor,
        why: &'a Reason,
    ) -> Answer<'a, Result<Result<Attempt, Refused>, SinkError>> {
        let (attempt, decision) = (attempt.clone(), decision.clone());
        let said = book::Said::By(Some(by.clone()), why.to_string());
        self.answer(move |place| {
            place.transact(|tx| {
                under_its_rule(|rule| super::rows::namespace(tx, rule))?;
                book::version(tx)?;
                let (news, outcome) = match &decision {
                    Decision::Applied(outcome) => (Happening::Found, outcome.as_ref()),
                    Decision::NotApplied => (Happening::Absent, None),
                };
                book::speak(tx, &attempt, Voice::Person, news, outcome, &said)
            })
        })
    }
}

/// A sink under [`Rule::Sealed`] as an outside system of another ledger: it finds the effects that were applied here under
/// an operation's id, and an absence under a token that is registered here is for good.
impl Probe for SqliteSink {
    fn system(&self) -> &SinkId {
        &self.0.id
    }

    fn look<'a>(&'a self, token: &'a Token, attempt: &'a AttemptRecord) -> Answer<'a, Result<Looked, ProbeError>> {
        let (token, operation, rule) = (token.clone(), attempt.key.operation.clone(), self.0.rule);
        let found =
            self.answer(move |place| place.transact(|tx| SqliteFence::new(rule).lookup(tx, &token, &operation)));
        Box::pin(async move {
            match found.await.map_err(|error| ProbeError(error.to_string()))? {
                Ok(Lookup::Found(found)) => Ok(Looked::Found(found.outcome)),
                Ok(Lookup::Absent) if rule.is_sealed() => Ok(Looked::AbsentForGood),
                Ok(Lookup::Absent) => Ok(Looked::NotSeen),
                Err(verdict) => Err(ProbeError(format!("the look-up was refused: {verdict}"))),
            }
        })
    }
}
