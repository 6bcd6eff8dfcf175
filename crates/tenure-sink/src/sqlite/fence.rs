//! The fence inside the caller's own transaction.

use super::failure::sink_error;
use super::savepoint::{Savepoint, still_open};
use super::{held, rows, schema};
use crate::{ApplyError, Found, Lookup, SinkError};
use rusqlite::{Connection, Transaction, TransactionBehavior, TransactionState, params};
use std::marker::PhantomData;
use tenure_core::fence::{Admission, Rule, admit};
use tenure_core::{Digest, Epoch, OperationId, Outcome, Replayed, Token, Verdict};

/// The fence of the database in which the effects land. A cheap value: keep one, copy it, make it anew.
///
/// All calls take the caller's own transaction, and change nothing that its rollback does not undo. Begin that transaction
/// with `IMMEDIATE`: a deferred one is made a writer by the first call here, and must be repeated when it had read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteFence {
    rule: Rule,
}

/// The proof that a token was admitted in this transaction. Nobody can seal a newer one until the transaction ends.
#[derive(Debug)]
#[must_use = "a token that was not admitted must not write"]
pub struct Admitted<'t> {
    epoch: Epoch,
    seal_no: u64,
    transaction: PhantomData<&'t Connection>,
}

impl Admitted<'_> {
    /// The epoch that was admitted.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The place of this write between two seals.
    #[must_use]
    pub const fn seal_no(&self) -> u64 {
        self.seal_no
    }
}

impl SqliteFence {
    /// A fence under a rule, which must be the one under which the database's tables were installed.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule }
    }

    /// Creates the fence's tables in the caller's own database, where they are missing. In an open transaction they
    /// become part of it, as a migration wants; otherwise it uses one of its own.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was installed. Also when tables of another version or rule are there, and under [`Rule::Held`]
    /// when no authority is in the database.
    pub fn install(&self, connection: &Connection) -> Result<(), SinkError> {
        if !connection.is_autocommit() {
            return self.install_within(connection);
        }
        let fail = |error| sink_error(connection, "installing the fence", error);
        let tx = Transaction::new_unchecked(connection, TransactionBehavior::Immediate).map_err(fail)?;
        self.install_within(&tx)?;
        tx.commit().map_err(fail)
    }

    fn install_within(&self, connection: &Connection) -> Result<(), SinkError> {
        let fail = |error| sink_error(connection, "installing the fence", error);
        held::expect(connection, self.rule)?;
        connection.execute_batch(schema::CREATE).map_err(fail)?;
        connection.execute(schema::IDENTIFY, params![schema::VERSION, self.rule.name()]).map_err(fail)?;
        rows::namespace(connection, self.rule)?;
        Ok(())
    }

    /// Checks the token. The inner `Err` is the verdict that refuses it: roll the transaction back.
    ///
    /// An admitted token costs one read, and another one under [`Rule::Held`]; the fence's row is written only when
    /// [`Rule::HighWater`] raises it.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was judged. Roll the transaction back, and repeat it when
    /// [`SinkError::is_transient`].
    pub fn admit<'t>(
        &self,
        tx: &'t Transaction<'_>,
        token: &Token,
    ) -> Result<Result<Admitted<'t>, Verdict>, SinkError> {
        still_open(tx)?;
        become_writer(tx)?;
        let standing = rows::standing(tx, self.rule, &token.resource)?;
        let namespace = &standing.namespace;
        let seal_no = match admit(self.rule, standing.row.as_ref(), namespace.floor, &namespace.generation, token) {
            Admission::Admit => standing.row.map_or(0, |row| row.seal_no),
            Admission::Raise(row) => {
                rows::put(tx, &token.resource, &row)?;
                row.seal_no
            }
            Admission::Refuse(verdict) => return Ok(Err(verdict)),
        };
        // Within the write lock: neither the authority's records nor the fence change until this transaction ends.
        if self.rule == Rule::Held
            && let Err(over) = held::judge(tx, token)?
        {
            return Ok(Err(Verdict::Over(over)));
        }
        Ok(Ok(Admitted { epoch: token.epoch, seal_no, transaction: PhantomData }))
    }

    /// Checks the token, then applies an operation at most once per resource, and records it: all of it together.
    ///
    /// The effect runs only for [`Verdict::Written`]; it returns the outcome that a replay will get. Commit on `Written`
    /// and `Replay`; on the others there is nothing to commit.
    ///
    /// # Errors
    /// [`ApplyError`]: nothing of the operation stands, and the transaction is as it was before. Roll it back.
    pub fn apply<E>(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        digest: &Digest,
        effect: impl FnOnce(&Transaction<'_>) -> Result<Outcome, E>,
    ) -> Result<Verdict, ApplyError<E>> {
        still_open(tx)?;
        let savepoint = Savepoint::begin(tx)?;
        let admitted = match self.admit(tx, token)? {
            Ok(admitted) => admitted,
            Err(verdict) => return Ok(verdict),
        };
        if let Some(found) = rows::find(tx, &token.resource, operation)? {
            savepoint.keep()?;
            return Ok(if found.digest == *digest {
                Verdict::Replay(Replayed { epoch: found.epoch, outcome: found.outcome })
            } else {
                Verdict::Conflict { current: found.epoch }
            });
        }
        let outcome = effect(tx).map_err(ApplyError::Effect)?;
        still_open(tx)?;
        let found = Found { epoch: token.epoch, digest: *digest, outcome };
        rows::record(tx, &token.resource, operation, admitted.seal_no, &found)?;
        savepoint.keep()?;
        Ok(Verdict::Written)
    }

    /// Looks for the effect of an operation, for a token that is admitted. The inner `Err` is the verdict that refuses
    /// the token: only the holder may ask, because only for the holder is an absence final.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub fn lookup(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Lookup, Verdict>, SinkError> {
        if let Err(verdict) = self.admit(tx, token)? {
            return Ok(Err(verdict));
        }
        Ok(Ok(rows::find(tx, &token.resource, operation)?.map_or(Lookup::Absent, Lookup::Found)))
    }
}

/// Makes a deferred transaction a writer, before it reads the fence. Otherwise a seal could return while a transaction
/// that has checked an older token is still open (I10).
fn become_writer(tx: &Transaction<'_>) -> Result<(), SinkError> {
    let fail = |error| sink_error(tx, "taking the write lock", error);
    if tx.transaction_state(Some("main")).map_err(fail)? != TransactionState::Write {
        tx.prepare_cached(schema::TAKE_WRITE_LOCK).map_err(fail)?.execute([]).map_err(fail)?;
    }
    Ok(())
}
