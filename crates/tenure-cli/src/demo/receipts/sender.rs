//! Who wants the ticket: a worker with a lease, and the ledger of its calls in a database of its own.

use super::player::{How, Own, Point};
use super::receiver::Kind;
use crate::demo::DemoError;
use crate::demo::worker::{AUTHORITY, CLOCK, TICK};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure::authority::{Clock, FileClock, store};
use tenure::blocking::{Tenure, wait_for};
use tenure::core::fence::Rule;
use tenure::core::ledger::Looked;
use tenure::core::operation::Attempt;
use tenure::core::{OperationId, Outcome, SinkId, Token};
use tenure::sink::ledger::{
    AttemptRecord, Decision, Intended, Intent, Ledger, NoEffect, Probe, ProbeError, Which, reconcile,
};
use tenure::sink::{Answer, SqliteFence, SqliteLedger, SqliteSink, digest_of};

pub(super) const SENDER: &str = "sender.db";
/// What the request says.
pub(super) const TEXT: &str = "a ticket for the printer on floor 3";
const RESOURCE: &str = "printer-3";
const LEDGER: SqliteLedger = SqliteLedger::new();
const LEASE_TICKS: u32 = 10;

type Error = Box<dyn std::error::Error>;

/// Makes the authority and the sender's database: its fence, the ledger, and a list of the epochs that tried.
pub(super) fn prepare(dir: &Path) -> Result<(), DemoError> {
    let clock = Clock::File(FileClock::open(dir.join(CLOCK))?);
    drop(store::connect(&format!("sqlite:{}?create=true", dir.join(AUTHORITY).display()), clock)?);
    let connection = Connection::open(dir.join(SENDER))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    SqliteFence::new(Rule::Sealed).install(&connection)?;
    LEDGER.install(&connection)?;
    Ok(connection.execute_batch("CREATE TABLE tried (epoch INTEGER PRIMARY KEY)")?)
}

pub(super) fn run(own: &Own, kind: Kind, how: How, address: &str) -> Result<(), Error> {
    let clock = Clock::File(FileClock::open(own.dir.join(CLOCK))?);
    let url = format!("sqlite:{}", own.dir.join(AUTHORITY).display());
    let tenure = Tenure::from(wait_for(tenure::Tenure::builder().owner(&own.name).clock(clock).connect(&url))?);
    let book = SqliteSink::open(own.dir.join(SENDER), "sender".parse()?, Rule::Sealed)?;
    let mut wish = tenure.wish(RESOURCE).ttl(TICK * LEASE_TICKS).wait(Duration::ZERO).sink(Arc::new(book.clone()));
    if let Some(sink) = kind.sink(&own.dir)? {
        wish = wish.sink(sink);
    }
    let lease = match tenure.acquire(wish) {
        Ok(lease) => lease,
        Err(_) if how == How::Waits => {
            own.say("claimed", false);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    own.say("claimed", true);
    let worker = Worker { own, kind, how, address, token: lease.token(), book: &book };
    let sent = worker.work()?;
    own.say("sent", sent);
    // One that is lost cannot be given up, and need not be.
    let _ = lease.release();
    Ok(())
}

struct Worker<'a> {
    own: &'a Own,
    kind: Kind,
    how: How,
    address: &'a str,
    token: &'a Token,
    book: &'a SqliteSink,
}

impl Worker<'_> {
    /// Whether a request was sent.
    fn work(&self) -> Result<bool, Error> {
        self.find_out()?;
        let intent = intent(&self.own.name, self.kind)?;
        let mut database = Connection::open(self.own.dir.join(SENDER))?;
        let tx = begin(&mut database)?;
        let intended = LEDGER.intent(&tx, self.token, &intent)?.map_err(|refused| refused.to_string())?;
        self.own.reach(Point::BeforeIntent);
        tx.commit()?;
        match intended {
            Intended::Written => {}
            // It stands, or nobody knows: it is not sent again.
            Intended::Effective { .. } | Intended::Unsettled { .. } => return Ok(false),
            other => return Err(format!("{other:?}").into()),
        }
        self.own.reach(Point::AfterIntent);
        let tx = begin(&mut database)?;
        self.try_under(&tx)?;
        let _ = LEDGER.sent(tx, self.token, &intent.operation)?.map_err(|refused| refused.to_string())?;
        self.own.reach(Point::AfterClaim);
        if self.how == How::DoneFirst {
            self.done(&mut database, &intent.operation, &Outcome::new("surely")?)?;
            self.own.reach(Point::AfterAck);
        }
        if self.how == How::Waits {
            self.own.say("token", self.token);
            let mut order = String::new();
            std::io::stdin().read_line(&mut order)?;
            if order.trim() == "ack" {
                // What a worker does that was stopped after its last checkpoint.
                let told = self.done(&mut database, &intent.operation, &Outcome::new("late")?)?;
                self.own.say("ack", told);
                return Ok(false);
            }
        }
        let answer = self.ask(false);
        let Ok(answer) = answer else {
            self.own.reach(Point::NoAnswer);
            let tx = begin(&mut database)?;
            let told = LEDGER.unknown(&tx, self.token, &intent.operation, &"no answer".parse()?)?;
            told.map_err(|refused| refused.to_string())?;
            tx.commit()?;
            return Ok(true);
        };
        self.own.reach(Point::BeforeAck);
        match answer["outcome"].as_str() {
            Some(outcome) => {
                self.done(&mut database, &intent.operation, &Outcome::new(outcome)?)?;
            }
            None => {
                let tx = begin(&mut database)?;
                let why = answer["verdict"].as_str().unwrap_or("refused").parse()?;
                let told = LEDGER.failed(&tx, self.token, &intent.operation, NoEffect::Fenced, &why)?;
                told.map_err(|refused| refused.to_string())?;
                tx.commit()?;
            }
        }
        self.own.reach(Point::AfterAck);
        Ok(true)
    }

    /// What others have left: the receiver is asked under the new token, where it can be.
    fn find_out(&self) -> Result<(), Error> {
        let probe = Asked { worker: self, system: "receiver".parse()? };
        let probes: &[&dyn Probe] = if self.kind == Kind::Receipts { &[&probe] } else { &[] };
        let settled = wait_for(self.book.settle(self.token))?.map_err(|refused| refused.to_string())?;
        if settled.unknown > 0 && !probes.is_empty() {
            // A look-up counts as a try.
            let mut database = Connection::open(self.own.dir.join(SENDER))?;
            let tx = begin(&mut database)?;
            self.try_under(&tx)?;
            tx.commit()?;
        }
        wait_for(reconcile(self.book, self.token, probes))?.map_err(|refused| refused.to_string())?;
        if self.how == How::Blind {
            // The counterexample: silence is taken for "not done".
            for attempt in wait_for(self.book.list(Which::Unknown, None, None, 10))? {
                let (by, why) = ("nobody".parse()?, "no answer came".parse()?);
                let decided = wait_for(self.book.decide(&attempt.key, &Decision::NotApplied, &by, &why))?;
                decided.map_err(|refused| refused.to_string())?;
            }
        }
        Ok(())
    }

    fn try_under(&self, tx: &Transaction<'_>) -> Result<(), Error> {
        tx.execute("INSERT OR IGNORE INTO tried VALUES (?1)", [self.token.epoch.as_i64()])?;
        Ok(())
    }

    /// Writes down that it is done; what the ledger says to that.
    fn done(&self, database: &mut Connection, operation: &OperationId, outcome: &Outcome) -> Result<String, Error> {
        let tx = begin(database)?;
        Ok(match LEDGER.done(&tx, self.token, operation, outcome)? {
            Ok(Attempt::Done) => {
                tx.commit()?;
                "accepted".to_owned()
            }
            Ok(state) => return Err(format!("it is {}", state.name()).into()),
            Err(refused) => refused.to_string(),
        })
    }

    fn ask(&self, look: bool) -> Result<Value, Error> {
        ask(self.address, &self.token.to_string(), look, TEXT)
    }
}

/// The receiver of tickets, as a probe: it looks under the token, in one transaction with its check.
struct Asked<'a> {
    worker: &'a Worker<'a>,
    system: SinkId,
}

impl Probe for Asked<'_> {
    fn system(&self) -> &SinkId {
        &self.system
    }

    fn look<'a>(&'a self, _: &'a Token, _: &'a AttemptRecord) -> Answer<'a, Result<Looked, ProbeError>> {
        let looked = self.worker.ask(true).and_then(|answer| match answer["verdict"].as_str() {
            Some("found") => Ok(Looked::Found(Outcome::new(answer["outcome"].as_str().unwrap_or_default())?)),
            Some("absent") => Ok(Looked::AbsentForGood),
            other => Err(format!("the receiver said {other:?}").into()),
        });
        let looked = looked.map_err(|error| ProbeError(error.to_string()));
        Box::pin(async { looked })
    }
}

/// One request under another's token.
pub(super) fn courier(own: &Own, address: &str, token: &str, text: &str) -> Result<(), Error> {
    let answer = ask(address, token, false, text)?;
    own.say("verdict", answer["verdict"].as_str().unwrap_or_default());
    own.say("outcome", answer["outcome"].as_str().unwrap_or_default());
    Ok(())
}

fn ask(address: &str, token: &str, look: bool, text: &str) -> Result<Value, Error> {
    let mut stream = TcpStream::connect(address)?;
    let operation = operation()?;
    let request = json!({ "token": token, "operation": operation.as_str(), "text": text, "look": look });
    writeln!(stream, "{request}")?;
    stream.flush()?;
    let mut line = String::new();
    match BufReader::new(stream).read_line(&mut line)? {
        0 => Err("the connection broke off".into()),
        _ => Ok(serde_json::from_str(&line)?),
    }
}

fn operation() -> Result<OperationId, Error> {
    Ok(OperationId::for_intent("printer-3-is-out-of-paper", "ticket", &digest_of(TEXT.as_bytes()))?)
}

fn intent(owner: &str, kind: Kind) -> Result<Intent, Error> {
    let system = if kind == Kind::External { "outside" } else { "receiver" };
    Ok(Intent {
        operation: operation()?,
        digest: digest_of(TEXT.as_bytes()),
        system: system.parse()?,
        owner: owner.parse()?,
    })
}

fn begin(database: &mut Connection) -> Result<Transaction<'_>, Error> {
    database.busy_timeout(Duration::from_secs(10))?;
    Ok(database.transaction_with_behavior(TransactionBehavior::Immediate)?)
}
