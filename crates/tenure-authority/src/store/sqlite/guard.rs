//! Whether the file is the one that was used here before, as its witness beside it says.

use super::apply::{append, meta, put_authority};
use super::place::Place;
use super::row::{self, Meta};
use super::time::Time;
use crate::StoreError;
use crate::witness::{FileMark, Found, Paper, Scribe, Witness};
use rusqlite::Transaction;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use tenure_core::record::{AuthorityRecord, Event, Seen, Transition};
use tenure_core::{Reason, StoreIdentity, Ttl};

/// Keeps the witness of an open file, and notices that the file was put back.
#[derive(Debug)]
pub(super) struct Guard {
    paper: Paper,
    opened: (u64, u64),
    mark: FileMark,
    max_ttl: OnceLock<Ttl>,
    /// The identity and incarnation that the witness on disk is of, the newest that is known of it.
    newest: Mutex<Option<Witness>>,
    /// The number of the newest row that this process knows of. It decides without a lock.
    number: AtomicU64,
    /// The longest ttl that stands in the witness on disk, in nanoseconds.
    longest: AtomicU64,
    gone: AtomicBool,
    scribe: Scribe<Witness>,
}

/// What can be said of a file that is not what its witness saw.
struct Lost {
    why: &'static str,
    seen: Seen,
    belief: Option<Ttl>,
}

/// The device and inode of a file that is there.
pub(super) fn device_and_inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

impl Guard {
    /// For the file that was opened; `before`: which one stood there just before.
    pub(super) fn new(place: &Place, before: Option<(u64, u64)>) -> Result<Self, StoreError> {
        let found = fs::metadata(&place.path).map_err(|error| StoreError::Unavailable(format!("{place}: {error}")))?;
        let opened = (found.dev(), found.ino());
        if before.is_some_and(|before| before != opened) {
            return Err(StoreError::Unavailable(format!("{place} was replaced while it was being opened: try again")));
        }
        let born = found.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let mut name = place.path.as_os_str().to_owned();
        name.push("-witness");
        let paper = Paper::new(PathBuf::from(name), Some(place.path.to_path_buf()));
        let at = paper.clone();
        let scribe = Scribe::start(move |witness| write_down(&at, &witness))
            .map_err(|error| StoreError::Unavailable(format!("no thread can be started: {error}")))?;
        Ok(Self {
            paper,
            opened,
            mark: FileMark { inode: found.ino(), born: born.map(|born| born.as_nanos()) },
            max_ttl: OnceLock::new(),
            newest: Mutex::new(None),
            number: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            scribe,
        })
    }

    /// Compares the file with its witness, and quarantines a file that was put back.
    ///
    /// The new witness stands before the transaction is committed. If the process ends in between, the next one finds a
    /// file behind its witness and does the same once more; whoever waits for the transaction finds both in accord.
    pub(super) fn compare(&self, transaction: &Transaction<'_>, place: &Place, time: &Time) -> Result<(), StoreError> {
        let fault = |error: rusqlite::Error| place.fault(&error);
        let (mut own, number) = (meta(transaction).map_err(fault)?, newest_row(transaction).map_err(fault)?);
        let file = self.witness_of(&own, number);
        let mut settled = None;
        let turn = self.paper.update(place.busy_timeout, |found| {
            let (write, witness) = match judge(&found, &file) {
                Ok(longest_ttl) => {
                    let witness = Witness { longest_ttl: longest_ttl.max(Some(usual(&own))), ..file.clone() };
                    // What is a little behind is written when the file is closed.
                    (!matches!(found, Found::Witness(_)), witness)
                }
                Err(lost) => {
                    tracing::warn!(path = %place, why = lost.why, "the store went back in time, and is in quarantine");
                    let number =
                        quarantine(transaction, &mut own, &lost, number, time).map_err(|error| match error {
                            Failed::Sql(error) => Refused(place.fault(&error)),
                            Failed::Store(error) => Refused(error),
                        })?;
                    (true, Witness { longest_ttl: lost.belief.max(Some(usual(&own))), ..self.witness_of(&own, number) })
                }
            };
            settled = Some(witness.clone());
            Ok::<_, Refused>(write.then_some(witness))
        });
        match (turn, settled) {
            (Ok(true), Some(witness)) => {
                let _ = self.max_ttl.set(witness.max_ttl);
                self.number.store(witness.seen.number, Ordering::Release);
                self.longest.store(nanos(witness.longest_ttl), Ordering::Release);
                *self.newest() = Some(witness);
                Ok(())
            }
            (Ok(_), _) => Err(StoreError::Unavailable(format!(
                "another process has held {} for longer than {:?}: see which one is stopped",
                self.paper.path().display(),
                place.busy_timeout
            ))),
            (Err(Refused(error)), _) => Err(error),
        }
    }

    /// Whether the file that was opened still stands at its path.
    pub(super) fn unmoved(&self, place: &Place) -> Result<(), StoreError> {
        if self.gone.load(Ordering::Acquire) || device_and_inode(&place.path) != Some(self.opened) {
            return Err(self.gone(place));
        }
        Ok(())
    }

    /// The number of the newest row that this process knows of.
    pub(super) fn known(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Whether a reading shows all that was known before it.
    pub(super) fn not_before(&self, read: Seen, known: u64, place: &Place) -> Result<(), StoreError> {
        if read.number < known || self.gone.load(Ordering::Acquire) {
            return Err(self.gone(place));
        }
        self.number.fetch_max(read.number, Ordering::AcqRel);
        Ok(())
    }

    /// Whether a row that is about to be committed comes after all that is known.
    pub(super) fn not_behind(&self, grown: Seen, place: &Place) -> Result<(), StoreError> {
        if grown.number <= self.number.load(Ordering::Acquire) {
            return Err(self.gone(place));
        }
        Ok(())
    }

    /// Writes down that a session may get so long a ttl, if none had one before.
    pub(super) fn promise(&self, ttl: Option<Ttl>, place: &Place) -> Result<(), StoreError> {
        let Some(ttl) = ttl.filter(|ttl| nanos(Some(*ttl)) > self.longest.load(Ordering::Acquire)) else {
            return Ok(());
        };
        let Some(own) = self.newest().clone() else { return Ok(()) };
        let made = self.paper.update(place.busy_timeout, |found| {
            let own = Witness { longest_ttl: own.longest_ttl.max(Some(ttl)), ..own.clone() };
            Ok::<_, io::Error>(merged(&found, &own))
        });
        match made {
            Ok(true) => {
                self.longest.fetch_max(nanos(Some(ttl)), Ordering::AcqRel);
                if let Some(newest) = self.newest().as_mut() {
                    newest.longest_ttl = newest.longest_ttl.max(Some(ttl));
                }
                Ok(())
            }
            Ok(false) => Err(StoreError::Unavailable(format!(
                "another process has held {} for too long: see which one is stopped",
                self.paper.path().display()
            ))),
            Err(error) => Err(self.not_written(&error)),
        }
    }

    /// A row was committed.
    pub(super) fn note(&self, seen: Seen) {
        self.number.fetch_max(seen.number, Ordering::AcqRel);
        let mut newest = self.newest();
        if let Some(newest) = newest.as_mut() {
            newest.seen = newest.seen.max(seen);
            self.scribe.tell(newest.clone());
        }
    }

    fn newest(&self) -> MutexGuard<'_, Option<Witness>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn witness_of(&self, own: &Meta, number: u64) -> Witness {
        Witness {
            identity: own.authority.identity.clone(),
            seen: Seen { incarnation: own.authority.incarnation, number },
            max_ttl: own.authority.max_ttl,
            longest_ttl: None,
            file: Some(self.mark),
        }
    }

    fn gone(&self, place: &Place) -> StoreError {
        self.gone.store(true, Ordering::Release);
        StoreError::Unavailable(format!(
            "{place} was replaced, moved or put back while this process had it open: nothing is granted until it is \
             opened anew, so end this process and start it again"
        ))
    }

    fn not_written(&self, error: &io::Error) -> StoreError {
        StoreError::NotWritable(format!("{}: {error}", self.paper.path().display()))
    }
}

/// What is wrong with a file, or the longest ttl that was ever given there.
fn judge(found: &Found, file: &Witness) -> Result<Option<Ttl>, Lost> {
    let is_new = file.seen.number == 0;
    match found {
        Found::Nothing | Found::Damaged if is_new => Ok(None),
        Found::Nothing => Err(Lost { why: "it has no witness beside it: it was copied, or moved alone", ..nothing() }),
        Found::Damaged => Err(Lost { why: "its witness is damaged, so that nobody can tell", ..nothing() }),
        // Nothing was ever granted there.
        Found::Witness(there) if is_new && there.seen.number == 0 => Ok(None),
        Found::Witness(there) => {
            let why = if is_new {
                "the file that stood here before is gone, and this one is new"
            } else if there.file != file.file {
                "it is another file than its witness saw: it was copied or put back"
            } else if there.identity != file.identity {
                "its witness saw another store in its place"
            } else if there.seen > file.seen {
                "its witness saw a later history: it was put back"
            } else {
                return Ok(there.longest_ttl);
            };
            Err(Lost { why, seen: there.seen, belief: Some(there.longest_ttl.unwrap_or(Ttl::MIN)) })
        }
    }
}

/// What each witness allows for from the beginning, so that no usual session has to wait for its promise.
fn usual(own: &Meta) -> Ttl {
    Ttl::DEFAULT.min(own.authority.max_ttl)
}

fn nothing() -> Lost {
    Lost { why: "", seen: Seen::default(), belief: None }
}

/// Puts the store into quarantine, under another identity. Returns the number of the newest row.
fn quarantine(
    transaction: &Transaction<'_>,
    own: &mut Meta,
    lost: &Lost,
    number: u64,
    time: &Time,
) -> Result<u64, Failed> {
    let now = time.now().map_err(Failed::Store)?;
    let bits = crate::random_bits().map_err(|error| Failed::Store(error.into()))?;
    let identity = StoreIdentity::new(format!("sqlite:{bits:032x}"))
        .map_err(|error| Failed::Store(StoreError::Corrupt(error.to_string())))?;
    let belief = lost.belief.unwrap_or(own.authority.max_ttl).max(longest_session(transaction)?);
    let until = now.after(belief.get());
    let after = AuthorityRecord {
        quarantined_until: own.authority.quarantined_until.max(Some(until)),
        ..own.authority.quarantined(identity, lost.seen, now)
    };
    let version = own.version;
    put_authority(transaction, own, &after, Some(version))?;
    let transition = Transition {
        at: now,
        event: Event::Quarantined,
        resource: None,
        session: None,
        epoch: None,
        grant: None,
        actor: None,
        why: Reason::new(lost.why).ok(),
    };
    append(transaction, &transition)?;
    Ok(number + 1)
}

/// The longest ttl of the sessions that the file knows of.
fn longest_session(transaction: &Transaction<'_>) -> rusqlite::Result<Ttl> {
    let nanos: Option<i64> = transaction.query_row("SELECT max(ttl_ns) FROM session", (), |found| found.get(0))?;
    let span = Duration::from_nanos(nanos.unwrap_or(0).cast_unsigned());
    Ok(Ttl::new(span).unwrap_or(Ttl::MIN))
}

fn newest_row(transaction: &Transaction<'_>) -> rusqlite::Result<u64> {
    let sql = "SELECT coalesce(max(number), 0) FROM history";
    transaction.query_row(sql, (), |found| row::unsigned(found, 0))
}

/// What is to be written: the newer of each, and nothing over the witness of another file or store.
fn merged(found: &Found, own: &Witness) -> Option<Witness> {
    match found {
        Found::Witness(there) if there.identity != own.identity || there.file != own.file => None,
        Found::Witness(there) => {
            let (seen, longest_ttl) = (own.seen.max(there.seen), own.longest_ttl.max(there.longest_ttl));
            let both = Witness { seen, longest_ttl, ..own.clone() };
            Some(both).filter(|both| both != there)
        }
        Found::Nothing | Found::Damaged => Some(own.clone()),
    }
}

/// What the scribe does. Whoever is stopped in its turn does not stop others.
fn write_down(paper: &Paper, witness: &Witness) {
    let written = paper.update(Duration::from_millis(100), |found| Ok::<_, io::Error>(merged(&found, witness)));
    if let Err(error) = written {
        tracing::warn!(path = %paper.path().display(), %error, "the witness cannot be written: a file that is put back may not be noticed");
    }
}

fn nanos(ttl: Option<Ttl>) -> u64 {
    ttl.map_or(0, |ttl| u64::try_from(ttl.get().as_nanos()).unwrap_or(u64::MAX))
}

/// Why a file could not be put into quarantine.
enum Failed {
    Sql(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

struct Refused(StoreError);

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self(StoreError::NotWritable(format!("the witness: {error}")))
    }
}
