use super::super::DemoError;
use super::{Place, id, outcome};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};
use std::path::PathBuf;
use std::sync::Arc;
use tenure::core::fence::Rule;
use tenure::sink::{ApplyError, Sink, SqliteFence, SqliteSink, digest_of, one_value_per_epoch};
use tenure::{Token, Verdict};

/// A table of a SQLite file, and beside it the fence's own.
#[derive(Debug)]
pub(super) struct Database(PathBuf);

impl Database {
    pub(super) fn at(path: &str) -> Self {
        Self(path.into())
    }
}

impl Place for Database {
    fn create(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        let connection = Connection::open(&self.0)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.execute_batch(
            "CREATE TABLE document (resource TEXT PRIMARY KEY, epoch INTEGER NOT NULL, value TEXT NOT NULL)",
        )?;
        if let Some(rule) = rule {
            SqliteFence::new(rule).install(&connection)?;
        }
        Ok(())
    }

    fn sink(&self, rule: Rule) -> Result<Arc<dyn Sink>, DemoError> {
        Ok(Arc::new(SqliteSink::open(&self.0, id()?, rule)?))
    }

    fn write(&self, rule: Option<Rule>, token: &Token, value: &str) -> Result<Verdict, DemoError> {
        let mut connection = Connection::open_with_flags(&self.0, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let verdict = match rule {
            None => {
                replace(&transaction, token, value)?;
                Verdict::Written
            }
            Some(rule) => {
                let operation = one_value_per_epoch(token.epoch);
                let effect = |transaction: &Transaction<'_>| {
                    replace(transaction, token, value)?;
                    Ok::<_, rusqlite::Error>(outcome(value))
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
        Ok(verdict)
    }

    fn document(&self, _rule: Option<Rule>, resource: &str) -> Result<Option<(i64, String)>, DemoError> {
        let connection = Connection::open_with_flags(&self.0, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT epoch, value FROM document WHERE resource = $1";
        Ok(connection.query_row(sql, [resource], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }
}

fn replace(transaction: &Transaction<'_>, token: &Token, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT INTO document (resource, epoch, value) VALUES ($1, $2, $3) \
               ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, value = excluded.value";
    transaction.execute(sql, (token.resource.as_str(), token.epoch.as_i64(), value)).map(|_| ())
}
