use super::{RESOURCE, TTL};
use crate::receivers::id;
use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenure::blocking::wait_for;
use tenure::core::fence::Rule;
use tenure::sink::{Sink, SqliteFence, SqliteSink};
use tenure::{AcquireError, Lease, Lost, Tenure, Token, Verdict};
use tenure_servers::within;

/// A worker: a connection of its own, and a lease once it has one.
pub(crate) struct Worker {
    pub(crate) name: &'static str,
    pub(crate) tenure: Tenure,
    pub(crate) refused: usize,
    receiver: PathBuf,
    sink: Arc<dyn Sink>,
    lease: Option<Lease>,
    token: Option<Token>,
}

/// What the receiver said to a write.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    Accepted,
    Refused(Verdict),
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted => f.write_str("accepted"),
            Self::Refused(Verdict::Stale { current, .. }) => {
                write!(f, "refused as stale, the receiver has {current:?}")
            }
            Self::Refused(verdict) => write!(f, "refused: {verdict:?}"),
        }
    }
}

/// Who held it before, as the four questions are put to it.
pub(crate) trait Former {
    fn name(&self) -> &'static str;

    /// Why it has stopped, if it has.
    fn stopped(&mut self) -> Option<String>;

    /// Writes with the token that it had, as a process that wakes up would; whether that was accepted.
    fn writes(&mut self) -> bool;

    /// How many of its writes were refused.
    fn refused(&self) -> usize;
}

impl Former for Worker {
    fn name(&self) -> &'static str {
        self.name
    }

    fn stopped(&mut self) -> Option<String> {
        self.lost().map(|lost| lost.loss.to_string())
    }

    fn writes(&mut self) -> bool {
        matches!(self.write(), Written::Accepted)
    }

    fn refused(&self) -> usize {
        self.refused
    }
}

impl Worker {
    pub(super) fn connect(name: &'static str, url: &str, receiver: &Path) -> Self {
        let tenure = wait_for(Tenure::builder().owner(name).connect(url)).unwrap();
        Self::over(name, tenure, receiver)
    }

    pub(super) fn over(name: &'static str, tenure: Tenure, receiver: &Path) -> Self {
        let sink = SqliteSink::create(receiver, id("shop"), Rule::Sealed).unwrap();
        let (receiver, sink) = (receiver.to_owned(), Arc::new(sink));
        Self { name, tenure, refused: 0, receiver, sink, lease: None, token: None }
    }

    /// Asks until it is granted, for at most `patience`, and at least once. `told` hears the refusals, each kind once.
    pub(crate) fn take(&mut self, patience: Duration, mut told: impl FnMut(&str)) -> Result<(), AcquireError> {
        let mut kinds = BTreeSet::new();
        let mut last = None;
        let mut ask = || {
            let wish = self.tenure.acquire(RESOURCE).ttl(TTL).sink(Arc::clone(&self.sink)).wait(Duration::ZERO);
            match wait_for(wish.into_future()) {
                Ok(lease) => Some(lease),
                Err(error) => {
                    if kinds.insert(without_numbers(&error.to_string())) {
                        told(&error.to_string());
                    }
                    last = Some(error);
                    None
                }
            }
        };
        let lease = if patience.is_zero() { ask() } else { within(patience, ask) };
        let Some(lease) = lease else { return Err(last.unwrap()) };
        self.token = Some(lease.token().clone());
        self.lease = Some(lease);
        Ok(())
    }

    pub(crate) fn token(&self) -> &Token {
        self.token.as_ref().unwrap()
    }

    /// Writes with the token that it has, whatever it believes: what a worker does that wakes up and does not look.
    pub(super) fn write(&mut self) -> Written {
        let written = offer(&self.receiver, self.name, self.token());
        if let Written::Refused(verdict) = &written {
            self.refused += 1;
            // What the receiver says is heeded, as by any worker that looks at the answer.
            if let Some(lease) = &self.lease {
                let _ = wait_for(lease.heed(self.sink.id(), verdict));
            }
        }
        written
    }

    /// The loss, if it knows of one without asking anybody.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.lease.as_ref().unwrap().ensure_local().err()
    }

    pub(crate) fn has_lease(&self) -> bool {
        self.lease.is_some()
    }

    /// Asks the authority whether the lease stands.
    pub(crate) fn checks(&self) -> bool {
        wait_for(self.lease.as_ref().unwrap().ensure_owned()).is_ok()
    }

    pub(crate) fn release(&mut self) {
        wait_for(self.lease.take().unwrap().release()).unwrap();
    }

    /// Takes and gives back another resource all the time, on a thread of its own.
    pub(crate) fn busy(self) -> Busy {
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                let wish = self.tenure.acquire("another").ttl(TTL).wait(Duration::ZERO);
                if let Ok(lease) = wait_for(wish.into_future()) {
                    let _ = wait_for(lease.release());
                }
            }
        });
        Busy { over, thread }
    }

    pub(super) fn complete(&mut self) {
        wait_for(self.lease.take().unwrap().complete("done")).unwrap();
    }
}

/// A worker that is busy until it is told to end.
pub(crate) struct Busy {
    over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Busy {
    pub(crate) fn end(self) {
        self.over.store(true, Ordering::Release);
        self.thread.join().unwrap();
    }
}

/// A write with this token, in the receiver's own transaction.
pub(super) fn offer(receiver: &Path, by: &str, token: &Token) -> Written {
    let mut connection = Connection::open(receiver).unwrap();
    connection.busy_timeout(Duration::from_secs(10)).unwrap();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute_batch("CREATE TABLE IF NOT EXISTS effect (epoch INTEGER, by TEXT)").unwrap();
    match SqliteFence::new(Rule::Sealed).admit(&tx, token).unwrap() {
        Ok(_) => {
            tx.execute("INSERT INTO effect VALUES (?1, ?2)", (token.epoch.as_i64(), by)).unwrap();
            tx.commit().unwrap();
            Written::Accepted
        }
        Err(verdict) => Written::Refused(verdict),
    }
}

/// What the receiver has accepted, in its order.
pub(super) fn accepted(receiver: &Path) -> Vec<(i64, String)> {
    let connection = Connection::open(receiver).unwrap();
    let Ok(mut statement) = connection.prepare("SELECT epoch, by FROM effect ORDER BY rowid") else {
        return Vec::new();
    };
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// A refusal without its times, which differ each time.
fn without_numbers(text: &str) -> String {
    text.split(' ').filter(|word| !word.starts_with(|c: char| c.is_ascii_digit())).collect()
}
