//! The ledger inside the caller's own transaction.

mod book;
mod desk;
mod schema;

pub use schema::ledger_script;

use super::PostgresFence;
use super::place::SCHEMA;
use crate::SinkError;
use crate::ledger::{AttemptKey, AttemptRecord, Intended, Intent, Marked, NoEffect, Refused, Settled};
use book::Said;
use schema::Statements;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tenure_core::ledger::{Intending, Looked, Voice, intend, take_over};
use tenure_core::operation::{Attempt, Happening};
use tenure_core::{Epoch, OperationId, Outcome, Reason, Token};
use tokio_postgres::{Client, IsolationLevel, Transaction};

/// The ledger of calls in a PostgreSQL database, beside a sink under [`Rule::Sealed`](tenure_core::fence::Rule::Sealed).
/// Cheap to clone.
///
/// All calls take the caller's own transaction, as [`PostgresFence`]'s do, and check the token in it. At REPEATABLE READ and
/// above, two that speak of one attempt at once cannot both commit: repeat the transaction then.
///
/// # What is not guaranteed
///
/// * With `fsync=off`, or when a standby is promoted that had not received everything, marks that were answered are gone, and
///   their calls would be made again: compare with the outside systems' books before the workers start. With
///   `synchronous_commit=off` the mark waits for its own commit all the same.
/// * There is no door in SQL: a worker in another language cannot use it yet.
#[derive(Clone, Debug)]
pub struct PostgresLedger(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How the sink is called in messages.
    place: String,
    rights: String,
    schema: String,
    fence: PostgresFence,
    sql: Statements,
    /// Whether the version of the tables was looked at.
    looked: AtomicBool,
}

impl Default for PostgresLedger {
    /// The ledger in the schema `tenure`.
    fn default() -> Self {
        Self::of(SCHEMA, PostgresFence::default())
    }
}

impl PostgresLedger {
    /// The ledger in a schema of this name.
    ///
    /// # Errors
    /// [`SinkError::Address`] when the name would need quotes.
    pub fn in_schema(schema: &str) -> Result<Self, SinkError> {
        Ok(Self::of(schema, PostgresFence::in_schema(schema)?))
    }

    fn of(schema: &str, fence: PostgresFence) -> Self {
        Self(Arc::new(Shared {
            place: format!("schema {schema}"),
            rights: format!(
                "let the sink's owner run: GRANT SELECT, INSERT, UPDATE ON {schema}.ledger_attempt TO ROLE; GRANT SELECT ON \
                 {schema}.ledger_migration TO ROLE, with the role that writes"
            ),
            schema: schema.to_owned(),
            fence,
            sql: Statements::new(schema),
            looked: AtomicBool::new(false),
        }))
    }

    /// Creates the ledger's tables beside the sink's, where they are missing, and brings older ones up to this version, in a
    /// transaction of its own. The sink's tables stay as they are.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was installed. The sink must be there, under the rule
    /// [`Sealed`](tenure_core::fence::Rule::Sealed) or [`Held`](tenure_core::fence::Rule::Held).
    pub async fn install(&self, client: &mut Client) -> Result<(), SinkError> {
        let fail = |error: tokio_postgres::Error| self.explain("installing the ledger", &error);
        // At another level it would not see what it has waited for.
        let level = IsolationLevel::ReadCommitted;
        let tx = client.build_transaction().isolation_level(level).start().await.map_err(fail)?;
        // Others who do the same wait, and then find it done.
        let turn = format!("SELECT pg_advisory_xact_lock(1415933554, hashtext('{}'))", self.0.schema);
        tx.batch_execute(&turn).await.map_err(fail)?;
        let found = match tx.query_typed_one(&self.0.sql.is_there, &[]).await.map_err(fail)?.try_get(0).map_err(fail)? {
            true => tx.query_typed_one(&self.0.sql.version, &[]).await.map_err(fail)?.try_get(0).map_err(fail)?,
            false => 0,
        };
        if found > schema::VERSION {
            return Err(SinkError::schema(&self.0.place, found.into(), schema::VERSION.into()));
        }
        tx.batch_execute(&schema::steps(&self.0.schema, found)).await.map_err(fail)?;
        tx.commit().await.map_err(fail)
    }

    /// Writes an intent down, unless something speaks against the call. What older epochs have left of the same operation is
    /// settled with it. The inner `Err` is a refusal of the token: roll the transaction back.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was written. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn intent(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        intent: &Intent,
    ) -> Result<Result<Intended, Refused>, SinkError> {
        let seal_no = match self.open(tx, token).await? {
            Ok(seal_no) => seal_no,
            Err(refused) => return Ok(Err(refused)),
        };
        loop {
            let mut entries = self.entries(tx, &token.resource, &intent.operation).await?;
            for entry in &mut entries {
                if let Some(next) = take_over(entry, token.epoch) {
                    let key = key(token, &intent.operation, entry.epoch);
                    self.change(tx, &key, next, None, &Said::taken_over(token.epoch)).await?;
                    entry.state = next;
                }
            }
            let intending = intend(&entries, token.epoch, &intent.digest);
            if intending != Intending::Write || self.write(tx, token, seal_no, intent).await? {
                return Ok(Ok(intending.into()));
            }
            // Somebody else under this token was first, and is seen now.
        }
    }

    /// Marks the attempt of this epoch as sent, and commits the transaction: when this returns [`Marked`], the mark is
    /// durable, and the first byte may leave (L5). The inner `Err` is a refusal, and the transaction is rolled back.
    ///
    /// # Errors
    /// [`SinkError`]: whether it was marked is not known, so nothing may be sent.
    pub async fn sent(
        &self,
        tx: Transaction<'_>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Marked, Refused>, SinkError> {
        let fail = |error: tokio_postgres::Error| self.explain("committing the mark", &error);
        let key = key(token, operation, token.epoch);
        let said = self.say(&tx, token, &key, Happening::Marked, None, &Said::Nothing).await?;
        if let Err(refused) = said {
            tx.rollback().await.map_err(fail)?;
            return Ok(Err(refused));
        }
        tx.query_typed(self.0.sql.durable, &[]).await.map_err(fail)?;
        tx.commit().await.map_err(fail)?;
        Ok(Ok(Marked::new(key)))
    }

    /// Says that the answer came: the effect stands. Returns where the attempt stands; the inner `Err` is a refusal.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was written. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn done(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        outcome: &Outcome,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let key = key(token, operation, token.epoch);
        self.say(tx, token, &key, Happening::Confirmed, Some(outcome), &Said::Nothing).await
    }

    /// Says that the call had no effect, and what proves it. A timeout or a broken connection proves nothing: say
    /// [`unknown`](Self::unknown).
    ///
    /// # Errors
    /// As [`done`](Self::done).
    pub async fn failed(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        proof: NoEffect,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let key = key(token, operation, token.epoch);
        let said = Said::By(None, format!("{}: {why}", proof.name()));
        self.say(tx, token, &key, Happening::RefusedWithoutEffect, None, &said).await
    }

    /// Says that nobody knows: a timeout, a reset, an answer that makes no sense.
    ///
    /// # Errors
    /// As [`done`](Self::done).
    pub async fn unknown(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        why: &Reason,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let key = key(token, operation, token.epoch);
        self.say(tx, token, &key, Happening::Unanswered, None, &Said::By(None, why.to_string())).await
    }

    /// Every attempt of an operation under the token's resource, in the order of their epochs. The inner `Err` refuses the
    /// token: only for the holder is what it reads still so when it commits.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read.
    pub async fn lookup(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Vec<AttemptRecord>, Refused>, SinkError> {
        if let Err(refused) = self.open(tx, token).await? {
            return Ok(Err(refused));
        }
        let mut attempts = self.attempts(tx, operation).await?;
        attempts.retain(|attempt| attempt.key.resource == token.resource);
        Ok(Ok(attempts))
    }

    /// Settles what older epochs of the token's resource have left, once the token is registered here: what was marked is
    /// unknown, and what was a mere intent is not applied. May be repeated.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was written. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn settle_after_seal(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
    ) -> Result<Result<Settled, Refused>, SinkError> {
        if let Err(refused) = self.open(tx, token).await? {
            return Ok(Err(refused));
        }
        let mut settled = Settled::default();
        for (operation, entry) in self.left(tx, token).await? {
            let Some(next) = take_over(&entry, token.epoch) else { continue };
            let key = key(token, &operation, entry.epoch);
            self.change(tx, &key, next, None, &Said::taken_over(token.epoch)).await?;
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
    pub async fn found(
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
        let said = Said::By(None, format!("looked for under epoch {}", token.epoch));
        if let Some(news) = looked.happening() {
            return self.say(tx, token, attempt, news, outcome, &said).await;
        }
        // It proves nothing, and changes nothing.
        if let Err(refused) = self.open(tx, token).await? {
            return Ok(Err(refused));
        }
        if attempt.resource != token.resource {
            return Ok(Err(Refused::Missing));
        }
        Ok(self.entry(tx, attempt).await?.map(|entry| entry.state).ok_or(Refused::Missing))
    }

    /// Checks the token and the tables. The number of its seal.
    async fn open(&self, tx: &Transaction<'_>, token: &Token) -> Result<Result<u64, Refused>, SinkError> {
        let seal_no = match self.0.fence.admit(tx, token).await? {
            Ok(admitted) => admitted.seal_no(),
            Err(verdict) => return Ok(Err(Refused::Token(verdict))),
        };
        self.version(tx).await?;
        Ok(Ok(seal_no))
    }

    /// The holder of `token` speaks of an attempt.
    async fn say(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        attempt: &AttemptKey,
        news: Happening,
        outcome: Option<&Outcome>,
        said: &Said,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        if let Err(refused) = self.open(tx, token).await? {
            return Ok(Err(refused));
        }
        if attempt.resource != token.resource {
            return Ok(Err(Refused::Missing));
        }
        self.speak(tx, attempt, (Voice::Holder(token.epoch), news), outcome, said).await
    }
}

fn key(token: &Token, operation: &OperationId, epoch: Epoch) -> AttemptKey {
    AttemptKey { resource: token.resource.clone(), operation: operation.clone(), epoch }
}
