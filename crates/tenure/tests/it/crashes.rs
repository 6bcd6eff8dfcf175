//! A candidate whose process is killed at each step of its takeover, over a database in a file, a folder and PostgreSQL.

use crate::faults::{Call, Fault, Faults};
use crate::receivers::id;
use rustix::process::{Signal, getpid, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tenure::authority::store::HistoryQuery;
use tenure::authority::{Authority, Clock, FileClock, Store, store};
use tenure::blocking::wait_for;
use tenure::core::decide::Refusal;
use tenure::core::fence::Rule;
use tenure::core::record::{Event, LeaseRecord, Phase};
use tenure::sink::{FileSink, PostgresFence, PostgresSink, Sink, SqliteFence, SqliteSink};
use tenure::{Acquire, AcquireError, ResourceName, Tenure, Token, Verdict};
use tenure_servers::{Postgres, eventually};

const ENTRY: &str = "crashes::child";
/// They tell a child where to die, and where everything is.
const POINT: &str = "TENURE_TEST_DIES";
const FOLDER: &str = "TENURE_TEST_FOLDER";
const DATABASE: &str = "TENURE_TEST_DATABASE";

const TTL: Duration = Duration::from_secs(120);
const RECEIVERS: [&str; 3] = ["shop", "files", "orders"];

/// Where a candidate dies, how it comes to that, and what it leaves behind.
struct Point {
    name: &'static str,
    plan: fn(&Faults),
    left: Left,
}

/// What is found of the candidate: so many receivers that the authority has bound, that have its token, and that the
/// authority has marked; and whether the takeover was announced.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    bound: usize,
    sealed: usize,
    marked: usize,
    announced: bool,
}

const fn left(bound: usize, sealed: usize, marked: usize) -> Left {
    Left { bound, sealed, marked, announced: false }
}

// The clock stands still, so the authority is told of all three receivers in one step, when each of them has answered.
const POINTS: [Point; 9] = [
    Point { name: "granted", plan: |faults| faults.next(Call::Swap(Event::Granted), then_die()), left: left(0, 0, 0) },
    Point { name: "one-described", plan: |faults| faults.next(Call::Describe, then_die()), left: left(0, 0, 0) },
    Point { name: "described", plan: |faults| faults.next(Call::Swap(Event::Bound), first_die()), left: left(0, 0, 0) },
    Point { name: "bound", plan: |faults| faults.next(Call::Swap(Event::Bound), then_die()), left: left(3, 0, 0) },
    Point {
        name: "sealed-at-one",
        plan: |faults| {
            faults.next(Call::Seal, then_die());
            faults.on(|call| call == Call::Seal, 0, usize::MAX, Fault::Late);
        },
        left: left(3, 1, 0),
    },
    Point { name: "sealed", plan: |faults| faults.next(Call::Swap(Event::Sealed), first_die()), left: left(3, 3, 0) },
    Point {
        name: "marked",
        plan: |faults| faults.next(Call::Swap(Event::Announced), first_die()),
        left: left(3, 3, 3),
    },
    Point {
        name: "announced",
        plan: |faults| faults.next(Call::Swap(Event::Announced), then_die()),
        left: Left { announced: true, ..left(3, 3, 3) },
    },
    // It dies by itself, after it has written everywhere.
    Point { name: "held", plan: |_| (), left: Left { announced: true, ..left(3, 3, 3) } },
];

fn then_die() -> Fault {
    Fault::Then(Box::new(die))
}

fn first_die() -> Fault {
    Fault::First(Box::new(die))
}

/// As a machine goes: nothing of the process runs after this.
fn die() {
    kill_process(getpid(), Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

/// The candidate that dies. In the ordinary run it has nothing to do.
#[test]
fn child() {
    let Ok(name) = std::env::var(POINT) else { return };
    let (folder, database) = (std::env::var_os(FOLDER).unwrap().into(), std::env::var(DATABASE).unwrap());
    let place = Place { folder, database };
    let point = POINTS.iter().find(|point| point.name == name).unwrap();
    let faults = Faults::new(place.store());
    let worker = Tenure::builder().owner("dies").clock(place.clock()).over(Arc::clone(&faults) as Arc<dyn Store>);
    let worker = wait_for(worker).unwrap();
    (point.plan)(&faults);
    let lease = wait_for(place.wish(&worker, point, |sink| faults.sink(sink)).into_future()).unwrap();
    assert_eq!(place.offer(lease.token()), [true; 3]);
    die();
}

/// Where everything of the test is: the authority, the time and three receivers, for all processes alike.
struct Place {
    folder: PathBuf,
    database: String,
}

impl Place {
    fn new(folder: &Path) -> Self {
        let place = Self { folder: folder.to_owned(), database: Postgres::shared().database() };
        place.set_time(Duration::from_secs(1000));
        tenure_servers::postgres::psql(&place.database, "CREATE TABLE effect (epoch bigint)").unwrap();
        place
    }

    fn clock(&self) -> Clock {
        Clock::File(FileClock::open(self.folder.join("time")).unwrap())
    }

    fn set_time(&self, time: Duration) {
        let (path, next) = (self.folder.join("time"), self.folder.join("time.next"));
        std::fs::write(&next, time.as_millis().to_string()).unwrap();
        std::fs::rename(&next, &path).unwrap();
    }

    fn advance(&self, span: Duration) {
        let now = Duration::from_nanos(self.clock().now_nanos().unwrap());
        self.set_time(now + span);
    }

    fn store(&self) -> Arc<dyn Store> {
        let url = format!("sqlite:{}?create=true", self.folder.join("authority.sqlite").display());
        store::connect(&url, self.clock()).unwrap()
    }

    async fn worker(&self, name: &str) -> Tenure {
        Tenure::builder().owner(name).clock(self.clock()).over(self.store()).await.unwrap()
    }

    fn sqlite(&self) -> SqliteSink {
        SqliteSink::create(self.folder.join("shop.sqlite"), id(RECEIVERS[0]), Rule::Sealed).unwrap()
    }

    fn files(&self) -> FileSink {
        FileSink::create(self.folder.join("files"), id(RECEIVERS[1]), Rule::Sealed).unwrap()
    }

    fn postgres(&self) -> PostgresSink {
        PostgresSink::create(&self.database, id(RECEIVERS[2]), Rule::Sealed).unwrap()
    }

    fn sinks(&self) -> [Arc<dyn Sink>; 3] {
        [Arc::new(self.sqlite()), Arc::new(self.files()), Arc::new(self.postgres())]
    }

    fn wish(&self, worker: &Tenure, point: &Point, through: impl Fn(Arc<dyn Sink>) -> Arc<dyn Sink>) -> Acquire {
        let wish = worker.acquire(point.name).ttl(TTL);
        self.sinks().into_iter().fold(wish, |wish, sink| wish.sink(through(sink)))
    }

    /// Past all faults.
    fn plain_wish(&self, worker: &Tenure, point: &Point) -> Acquire {
        self.wish(worker, point, |sink| sink)
    }

    /// Writes once at each receiver, in its own transaction, whatever this token's holder believes.
    fn write(&self, token: &Token) -> [Verdict; 3] {
        [
            self.write_to_sqlite(token),
            self.files().write(token, None, "report", b"done").unwrap(),
            self.write_to_postgres(token),
        ]
    }

    fn write_to_sqlite(&self, token: &Token) -> Verdict {
        let mut connection = rusqlite::Connection::open(self.folder.join("shop.sqlite")).unwrap();
        connection.execute_batch("CREATE TABLE IF NOT EXISTS effect (epoch INTEGER)").unwrap();
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        match SqliteFence::new(Rule::Sealed).admit(&tx, token).unwrap() {
            Err(verdict) => verdict,
            Ok(_) => {
                tx.execute("INSERT INTO effect VALUES (?1)", [token.epoch.as_i64()]).unwrap();
                tx.commit().unwrap();
                Verdict::Written
            }
        }
    }

    fn write_to_postgres(&self, token: &Token) -> Verdict {
        let sink = self.postgres();
        let work = async {
            let mut client = sink.client().await.unwrap();
            let tx = client.transaction().await.unwrap();
            let admitted = PostgresFence::default().admit(&tx, token).await.unwrap();
            match admitted.map(drop) {
                Err(verdict) => verdict,
                Ok(()) => {
                    tx.execute("INSERT INTO effect VALUES ($1)", &[&token.epoch.as_i64()]).await.unwrap();
                    tx.commit().await.unwrap();
                    Verdict::Written
                }
            }
        };
        wait_for(work)
    }

    /// Which receivers have accepted a write.
    fn offer(&self, token: &Token) -> [bool; 3] {
        self.write(token).map(|verdict| verdict == Verdict::Written)
    }

    fn record(&self, point: &Point) -> LeaseRecord {
        let resource = ResourceName::new(point.name).unwrap();
        wait_for(Authority::new(self.store()).inspect(&resource)).unwrap().view.lease.unwrap()
    }

    /// How many receivers have this very token.
    fn have(&self, token: &Token) -> usize {
        let rows = self.sinks().into_iter().filter_map(|sink| wait_for(sink.describe(&token.resource)).unwrap().row);
        rows.filter(|row| (row.epoch, row.grant) == (token.epoch, token.grant)).count()
    }

    /// Runs the candidate to its end.
    fn candidate(&self, point: &Point) -> ExitStatus {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([ENTRY, "--exact", "--nocapture"]).stdin(Stdio::null()).stdout(Stdio::null());
        command.env(POINT, point.name).env(FOLDER, &self.folder).env(DATABASE, &self.database);
        let mut running = Running(command.spawn().unwrap());
        eventually("the candidate comes to its end", || running.0.try_wait().unwrap())
    }
}

/// A child that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The story: each step of a takeover is one process's own until it is written down, and a process may be gone after any of
/// them. Whatever it leaves half done must neither let two write at one receiver, nor keep the next one out.
#[test]
fn a_candidate_that_is_killed_at_any_step_is_followed_by_one_that_writes_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place::new(folder.path());
    for point in &POINTS {
        let name = point.name;
        let former = wait_for(place.worker("former"));
        let lease = wait_for(place.plain_wish(&former, point).into_future()).unwrap();
        let old = lease.token().clone();
        assert_eq!(place.offer(&old), [true; 3], "{name}");
        // The former holder is stopped past its deadline; from then on it only writes, and looks at nothing.
        place.advance(TTL);

        let ended = place.candidate(point);
        assert_eq!(ended.signal(), Some(Signal::KILL.as_raw()), "{name}: {ended:?}");
        let record = place.record(point);
        let dead = record.token();
        assert_eq!(dead.epoch.get(), old.epoch.get() + 1, "{name}");
        let found = Left {
            bound: record.sinks.values().filter(|mark| mark.bound.is_some()).count(),
            sealed: place.have(&dead),
            marked: record.sinks.values().filter(|mark| mark.sealed).count(),
            announced: record.phase == Phase::Held,
        };
        assert_eq!(found, point.left, "{name}");
        // Nothing was promised yet: the former one may be accepted where the dead one is not, and never beside it.
        for (of_old, of_dead) in place.offer(&old).into_iter().zip(place.offer(&dead)) {
            assert!(of_old != of_dead, "{name}: accepted of the former one: {of_old}, of the dead one: {of_dead}");
        }

        let next = wait_for(place.worker("next"));
        place.advance(TTL - Duration::from_millis(1));
        let busy = wait_for(place.plain_wish(&next, point).wait(Duration::ZERO).into_future()).unwrap_err();
        let AcquireError::Refused { refusal: Refusal::Busy { epoch, sealing, .. }, .. } = &busy else {
            panic!("{name}: {busy}")
        };
        assert_eq!((*epoch, *sealing), (dead.epoch, !found.announced), "{name}");
        place.advance(Duration::from_millis(1));
        let next = wait_for(place.plain_wish(&next, point).wait(Duration::ZERO).into_future()).unwrap();
        assert_eq!(next.epoch().get(), dead.epoch.get() + 1, "{name}");
        assert_eq!(place.have(next.token()), 3, "{name}");
        let record = place.record(point);
        assert!(record.phase == Phase::Held && record.sinks.values().all(|mark| mark.sealed), "{name}: {record:?}");
        for late in [&old, &dead] {
            let stale = Verdict::Stale { presented: late.epoch, current: next.epoch() };
            assert_eq!(place.write(late), [stale.clone(), stale.clone(), stale], "{name}");
        }
        assert_eq!(place.write(next.token()), [Verdict::Written, Verdict::Written, Verdict::Written], "{name}");
        wait_for(next.ensure_owned()).unwrap();

        let history = wait_for(place.store().history(HistoryQuery::default())).unwrap();
        let events = |token: &Token, event| {
            let of_token = history.iter().filter(|row| row.transition.grant == Some(token.grant));
            of_token.filter(|row| row.transition.event == event).count()
        };
        assert_eq!(events(&dead, Event::Announced), usize::from(found.announced), "{name}");
        assert_eq!(events(next.token(), Event::Announced), 1, "{name}");
        wait_for(next.release()).unwrap();
        drop(lease);
    }
}
