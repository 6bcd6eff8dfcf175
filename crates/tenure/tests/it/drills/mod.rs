//! What happens to the task, to both workers and to the receiver when the authority's own store fails, on real servers.
//!
//! Each drill answers the same four questions, and its account stands in `docs/drills`:
//! `TENURE_DRILLS_BOOK=docs/drills cargo test -p tenure --test it drills` writes them anew.

mod apart;
mod book;
mod elsewhere;
mod worker;

mod etcd;
mod postgres;
mod redis;
mod sqlite;

use crate::receivers::id;
use book::Book;
use std::time::Duration;
use tempfile::TempDir;
use tenure::ResourceName;
use tenure::authority::store::HistoryQuery;
use tenure::authority::{Authority, Clock, store};
use tenure::blocking::wait_for;
use tenure::core::SessionId;
use tenure::core::decide::Keys;
use tenure::core::fence::Rule;
use tenure::core::record::{Event, Phase, SessionState};
use tenure::sink::SqliteSink;
use tenure_servers::within;
pub(crate) use worker::{Former, Worker, Written};

/// What is handed over in every drill.
pub(crate) const RESOURCE: &str = "nightly-index";

/// The ttl of the drills: short, and longer than what a busy machine takes for a round trip.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// How long anything may take that must come true.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// One drill: a receiver that is sealed, workers, and an account of what happens.
pub(crate) struct Drill {
    folder: TempDir,
    book: Book,
    /// How many rows the receiver had when the takeover was announced, and under which epoch that was.
    announced: Option<(usize, i64)>,
}

impl Drill {
    /// `slug` names its page, `title` says what is done to whom.
    pub(crate) fn new(slug: &'static str, title: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        SqliteSink::create(folder.path().join("shop.db"), id("shop"), Rule::Sealed).unwrap();
        Self { folder, book: Book::new(slug, title), announced: None }
    }

    /// Says what happens now.
    pub(crate) fn tell(&mut self, what: impl std::fmt::Display) {
        self.book.tell(what);
    }

    /// A place for files of the drill.
    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// A worker with a connection of its own, as in another process.
    pub(crate) fn worker(&self, name: &'static str, url: &str) -> Worker {
        Worker::connect(name, url, &self.path("shop.db"))
    }

    /// The worker asks until it gets the resource; the refusals on its way are told, each kind once.
    pub(crate) fn takes(&mut self, worker: &mut Worker) {
        let (book, name) = (&mut self.book, worker.name);
        let told = |refusal: &str| book.tell(format_args!("{name} is told: {refusal}"));
        worker.take(PATIENCE, told).unwrap();
        self.announce(worker);
    }

    fn announce(&mut self, worker: &Worker) {
        let epoch = worker.token().epoch.as_i64();
        self.announced = Some((self.rows().len(), epoch));
        self.tell(format_args!(
            "{} holds {RESOURCE} under epoch {epoch}: announced, sealed at the receiver",
            worker.name
        ));
    }

    /// The worker writes once, and it is told what the receiver said.
    pub(crate) fn writes(&mut self, worker: &mut Worker) -> Written {
        let written = worker.write();
        self.tell(format_args!("{} writes under epoch {}: {written}", worker.name, worker.token().epoch));
        written
    }

    /// Waits until the worker knows of its loss by itself.
    pub(crate) fn loses(&mut self, worker: &Worker) {
        let lost = within(PATIENCE, || worker.lost());
        let lost = lost.unwrap_or_else(|| panic!("{} never noticed that it has lost", worker.name));
        self.tell(format_args!("{} has stopped: {}", worker.name, lost.loss));
    }

    /// What the receiver has accepted, in its order: epoch and writer.
    pub(crate) fn rows(&self) -> Vec<(i64, String)> {
        worker::accepted(&self.path("shop.db"))
    }

    /// The four questions. `new` finishes the task; `old` is tried once more, as a process that wakes up would.
    pub(crate) fn ends(mut self, mut old: impl Former, mut new: Worker, url: &str) {
        let stopped = old.stopped().unwrap_or_else(|| panic!("{} still believes", old.name()));
        for _ in 0..3 {
            assert!(!old.writes(), "{} wrote after the takeover was announced", old.name());
        }
        let written = new.write();
        assert!(matches!(written, Written::Accepted), "{} holds the resource, and its write was {written}", new.name);
        let (before, epoch) = self.announced.unwrap();
        let rows = self.rows();
        let after: Vec<_> = rows.get(before..).unwrap().iter().collect();
        assert!(
            after.iter().all(|(of, by)| (*of, by.as_str()) == (epoch, new.name)),
            "not by {} alone: {rows:?}",
            new.name
        );
        self.book.answer("old holder stopped?", format_args!("yes: {} ({stopped})", old.name()));
        self.book.answer(
            "new holder the only writer?",
            format_args!(
                "yes: {} of {} after its announcement; {} tries of {} refused, none accepted",
                after.len(),
                new.name,
                old.refused(),
                old.name()
            ),
        );
        new.complete();
        let authority = Authority::new(store::connect(url, Clock::from_env().unwrap()).unwrap());
        let phase =
            wait_for(authority.inspect(&ResourceName::new(RESOURCE).unwrap())).unwrap().view.lease.unwrap().phase;
        assert!(matches!(phase, Phase::Completed { .. }), "{phase:?}");
        self.book.answer("terminal state of the task", format_args!("completed by {} under epoch {epoch}", new.name));
        drop((old, new));
        let left = within(PATIENCE, || left_behind(&authority).is_empty().then_some(()));
        assert!(left.is_some(), "left behind: {:?}", left_behind(&authority));
        self.book.answer("left behind", "nothing: no session is live, no grant stands");
        self.book.close();
    }
}

/// The sessions that still live, of all that the history knows.
fn left_behind(authority: &Authority) -> Vec<SessionId> {
    let Ok(rows) = wait_for(authority.store().history(HistoryQuery::default())) else {
        return vec![SessionId::from_bits(0)];
    };
    let opened = rows.iter().map(|row| &row.transition).filter(|row| row.event == Event::Opened);
    let lives = |id: &SessionId| {
        let Ok(read) = wait_for(authority.store().read(&Keys { session: Some(*id), ..Keys::default() })) else {
            return true;
        };
        read.view.caller.is_some_and(|session| {
            let present = session.incarnation == read.view.authority.incarnation;
            session.state == SessionState::Live && present && !read.now.reached(&session.deadline)
        })
    };
    opened.filter_map(|row| row.session).filter(lives).collect()
}
