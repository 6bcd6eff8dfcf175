//! Where tickets are made: a process that answers one request for each connection.

use super::player::{Own, Point};
use crate::demo::DemoError;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure::core::fence::Rule;
use tenure::core::{OperationId, Outcome, Token, Verdict};
use tenure::sink::{ApplyError, Lookup, Sink, SqliteFence, SqliteSink, digest_of};

pub(super) const RECEIVER: &str = "receiver.db";
pub(super) const EXTERNAL: &str = "external.db";

/// What the receiver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Tickets alone.
    Plain,
    /// Tickets, and in the same transaction a receipt for each call, behind a fence.
    Receipts,
    /// Tickets of somebody else's, who keeps nothing that can be asked for.
    External,
}

type Error = Box<dyn std::error::Error>;

impl Kind {
    const fn file(self) -> &'static str {
        match self {
            Self::Plain | Self::Receipts => RECEIVER,
            Self::External => EXTERNAL,
        }
    }

    pub(super) fn prepare(self, dir: &Path) -> Result<(), DemoError> {
        let connection = Connection::open(dir.join(self.file()))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.execute_batch("CREATE TABLE ticket (number INTEGER PRIMARY KEY, text TEXT NOT NULL)")?;
        if self == Self::Receipts {
            SqliteFence::new(Rule::Sealed).install(&connection)?;
        }
        Ok(())
    }

    /// What a sender has sealed before it begins.
    pub(super) fn sink(self, dir: &Path) -> Result<Option<Arc<dyn Sink>>, Error> {
        match self {
            Self::Receipts => {
                Ok(Some(Arc::new(SqliteSink::open(dir.join(RECEIVER), "receiver".parse()?, Rule::Sealed)?)))
            }
            Self::Plain | Self::External => Ok(None),
        }
    }
}

/// Answers until it is killed, or has come to its point.
pub(super) fn serve(own: &Own, kind: Kind) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    own.say("address", listener.local_addr()?);
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let stream = stream?;
            // A client that goes away in the midst of a request is no reason to stop.
            scope.spawn(move || answer(own, kind, &stream).map_err(|error| own.say("failed", error)));
        }
        Ok(())
    })
}

fn answer(own: &Own, kind: Kind, stream: &TcpStream) -> Result<(), Error> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let request: Value = serde_json::from_str(&line)?;
    let text = |key: &str| request[key].as_str().unwrap_or_default();
    let mut connection = Connection::open_with_flags(own.dir.join(kind.file()), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let answer = match kind {
        Kind::Plain | Kind::External => {
            let outcome = make(&tx, text("text"))?;
            json!({ "verdict": "written", "outcome": outcome.as_str() })
        }
        Kind::Receipts => {
            let (token, operation): (Token, OperationId) = (text("token").parse()?, text("operation").parse()?);
            if request["look"] == json!(true) {
                look(&tx, &token, &operation)?
            } else {
                apply(&tx, &token, &operation, text("text"))?
            }
        }
    };
    let looks = request["look"] == json!(true);
    if !looks {
        own.reach(Point::BeforeCommit);
    }
    tx.commit()?;
    if !looks {
        own.reach(Point::AfterCommit);
    }
    let mut stream = stream;
    writeln!(stream, "{answer}")?;
    stream.flush()?;
    if !looks {
        own.reach(Point::AfterResponse);
    }
    Ok(())
}

fn make(tx: &Transaction<'_>, text: &str) -> Result<Outcome, rusqlite::Error> {
    tx.execute("INSERT INTO ticket (text) VALUES (?1)", [text])?;
    #[expect(clippy::expect_used, reason = "short, without any limit that it could break")]
    Ok(Outcome::new(format!("ticket {}", tx.last_insert_rowid())).expect("an outcome"))
}

fn apply(tx: &Transaction<'_>, token: &Token, operation: &OperationId, text: &str) -> Result<Value, Error> {
    let mut made = None;
    let applied = SqliteFence::new(Rule::Sealed).apply(tx, token, operation, &digest_of(text.as_bytes()), |tx| {
        let outcome = make(tx, text)?;
        made = Some(outcome.clone());
        Ok::<_, rusqlite::Error>(outcome)
    });
    let verdict = applied.map_err(|error| match error {
        ApplyError::Sink(error) => Error::from(error),
        ApplyError::Effect(error) => Error::from(error),
    })?;
    let outcome = match &verdict {
        Verdict::Replay(replayed) => Some(replayed.outcome.clone()),
        _ => made,
    };
    Ok(json!({ "verdict": verdict.name(), "outcome": outcome.as_ref().map(Outcome::as_str) }))
}

/// Finds the effect, in the same transaction as the check of the token: what is absent then, is absent for good.
fn look(tx: &Transaction<'_>, token: &Token, operation: &OperationId) -> Result<Value, Error> {
    Ok(match SqliteFence::new(Rule::Sealed).lookup(tx, token, operation)? {
        Ok(Lookup::Found(found)) => json!({ "verdict": "found", "outcome": found.outcome.as_str() }),
        Ok(Lookup::Absent) => json!({ "verdict": "absent" }),
        Err(verdict) => json!({ "verdict": verdict.name() }),
    })
}
