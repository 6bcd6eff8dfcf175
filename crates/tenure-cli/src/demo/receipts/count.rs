use super::receiver;
use super::sender::SENDER;
use crate::demo::DemoError;
use rusqlite::{Connection, OpenFlags};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use tenure::blocking::wait_for;
use tenure::core::SinkId;
use tenure::core::fence::Rule;
use tenure::core::operation::Attempt;
use tenure::sink::SqliteSink;
use tenure::sink::ledger::{Ledger, Which};

/// What stands in the databases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) sender_state: &'static str,
    /// Under how many epochs it was sent or looked for.
    pub(super) attempts: i64,
    pub(super) receiver_tickets: i64,
    pub(super) receiver_receipts: i64,
    pub(super) external_tickets: i64,
}

impl Counts {
    pub(super) fn read(dir: &Path) -> Result<Self, DemoError> {
        let id = SinkId::new("sender")
            .map_err(|error| DemoError::Worker { name: "sender".into(), why: error.to_string() })?;
        let ledger = SqliteSink::open(dir.join(SENDER), id, Rule::Sealed)?;
        let attempts = wait_for(ledger.list(Which::All, None, None, 100))?;
        let sender_state = match attempts.last().map(|newest| newest.state) {
            None => "absent",
            Some(Attempt::Intent) => "pending",
            Some(Attempt::Sent) => "inflight",
            Some(Attempt::Done | Attempt::Applied) => "done",
            Some(Attempt::Unknown) => "unknown",
            Some(Attempt::Failed | Attempt::NotApplied) => "not done",
        };
        let count = |file: &str, sql: &str| -> Result<i64, DemoError> {
            let path = dir.join(file);
            if !path.exists() {
                return Ok(0);
            }
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            let there = "SELECT count(*) FROM sqlite_schema WHERE name = ?1";
            let table = sql.rsplit(' ').next().unwrap_or_default();
            let is_there: i64 = connection.query_row(there, [table], |row| row.get(0))?;
            if is_there == 0 { Ok(0) } else { Ok(connection.query_row(sql, [], |row| row.get(0))?) }
        };
        Ok(Self {
            sender_state,
            attempts: count(SENDER, "SELECT count(*) FROM tried")?,
            receiver_tickets: count(receiver::RECEIVER, "SELECT count(*) FROM ticket")?,
            receiver_receipts: count(receiver::RECEIVER, "SELECT count(*) FROM tenure_sink_operation")?,
            external_tickets: count(receiver::EXTERNAL, "SELECT count(*) FROM ticket")?,
        })
    }

    /// Wherever they were made.
    pub(super) const fn tickets(&self) -> i64 {
        self.receiver_tickets + self.external_tickets
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tries = match self.attempts {
            0 => "not tried".to_owned(),
            1 => "tried once".to_owned(),
            2 => "tried twice".to_owned(),
            many => format!("tried {many} times"),
        };
        f.pad(&format!("{}, {tries}", self.sender_state))
    }
}
