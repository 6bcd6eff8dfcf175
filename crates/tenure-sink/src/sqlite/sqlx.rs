//! The fence inside a SQLite transaction of sqlx's.

use super::failure::explained;
use super::held::{HELD, Said};
use super::schema;
use crate::{ApplyError, Found, Lookup, SinkError};
use ::sqlx::sqlite::{SqliteConnection, SqliteRow};
use ::sqlx::{Connection, Row, Sqlite, Transaction};
use std::collections::BTreeSet;
use std::fmt::Display;
use tenure_core::fence::{Admission, FenceRow, Rule, admit};
use tenure_core::operation::Attempt;
use tenure_core::{Digest, Epoch, Generation, GrantId, OperationId, Outcome, Over, Replayed, SinkId, Token, Verdict};

/// How the database is called in messages: sqlx does not say its path.
const PLACE: &str = "the SQLite database";

/// The fence of a SQLite database, for transactions of sqlx's. A cheap value. [`SqliteSink`](crate::SqliteSink) makes the tables.
///
/// Begin the transaction with `begin_with("BEGIN IMMEDIATE")`: a deferred one is made a writer by the first call here, and must
/// be repeated when it had read before. What each call does is as with [`SqliteFence`](crate::SqliteFence).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlxSqliteFence {
    rule: Rule,
}

/// The proof that a token was admitted in a transaction. Nobody can seal a newer one until that ends.
#[derive(Debug)]
#[must_use = "a token that was not admitted must not write"]
pub struct Admitted {
    epoch: Epoch,
    seal_no: u64,
}

impl Admitted {
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

impl SqlxSqliteFence {
    /// A fence under a rule, which must be the one under which the database's tables were installed.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule }
    }

    /// Checks the token. The inner `Err` is the verdict that refuses it: roll the transaction back.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was judged. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn admit(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        token: &Token,
    ) -> Result<Result<Admitted, Verdict>, SinkError> {
        self.check(tx, token).await
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
        tx: &mut Transaction<'_, Sqlite>,
        token: &Token,
        operation: &OperationId,
        digest: &Digest,
        effect: impl AsyncFnOnce(&mut SqliteConnection) -> Result<Outcome, E>,
    ) -> Result<Verdict, ApplyError<E>> {
        let fail = |error: ::sqlx::Error| failed("keeping an operation together", &error);
        let mut savepoint = tx.begin().await.map_err(fail)?;
        let admitted = match self.check(&mut savepoint, token).await? {
            Ok(admitted) => admitted,
            Err(verdict) => return Ok(verdict),
        };
        if let Some(found) = find(&mut savepoint, token, operation).await? {
            savepoint.commit().await.map_err(fail)?;
            return Ok(if found.digest == *digest {
                Verdict::Replay(Replayed { epoch: found.epoch, outcome: found.outcome })
            } else {
                Verdict::Conflict { current: found.epoch }
            });
        }
        let outcome = effect(&mut savepoint).await.map_err(ApplyError::Effect)?;
        let query = ::sqlx::query(schema::RECORD)
            .bind(token.resource.as_str())
            .bind(operation.as_str())
            .bind(token.epoch.as_i64())
            .bind(i64::try_from(admitted.seal_no).map_err(corrupt)?)
            .bind(&digest.0[..])
            .bind(Attempt::Done.name())
            .bind(outcome.as_str());
        query.execute(&mut *savepoint).await.map_err(|error| failed("recording an operation", &error))?;
        savepoint.commit().await.map_err(fail)?;
        Ok(Verdict::Written)
    }

    /// Looks for the effect of an operation, for a token that is admitted. The inner `Err` is the verdict that refuses it.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out. Roll the transaction back, and repeat it when [`SinkError::is_transient`].
    pub async fn lookup(
        &self,
        tx: &mut Transaction<'_, Sqlite>,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Lookup, Verdict>, SinkError> {
        if let Err(verdict) = self.check(tx, token).await? {
            return Ok(Err(verdict));
        }
        Ok(Ok(find(tx, token, operation).await?.map_or(Lookup::Absent, Lookup::Found)))
    }

    async fn check(&self, tx: &mut SqliteConnection, token: &Token) -> Result<Result<Admitted, Verdict>, SinkError> {
        // First a writer: otherwise a seal could return while a transaction that has checked an older token is open (I10).
        let taking = ::sqlx::query(schema::TAKE_WRITE_LOCK).execute(&mut *tx).await;
        taking.map_err(|error| failed("taking the write lock", &error))?;
        let row = ::sqlx::query(schema::STANDING).bind(token.resource.as_str()).fetch_optional(&mut *tx).await;
        let row = row.map_err(|error| failed("reading the fence", &error))?;
        let Some(row) = row else { return Err(SinkError::NotInstalled { place: PLACE.to_owned() }) };
        let standing = Standing::read(&row, self.rule)?;
        let seal_no = match admit(self.rule, standing.row.as_ref(), standing.floor, &standing.generation, token) {
            Admission::Admit => standing.row.map_or(0, |row| row.seal_no),
            Admission::Raise(row) => {
                put(tx, token, &row).await?;
                row.seal_no
            }
            Admission::Refuse(verdict) => return Ok(Err(verdict)),
        };
        if self.rule == Rule::Held
            && let Err(over) = held(tx, token).await?
        {
            return Ok(Err(Verdict::Over(over)));
        }
        Ok(Ok(Admitted { epoch: token.epoch, seal_no }))
    }
}

/// All that a judgement needs.
struct Standing {
    generation: Generation,
    floor: Option<Epoch>,
    row: Option<FenceRow>,
}

impl Standing {
    fn read(row: &SqliteRow, rule: Rule) -> Result<Self, SinkError> {
        let (version, found): (i64, &str) = (get(row, 0)?, get(row, 1)?);
        if version != schema::VERSION {
            return Err(SinkError::schema(PLACE, version, schema::VERSION));
        }
        SinkError::unless_rule(PLACE, found, rule)?;
        let generation = format!("{}:{}", get::<&str>(row, 2)?, get::<i64>(row, 3)?);
        let fence = match epoch(row, 5)? {
            None => None,
            Some(epoch) => {
                let names: Vec<String> = serde_json::from_str(get(row, 9)?).map_err(corrupt)?;
                Some(FenceRow {
                    epoch,
                    grant: get::<&str>(row, 6)?.parse::<GrantId>().map_err(corrupt)?,
                    generation: Generation::new(get::<&str>(row, 7)?).map_err(corrupt)?,
                    seal_no: u64::try_from(get::<i64>(row, 8)?).map_err(corrupt)?,
                    enrolled: names
                        .into_iter()
                        .map(SinkId::new)
                        .collect::<Result<BTreeSet<_>, _>>()
                        .map_err(corrupt)?,
                })
            }
        };
        Ok(Self { generation: Generation::new(generation).map_err(corrupt)?, floor: epoch(row, 4)?, row: fence })
    }
}

/// What the authority in the same file says of a token that the fence has admitted.
async fn held(tx: &mut SqliteConnection, token: &Token) -> Result<Result<(), Over>, SinkError> {
    let row = ::sqlx::query(HELD).bind(token.resource.as_str()).fetch_optional(tx).await;
    let row = row.map_err(|error| failed("reading the authority", &error))?;
    let said = row.map(|row| {
        Ok::<_, SinkError>(Said {
            version: get(&row, 0)?,
            epoch: get(&row, 1)?,
            grant: get(&row, 2)?,
            owner: get(&row, 3)?,
            since: get(&row, 4)?,
            deadline: get(&row, 5)?,
            ending: get(&row, 6)?,
            ended: get(&row, 7)?,
            origin: get(&row, 8)?,
        })
    });
    Said::judge(said.transpose()?, PLACE, token)
}

async fn put(tx: &mut SqliteConnection, token: &Token, row: &FenceRow) -> Result<(), SinkError> {
    let enrolled: Vec<&str> = row.enrolled.iter().map(SinkId::as_str).collect();
    let query = ::sqlx::query(schema::PUT)
        .bind(token.resource.as_str())
        .bind(row.epoch.as_i64())
        .bind(row.grant.to_string())
        .bind(row.generation.as_str())
        .bind(i64::try_from(row.seal_no).map_err(corrupt)?)
        .bind(serde_json::to_string(&enrolled).map_err(corrupt)?);
    query.execute(tx).await.map_err(|error| failed("registering the token", &error))?;
    Ok(())
}

async fn find(tx: &mut SqliteConnection, token: &Token, operation: &OperationId) -> Result<Option<Found>, SinkError> {
    let query = ::sqlx::query(schema::FIND).bind(token.resource.as_str()).bind(operation.as_str());
    let row = query.fetch_optional(tx).await.map_err(|error| failed("looking an operation up", &error))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Found {
        epoch: Epoch::try_from(get::<i64>(&row, 0)?).map_err(corrupt)?,
        digest: Digest(get::<&[u8]>(&row, 1)?.try_into().map_err(corrupt)?),
        outcome: Outcome::new(get::<&str>(&row, 2)?).map_err(corrupt)?,
    }))
}

fn get<'r, T>(row: &'r SqliteRow, at: usize) -> Result<T, SinkError>
where
    T: ::sqlx::Decode<'r, Sqlite> + ::sqlx::Type<Sqlite>,
{
    row.try_get(at).map_err(corrupt)
}

fn epoch(row: &SqliteRow, at: usize) -> Result<Option<Epoch>, SinkError> {
    get::<Option<i64>>(row, at)?.map(Epoch::try_from).transpose().map_err(corrupt)
}

fn corrupt(what: impl Display) -> SinkError {
    SinkError::corrupt(PLACE, what)
}

fn failed(doing: &'static str, error: &::sqlx::Error) -> SinkError {
    // SQLite's extended code, which sqlx gives as text.
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok());
    explained(PLACE, doing, code, &error.to_string())
}
