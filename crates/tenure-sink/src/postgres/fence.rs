//! The fence inside the caller's own transaction.

use super::failure::{Where, explained};
use super::place::{SCHEMA, bad_schema, is_plain_name};
use super::rows::{Answered, Read, Standing, first};
use crate::{ApplyError, Lookup, SinkError};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{Digest, Epoch, OperationId, Outcome, Replayed, Token, Verdict};
use tokio_postgres::Transaction;
use tokio_postgres::types::{ToSql, Type};

/// The fence of a database in which the effects land. Cheap to clone; the rule is the one under which the sink was made.
///
/// All calls take the caller's own transaction, and change nothing that its rollback does not undo. A statement of one's own
/// may be sent along with [`admit`](Self::admit), by polling both futures together (`tokio::join!`): it costs no round trip
/// of its own then. What it did must be rolled back when the token is refused.
#[derive(Clone, Debug)]
pub struct PostgresFence(pub(super) Arc<Statements>);

/// What is sent. Unnamed, so that it works behind a pooler.
#[derive(Debug)]
pub(super) struct Statements {
    /// How the sink is called in messages.
    pub(super) place: String,
    pub(super) rights: String,
    pub(super) admit: Arc<str>,
    pub(super) judge: Arc<str>,
    pub(super) find: Arc<str>,
    pub(super) claim: Arc<str>,
    pub(super) record: Arc<str>,
}

/// The proof that a token was admitted in this transaction. Nobody can seal a newer one until the transaction ends.
#[derive(Debug)]
#[must_use = "a token that was not admitted must not write"]
pub struct Admitted<'t> {
    pub(super) epoch: Epoch,
    pub(super) seal_no: u64,
    pub(super) transaction: PhantomData<&'t ()>,
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

impl Default for PostgresFence {
    /// The fence in the schema `tenure`.
    fn default() -> Self {
        Self(Arc::new(Statements::new(SCHEMA)))
    }
}

impl PostgresFence {
    /// The fence in a schema of this name.
    ///
    /// # Errors
    /// [`SinkError::Address`] when the name would need quotes.
    pub fn in_schema(schema: &str) -> Result<Self, SinkError> {
        if !is_plain_name(schema) {
            return Err(SinkError::Address { url: schema.to_owned(), why: bad_schema(schema) });
        }
        Ok(Self(Arc::new(Statements::new(schema))))
    }

    /// Checks the token. The inner `Err` is the verdict that refuses it: roll the transaction back.
    ///
    /// An admitted token costs one round trip, which keeps a seal out and does not write the fence's row, unless
    /// [`Rule::HighWater`](tenure_core::fence::Rule::HighWater) raises it; one that is refused costs two. While a seal is under way it waits, as long as
    /// the session's `lock_timeout` lets it. Under [`Rule::Held`](tenure_core::fence::Rule::Held) a transaction that is not
    /// READ COMMITTED is refused with an error: it would not see what the authority says now.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was judged. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn admit<'t>(
        &self,
        tx: &'t Transaction<'_>,
        token: &Token,
    ) -> Result<Result<Admitted<'t>, Verdict>, SinkError> {
        let statements = &*self.0;
        let (epoch, grant) = (token.epoch.as_i64(), token.grant.to_string());
        let parameters: [(&(dyn ToSql + Sync), Type); 3] =
            [(&token.resource.as_str(), Type::TEXT), (&epoch, Type::INT8), (&grant, Type::TEXT)];
        let ask = async |sql: &str| {
            let rows = tx.query_typed(sql, &parameters).await;
            rows.map_err(|error| statements.failed("checking a token", &error))
        };
        let place = &statements.place;
        let admitted = |seal_no| Admitted { epoch: token.epoch, seal_no, transaction: PhantomData };
        let rows = ask(&statements.admit).await?;
        if let Some(seal_no) = (Read { row: first(&rows, place)?, place }).seal_no()? {
            return Ok(Ok(admitted(seal_no)));
        }
        // The reason takes more columns, each of which every check would pay for.
        let rows = ask(&statements.judge).await?;
        let answered = Read { row: first(&rows, place)?, place }.judgement()?;
        Ok(answered.admitted(token.epoch).map(|Standing { seal_no, .. }| admitted(seal_no)))
    }

    /// Checks the token, then applies an operation at most once per resource, and records it: all of it together.
    ///
    /// The effect runs only for [`Verdict::Written`], in a savepoint; it returns the outcome that a replay will get. Commit on
    /// `Written` and `Replay`; on the others there is nothing to commit. Two calls with one operation come one after the
    /// other. Dropped before it has ended, it leaves nothing in the transaction but locks.
    ///
    /// # Errors
    /// [`ApplyError`]: nothing of the operation stands, and the transaction is as it was before. Roll it back, and repeat it
    /// when the error is a sink's and [`SinkError::is_transient`].
    pub async fn apply<E>(
        &self,
        tx: &mut Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        digest: &Digest,
        effect: impl AsyncFnOnce(&Transaction<'_>) -> Result<Outcome, E>,
    ) -> Result<Verdict, ApplyError<E>> {
        let statements = &*self.0;
        let fail = |error: tokio_postgres::Error| statements.failed("keeping an operation together", &error);
        let savepoint = tx.savepoint("tenure_apply").await.map_err(fail)?;
        let standing = match statements.look(&savepoint, &statements.claim, token, operation).await? {
            Ok(standing) => standing,
            Err(verdict) => return Ok(verdict),
        };
        if let Some(found) = standing.found {
            savepoint.commit().await.map_err(fail)?;
            return Ok(replay_or_conflict(found, digest));
        }
        let outcome = effect(&savepoint).await.map_err(ApplyError::Effect)?;
        statements.record(&savepoint, token, operation, standing.seal_no, digest, &outcome).await?;
        savepoint.commit().await.map_err(fail)?;
        Ok(Verdict::Written)
    }

    /// Looks for the effect of an operation, for a token that is admitted. The inner `Err` is the verdict that refuses
    /// the token: only the holder may ask, because only for the holder is an absence final.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    /// Under the rule [`HighWater`](tenure_core::fence::Rule::HighWater) a transaction that is not READ COMMITTED is refused:
    /// it would not see what it had to wait for.
    pub async fn lookup(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Lookup, Verdict>, SinkError> {
        let standing = self.0.look(tx, &self.0.find, token, operation).await?;
        Ok(standing.map(|standing| standing.found.map_or(Lookup::Absent, Lookup::Found)))
    }
}

/// Why a grant is over, in the order of [`Ended`](super::rows::Ended).
const ENDING: &str = "(ending).why, (ending).holder, (ending).ago_ms";

/// What an operation that stands means for another one of the same name.
pub(super) fn replay_or_conflict(found: crate::Found, digest: &Digest) -> Verdict {
    if found.digest == *digest {
        Verdict::Replay(Replayed { epoch: found.epoch, outcome: found.outcome })
    } else {
        Verdict::Conflict { current: found.epoch }
    }
}

impl Statements {
    fn new(schema: &str) -> Self {
        let find = |claims: bool| {
            format!(
                "SELECT verdict, current, seal_no, epoch, digest, outcome, {ENDING} \
                 FROM {schema}.judge_operation($1, $2, $3::uuid, $4, {claims})"
            )
        };
        Self {
            place: format!("schema {schema}"),
            rights: format!(
                "let the sink's owner run: SELECT {schema}.allow(ROLE, 'write'), with the role that writes"
            ),
            admit: format!("SELECT {schema}.admit($1, $2, $3::uuid, false)").into(),
            judge: format!("SELECT verdict, current, seal_no, {ENDING} FROM {schema}.judge($1, $2, $3::uuid)").into(),
            find: find(false).into(),
            claim: find(true).into(),
            record: format!("SELECT {schema}.record($1, $2, $3, $4, $5, $6)").into(),
        }
    }

    pub(super) fn at(&self, doing: &'static str) -> Where<'_> {
        // How long it waited says the session's own lock_timeout; only a waiting seal is bounded here.
        Where { place: &self.place, doing, waited: Duration::ZERO, rights: &self.rights }
    }

    fn failed(&self, doing: &'static str, error: &tokio_postgres::Error) -> SinkError {
        explained(&self.at(doing), error)
    }

    async fn look(
        &self,
        tx: &Transaction<'_>,
        sql: &str,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Standing, Verdict>, SinkError> {
        let (epoch, grant) = (token.epoch.as_i64(), token.grant.to_string());
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&token.resource.as_str(), Type::TEXT),
            (&epoch, Type::INT8),
            (&grant, Type::TEXT),
            (&operation.as_str(), Type::TEXT),
        ];
        let rows = tx.query_typed(sql, &parameters).await;
        let rows = rows.map_err(|error| self.failed("looking an operation up", &error))?;
        let answered: Answered = Read { row: first(&rows, &self.place)?, place: &self.place }.answer()?;
        Ok(answered.admitted(token.epoch))
    }

    async fn record(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        operation: &OperationId,
        seal_no: u64,
        digest: &Digest,
        outcome: &Outcome,
    ) -> Result<(), SinkError> {
        self.storable(outcome)?;
        let (epoch, seal_no) = (token.epoch.as_i64(), i64::try_from(seal_no).unwrap_or(i64::MAX));
        let parameters: [(&(dyn ToSql + Sync), Type); 6] = [
            (&token.resource.as_str(), Type::TEXT),
            (&epoch, Type::INT8),
            (&seal_no, Type::INT8),
            (&operation.as_str(), Type::TEXT),
            (&&digest.0[..], Type::BYTEA),
            (&outcome.as_str(), Type::TEXT),
        ];
        let recorded = tx.query_typed(&self.record, &parameters).await;
        recorded.map_err(|error| self.failed(RECORDING, &error))?;
        Ok(())
    }

    /// Names hold no control characters; an outcome may.
    pub(super) fn storable(&self, outcome: &Outcome) -> Result<(), SinkError> {
        if !outcome.as_str().contains('\0') {
            return Ok(());
        }
        let why = "the outcome holds a zero byte, which PostgreSQL cannot keep: write it in another way".to_owned();
        Err(SinkError::Failed { place: self.place.clone(), doing: RECORDING, why })
    }
}

pub(super) const RECORDING: &str = "recording an operation";
