//! A piece of the caller's transaction that stands or falls as one.

use super::failure::{place_of, sink_error};
use crate::SinkError;
use rusqlite::{Connection, Transaction};

/// Rolls back what happened since it began, unless it is kept. Also when the effect panics.
pub(super) struct Savepoint<'t> {
    connection: &'t Connection,
    open: bool,
}

impl<'t> Savepoint<'t> {
    pub(super) fn begin(tx: &'t Transaction<'_>) -> Result<Self, SinkError> {
        let savepoint = Self { connection: tx, open: false };
        savepoint.run("SAVEPOINT tenure_apply")?;
        Ok(Self { open: true, ..savepoint })
    }

    /// Lets it stand, with the rest of the transaction.
    pub(super) fn keep(mut self) -> Result<(), SinkError> {
        self.run("RELEASE tenure_apply")?;
        self.open = false;
        Ok(())
    }

    fn run(&self, sql: &str) -> Result<(), SinkError> {
        let fail = |error| sink_error(self.connection, "keeping an operation together", error);
        self.connection.prepare_cached(sql).map_err(fail)?.execute([]).map_err(fail)?;
        Ok(())
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        // A transaction that is gone took the savepoint with it.
        if self.open && !self.connection.is_autocommit() && self.run("ROLLBACK TO tenure_apply").is_ok() {
            // The caller's transaction goes on; one that cannot even release is rolled back by whoever owns it.
            let _ = self.run("RELEASE tenure_apply");
        }
    }
}

/// Refuses to go on in a transaction that a statement has ended: what follows would commit by itself.
pub(super) fn still_open(connection: &Connection) -> Result<(), SinkError> {
    if connection.is_autocommit() {
        return Err(SinkError::NoTransaction { place: place_of(connection) });
    }
    Ok(())
}
