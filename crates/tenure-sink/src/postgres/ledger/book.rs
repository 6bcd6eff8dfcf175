//! Reading and writing the ledger's rows, in the caller's transaction. Every value that is read back is checked.

use super::PostgresLedger;
use super::schema::{OPEN, VERSION};
use crate::SinkError;
use crate::ledger::{AttemptKey, AttemptRecord, Decision, Intent, Refused, Which};
use crate::postgres::failure::{Where, explained};
use std::time::Duration;
use tenure_core::ledger::{Entry, Voice, hear};
use tenure_core::operation::{Attempt, Happening};
use tenure_core::{
    Actor, Digest, Epoch, NameError, OperationId, Outcome, OwnerName, Reason, ResourceName, SinkId, Token,
};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Row, Transaction};

/// What is written beside a change: by whom, if that was a person, and why.
pub(super) enum Said {
    Nothing,
    By(Option<Actor>, String),
}

impl Said {
    pub(super) fn taken_over(by: Epoch) -> Self {
        Self::By(None, format!("taken over by epoch {by}"))
    }
}

type Values<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

impl PostgresLedger {
    pub(super) fn explain(&self, doing: &'static str, error: &tokio_postgres::Error) -> SinkError {
        if error.code() == Some(&SqlState::UNDEFINED_TABLE) {
            return SinkError::NoLedger { place: self.0.place.clone() };
        }
        let (place, rights) = (self.0.place.as_str(), self.0.rights.as_str());
        explained(&Where { place, doing, waited: Duration::ZERO, rights }, error)
    }

    async fn rows(
        &self,
        tx: &Transaction<'_>,
        doing: &'static str,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, SinkError> {
        tx.query_typed(sql, values).await.map_err(|error| self.explain(doing, &error))
    }

    /// Refuses tables of another version, once for each value.
    pub(super) async fn version(&self, tx: &Transaction<'_>) -> Result<(), SinkError> {
        if self.0.looked.load(std::sync::atomic::Ordering::Acquire) {
            return Ok(());
        }
        let rows = self.rows(tx, "reading the ledger", &self.0.sql.version, &[]).await?;
        let found: i32 = rows.first().map_or(Ok(0), |row| self.read(row).get(0))?;
        if found != VERSION {
            return Err(SinkError::schema(&self.0.place, found.into(), VERSION.into()));
        }
        self.0.looked.store(true, std::sync::atomic::Ordering::Release);
        Ok(())
    }

    pub(super) async fn entries(
        &self,
        tx: &Transaction<'_>,
        resource: &ResourceName,
        operation: &OperationId,
    ) -> Result<Vec<Entry>, SinkError> {
        let values: Values<'_> = &[(&resource.as_str(), Type::TEXT), (&operation.as_str(), Type::TEXT)];
        let rows = self.rows(tx, "reading the ledger", &self.0.sql.entries, values).await?;
        rows.iter().map(|row| self.read(row).entry([0, 1, 2, 3])).collect()
    }

    pub(super) async fn entry(&self, tx: &Transaction<'_>, key: &AttemptKey) -> Result<Option<Entry>, SinkError> {
        let values: Values<'_> = &[
            (&key.resource.as_str(), Type::TEXT),
            (&key.operation.as_str(), Type::TEXT),
            (&key.epoch.as_i64(), Type::INT8),
        ];
        let rows = self.rows(tx, "reading the ledger", &self.0.sql.entry, values).await?;
        rows.first().map(|row| self.read(row).entry([0, 1, 2, 3])).transpose()
    }

    /// What older epochs of the token's resource have left open.
    pub(super) async fn left(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
    ) -> Result<Vec<(OperationId, Entry)>, SinkError> {
        let values: Values<'_> = &[(&token.resource.as_str(), Type::TEXT), (&token.epoch.as_i64(), Type::INT8)];
        let rows = self.rows(tx, "reading the ledger", &self.0.sql.left, values).await?;
        let read = |row| -> Result<_, SinkError> {
            let read = self.read(row);
            Ok((read.name(4, |text| OperationId::new(text))?, read.entry([0, 1, 2, 3])?))
        };
        rows.iter().map(read).collect()
    }

    /// Whether it was written; otherwise somebody has written it at the same moment.
    pub(super) async fn write(
        &self,
        tx: &Transaction<'_>,
        token: &Token,
        seal_no: u64,
        intent: &Intent,
    ) -> Result<bool, SinkError> {
        let seal_no = i64::try_from(seal_no).unwrap_or(i64::MAX);
        let values: Values<'_> = &[
            (&token.resource.as_str(), Type::TEXT),
            (&intent.operation.as_str(), Type::TEXT),
            (&token.epoch.as_i64(), Type::INT8),
            (&seal_no, Type::INT8),
            (&&intent.digest.0[..], Type::BYTEA),
            (&Attempt::Intent.name(), Type::TEXT),
            (&intent.system.as_str(), Type::TEXT),
            (&intent.owner.as_str(), Type::TEXT),
        ];
        let written = tx.execute_typed(&self.0.sql.write, values).await;
        Ok(written.map_err(|error| self.explain("writing an intent down", &error))? > 0)
    }

    pub(super) async fn change(
        &self,
        tx: &Transaction<'_>,
        key: &AttemptKey,
        state: Attempt,
        outcome: Option<&Outcome>,
        said: &Said,
    ) -> Result<(), SinkError> {
        let (by, why) = match said {
            Said::Nothing => (None, None),
            Said::By(by, why) => (by.as_ref().map(Actor::as_str), Some(why.as_str())),
        };
        let outcome = outcome.map(Outcome::as_str);
        if [outcome, why].into_iter().flatten().any(|text| text.contains('\0')) {
            let why = "a text holds a zero byte, which PostgreSQL cannot keep: write it in another way".to_owned();
            return Err(SinkError::Failed { place: self.0.place.clone(), doing: CHANGING, why });
        }
        let values: Values<'_> = &[
            (&key.resource.as_str(), Type::TEXT),
            (&key.operation.as_str(), Type::TEXT),
            (&key.epoch.as_i64(), Type::INT8),
            (&state.name(), Type::TEXT),
            (&outcome, Type::TEXT),
            (&by, Type::TEXT),
            (&why, Type::TEXT),
        ];
        let changed = tx.execute_typed(&self.0.sql.change, values).await;
        changed.map_err(|error| self.explain(CHANGING, &error))?;
        Ok(())
    }

    /// Somebody speaks of an attempt. What is no news leaves the row as it is, with who said it first.
    pub(super) async fn speak(
        &self,
        tx: &Transaction<'_>,
        key: &AttemptKey,
        (voice, news): (Voice, Happening),
        outcome: Option<&Outcome>,
        said: &Said,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        let Some(entry) = self.entry(tx, key).await? else { return Ok(Err(Refused::Missing)) };
        let next = match hear(&entry, voice, news) {
            Ok(next) => next,
            Err(unheard) => return Ok(Err(Refused::Unheard(unheard))),
        };
        if next != entry.state {
            self.change(tx, key, next, outcome, said).await?;
        }
        Ok(Ok(next))
    }

    /// A person has decided.
    pub(super) async fn decide(
        &self,
        tx: &Transaction<'_>,
        key: &AttemptKey,
        decision: &Decision,
        said: &Said,
    ) -> Result<Result<Attempt, Refused>, SinkError> {
        self.version(tx).await?;
        let (news, outcome) = match decision {
            Decision::Applied(outcome) => (Happening::Found, outcome.as_ref()),
            Decision::NotApplied => (Happening::Absent, None),
        };
        self.speak(tx, key, (Voice::Person, news), outcome, said).await
    }

    pub(super) async fn attempts(
        &self,
        tx: &Transaction<'_>,
        operation: &OperationId,
    ) -> Result<Vec<AttemptRecord>, SinkError> {
        let values: Values<'_> = &[(&operation.as_str(), Type::TEXT)];
        self.records(&self.rows(tx, "reading the ledger", &self.0.sql.attempts, values).await?)
    }

    /// The same, for whoever has shown no token.
    pub(super) async fn checked_attempts(
        &self,
        tx: &Transaction<'_>,
        operation: &OperationId,
    ) -> Result<Vec<AttemptRecord>, SinkError> {
        self.version(tx).await?;
        self.attempts(tx, operation).await
    }

    pub(super) async fn list(
        &self,
        tx: &Transaction<'_>,
        which: Which,
        resource: Option<&ResourceName>,
        after: Option<&AttemptKey>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, SinkError> {
        self.version(tx).await?;
        let sql = match which {
            Which::Unknown => self.0.sql.list(&format!("{OPEN} AND state = 'unknown'")),
            Which::Open => self.0.sql.list(OPEN),
            Which::All => self.0.sql.list("true"),
        };
        // No name is empty, so this is before the first one.
        let (from, operation, epoch) =
            after.map_or(("", "", 0), |key| (key.resource.as_str(), key.operation.as_str(), key.epoch.as_i64()));
        let (limit, only) = (i64::try_from(limit).unwrap_or(i64::MAX), resource.map(ResourceName::as_str));
        let values: Values<'_> = &[
            (&from, Type::TEXT),
            (&operation, Type::TEXT),
            (&epoch, Type::INT8),
            (&limit, Type::INT8),
            (&only, Type::TEXT),
        ];
        self.records(&self.rows(tx, "listing the ledger", &sql, values).await?)
    }

    pub(super) fn records(&self, rows: &[Row]) -> Result<Vec<AttemptRecord>, SinkError> {
        rows.iter().map(|row| self.read(row).attempt()).collect()
    }

    fn read<'a>(&'a self, row: &'a Row) -> Read<'a> {
        Read { row, place: &self.0.place }
    }
}

const CHANGING: &str = "changing the ledger";

/// A row, with the place that explains what is wrong with it.
struct Read<'a> {
    row: &'a Row,
    place: &'a str,
}

impl<'a> Read<'a> {
    fn wrong(&self, what: impl std::fmt::Display) -> SinkError {
        SinkError::corrupt(self.place, what)
    }

    fn get<T: FromSql<'a>>(&self, at: usize) -> Result<T, SinkError> {
        self.row.try_get(at).map_err(|error| self.wrong(error))
    }

    fn name<T>(&self, at: usize, make: impl FnOnce(&str) -> Result<T, NameError>) -> Result<T, SinkError> {
        make(self.get(at)?).map_err(|error| self.wrong(error))
    }

    fn maybe<T>(&self, at: usize, make: impl FnOnce(&str) -> Result<T, NameError>) -> Result<Option<T>, SinkError> {
        let text: Option<&str> = self.get(at)?;
        text.map(make).transpose().map_err(|error| self.wrong(error))
    }

    fn number(&self, at: usize) -> Result<u64, SinkError> {
        u64::try_from(self.get::<i64>(at)?).map_err(|error| self.wrong(error))
    }

    fn entry(&self, [epoch, digest, state, outcome]: [usize; 4]) -> Result<Entry, SinkError> {
        let name: &str = self.get(state)?;
        let state = Attempt::ALL.into_iter().find(|state| state.name() == name);
        Ok(Entry {
            epoch: Epoch::try_from(self.get::<i64>(epoch)?).map_err(|error| self.wrong(error))?,
            digest: Digest(self.get::<&[u8]>(digest)?.try_into().map_err(|error| self.wrong(error))?),
            state: state.ok_or_else(|| self.wrong(format_args!("{name:?} is no state of an attempt")))?,
            outcome: self.maybe(outcome, |text| Outcome::new(text))?,
        })
    }

    fn attempt(&self) -> Result<AttemptRecord, SinkError> {
        let entry = self.entry([2, 4, 5, 6])?;
        Ok(AttemptRecord {
            key: AttemptKey {
                resource: self.name(0, |text| ResourceName::new(text))?,
                operation: self.name(1, |text| OperationId::new(text))?,
                epoch: entry.epoch,
            },
            seal_no: self.number(3)?,
            digest: entry.digest,
            state: entry.state,
            outcome: entry.outcome,
            system: self.name(7, |text| SinkId::new(text))?,
            owner: self.name(8, |text| OwnerName::new(text))?,
            intended_ms: self.number(9)?,
            changed_ms: self.number(10)?,
            age_ms: self.number(11)?,
            decided_by: self.maybe(12, |text| Actor::new(text))?,
            why: self.maybe(13, |text| Reason::new(text))?,
        })
    }
}
