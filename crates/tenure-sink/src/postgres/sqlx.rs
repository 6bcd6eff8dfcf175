//! The fence inside a PostgreSQL transaction of sqlx's.

use super::failure::{Said, refusal};
pub use super::fence::Admitted;
use super::fence::{PostgresFence, RECORDING, replay_or_conflict};
use super::rows::{Answered, Ended, Standing};
use crate::{ApplyError, Lookup, SinkError};
use ::sqlx::postgres::{PgConnection, PgDatabaseError, PgRow};
use ::sqlx::{AssertSqlSafe, Connection, Postgres, Row, Transaction};
use std::marker::PhantomData;
use std::sync::Arc;
use tenure_core::{Digest, OperationId, Outcome, Token, Verdict};

/// The fence of a PostgreSQL database, for transactions of sqlx's. Cheap to clone.
///
/// What each call does, its errors and what to do about them are those of [`PostgresFence`].
#[derive(Clone, Debug, Default)]
pub struct SqlxPostgresFence(PostgresFence);

impl From<PostgresFence> for SqlxPostgresFence {
    fn from(fence: PostgresFence) -> Self {
        Self(fence)
    }
}

impl SqlxPostgresFence {
    /// The fence in a schema of this name.
    ///
    /// # Errors
    /// [`SinkError::Address`] when the name would need quotes.
    pub fn in_schema(schema: &str) -> Result<Self, SinkError> {
        PostgresFence::in_schema(schema).map(Self)
    }

    /// Checks the token. The inner `Err` is the verdict that refuses it: roll the transaction back.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was judged. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn admit(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        token: &Token,
    ) -> Result<Result<Admitted<'static>, Verdict>, SinkError> {
        let mut ask = async |sql: &Arc<str>| {
            let query = ::sqlx::query(AssertSqlSafe(Arc::clone(sql)))
                .bind(token.resource.as_str())
                .bind(token.epoch.as_i64())
                .bind(token.grant.to_string())
                .persistent(false);
            let row = query.fetch_one(&mut **tx).await;
            row.map_err(|error| self.failed("checking a token", &error))
        };
        let admitted = |seal_no| Admitted { epoch: token.epoch, seal_no, transaction: PhantomData };
        let row = ask(&self.0.0.admit).await?;
        if let Some(seal_no) = self.get::<Option<i64>>(&row, 0)? {
            let seal_no = u64::try_from(seal_no).map_err(|error| SinkError::corrupt(&self.0.0.place, error))?;
            return Ok(Ok(admitted(seal_no)));
        }
        let row = ask(&self.0.0.judge).await?;
        let answered = Answered::new(
            &self.0.0.place,
            self.get(&row, 0)?,
            self.get(&row, 1)?,
            self.get(&row, 2)?,
            None,
            self.ended(&row, 3)?,
        )?;
        Ok(answered.admitted(token.epoch).map(|Standing { seal_no, .. }| admitted(seal_no)))
    }

    /// Checks the token, then applies an operation at most once per resource, and records it: all of it together.
    ///
    /// The effect runs only for [`Verdict::Written`], in a savepoint; it returns the outcome that a replay will get. Commit on
    /// `Written` and `Replay`; on the others there is nothing to commit.
    ///
    /// # Errors
    /// [`ApplyError`]: nothing of the operation stands, and the transaction is as it was before. Roll it back.
    pub async fn apply<E>(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        token: &Token,
        operation: &OperationId,
        digest: &Digest,
        effect: impl AsyncFnOnce(&mut PgConnection) -> Result<Outcome, E>,
    ) -> Result<Verdict, ApplyError<E>> {
        let fail = |error: ::sqlx::Error| self.failed("keeping an operation together", &error);
        let mut savepoint = tx.begin().await.map_err(fail)?;
        let standing = match self.look(&mut savepoint, &self.0.0.claim, token, operation).await? {
            Ok(standing) => standing,
            Err(verdict) => return Ok(verdict),
        };
        if let Some(found) = standing.found {
            savepoint.commit().await.map_err(fail)?;
            return Ok(replay_or_conflict(found, digest));
        }
        let outcome = effect(&mut savepoint).await.map_err(ApplyError::Effect)?;
        self.0.0.storable(&outcome)?;
        let query = ::sqlx::query(AssertSqlSafe(Arc::clone(&self.0.0.record)))
            .bind(token.resource.as_str())
            .bind(token.epoch.as_i64())
            .bind(i64::try_from(standing.seal_no).unwrap_or(i64::MAX))
            .bind(operation.as_str())
            .bind(&digest.0[..])
            .bind(outcome.as_str())
            .persistent(false);
        query.execute(&mut *savepoint).await.map_err(|error| self.failed(RECORDING, &error))?;
        savepoint.commit().await.map_err(fail)?;
        Ok(Verdict::Written)
    }

    /// Looks for the effect of an operation, for a token that is admitted. The inner `Err` is the verdict that refuses it.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn lookup(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Lookup, Verdict>, SinkError> {
        let standing = self.look(&mut *tx, &self.0.0.find, token, operation).await?;
        Ok(standing.map(|standing| standing.found.map_or(Lookup::Absent, Lookup::Found)))
    }

    async fn look(
        &self,
        tx: &mut PgConnection,
        sql: &Arc<str>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Standing, Verdict>, SinkError> {
        let query = ::sqlx::query(AssertSqlSafe(Arc::clone(sql)))
            .bind(token.resource.as_str())
            .bind(token.epoch.as_i64())
            .bind(token.grant.to_string())
            .bind(operation.as_str())
            .persistent(false);
        let row = query.fetch_one(tx).await;
        let row = row.map_err(|error| self.failed("looking an operation up", &error))?;
        let verdict: &str = self.get(&row, 0)?;
        let found = match verdict {
            "found" => Some((self.get(&row, 3)?, self.get(&row, 4)?, self.get(&row, 5)?)),
            _ => None,
        };
        let (current, seal_no) = (self.get(&row, 1)?, self.get(&row, 2)?);
        let answered = Answered::new(&self.0.0.place, verdict, current, seal_no, found, self.ended(&row, 6)?)?;
        Ok(answered.admitted(token.epoch))
    }

    fn ended<'r>(&self, row: &'r PgRow, at: usize) -> Result<Option<Ended<'r>>, SinkError> {
        let Some(why) = self.get(row, at)? else { return Ok(None) };
        Ok(Some(Ended { why, holder: self.get(row, at + 1)?, ago_ms: self.get(row, at + 2)? }))
    }

    fn get<'r, T>(&self, row: &'r PgRow, at: usize) -> Result<T, SinkError>
    where
        T: ::sqlx::Decode<'r, Postgres> + ::sqlx::Type<Postgres>,
    {
        row.try_get(at).map_err(|error| SinkError::corrupt(&self.0.0.place, error))
    }

    fn failed(&self, doing: &'static str, error: &::sqlx::Error) -> SinkError {
        let at = self.0.0.at(doing);
        let said = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
        match said {
            Some(said) => refusal(
                &at,
                &Said {
                    code: said.code(),
                    message: said.message(),
                    detail: said.detail(),
                    hint: said.hint(),
                    constraint: said.constraint(),
                },
            ),
            None => SinkError::Unreachable { place: at.place.to_owned(), why: error.to_string() },
        }
    }
}
