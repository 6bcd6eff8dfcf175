use super::DemoError;
use super::worker::{RECEIVER, RESOURCE};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use tenure::core::fence::Rule;
use tenure::sink::{ApplyError, Sink, SqliteFence, SqliteSink, digest_of, one_value_per_epoch};
use tenure::{Outcome, SinkId, Token, Verdict};

/// What stands between a writer and the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Nothing.
    None,
    /// A fence that remembers the highest epoch that it has seen.
    HighWater,
    /// A fence that is told of a takeover before it is announced.
    Sealed,
}

/// The document as it stands at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    resource: String,
    epoch: i64,
    pub(super) value: String,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::HighWater => "high-water",
            Self::Sealed => "sealed",
        }
    }

    const fn rule(self) -> Option<Rule> {
        match self {
            Self::None => None,
            Self::HighWater => Some(Rule::HighWater),
            Self::Sealed => Some(Rule::Sealed),
        }
    }

    /// Makes the receiver's database: the business table, and beside it the fence's own.
    pub(super) fn create(self, dir: &Path) -> Result<(), DemoError> {
        let connection = Connection::open(dir.join(RECEIVER))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.execute_batch(
            "CREATE TABLE document (resource TEXT PRIMARY KEY, epoch INTEGER NOT NULL, value TEXT NOT NULL)",
        )?;
        if let Some(rule) = self.rule() {
            SqliteFence::new(rule).install(&connection)?;
        }
        Ok(())
    }

    /// What a worker hands to its wish, so that a takeover is sealed here.
    pub(super) fn sink(self, dir: &Path) -> Result<Option<Arc<dyn Sink>>, DemoError> {
        let Some(rule) = self.rule() else { return Ok(None) };
        let id = SinkId::new("document-db")
            .map_err(|error| DemoError::Worker { name: "receiver".into(), why: error.to_string() })?;
        Ok(Some(Arc::new(SqliteSink::open(dir.join(RECEIVER), id, rule)?)))
    }

    /// One write, in one transaction, under a narrow rule: one value per epoch.
    pub(super) fn write(self, dir: &Path, token: &Token, value: &str) -> Result<String, DemoError> {
        let mut connection = Connection::open_with_flags(dir.join(RECEIVER), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let verdict = match self.rule() {
            None => {
                replace(&transaction, token, value)?;
                Verdict::Written
            }
            Some(rule) => {
                let operation = one_value_per_epoch(token.epoch);
                let effect = |transaction: &Transaction<'_>| {
                    replace(transaction, token, value)?;
                    Ok::<_, rusqlite::Error>(Outcome::new(value).unwrap_or_else(|_| empty()))
                };
                SqliteFence::new(rule)
                    .apply(&transaction, token, &operation, &digest_of(value.as_bytes()), effect)
                    .map_err(|error| match error {
                        ApplyError::Effect(error) => DemoError::Receiver(error),
                        ApplyError::Sink(error) => DemoError::Sink(error),
                    })?
            }
        };
        transaction.commit()?;
        Ok(verdict.name().to_owned())
    }

    /// The document's row, read from the database; its epoch is counted from `base`.
    pub(super) fn row(self, dir: &Path, resource: &str, base: u64) -> Result<Row, DemoError> {
        let connection = Connection::open_with_flags(dir.join(RECEIVER), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let row = connection
            .query_row("SELECT resource, epoch, value FROM document WHERE resource = $1", [resource], |row| {
                let epoch = row.get::<_, i64>(1)?.saturating_sub_unsigned(base);
                Ok(Row { resource: RESOURCE.to_owned(), epoch, value: row.get(2)? })
            })
            .optional()?;
        row.ok_or_else(|| DemoError::NoResult { path: dir.join(RECEIVER), why: "nobody wrote the document".into() })
    }
}

fn replace(transaction: &Transaction<'_>, token: &Token, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO document (resource, epoch, value) VALUES ($1, $2, $3) \
               ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, value = excluded.value";
    transaction.execute(sql, (token.resource.as_str(), token.epoch.as_i64(), value)).map(|_| ())
}

/// An outcome for a value that is too long to be kept as one.
fn empty() -> Outcome {
    #[expect(clippy::expect_used, reason = "the empty text is within every limit")]
    Outcome::new("").expect("the empty text is an outcome")
}
