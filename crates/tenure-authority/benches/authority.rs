//! What the authority costs on SQLite, beside bare rusqlite in the same run and on the same file system.
//!
//! Prints a table: `cargo bench -p tenure-authority --bench authority`. `TENURE_BENCH_DIR` names the folder for the files,
//! `TENURE_BENCH_SECONDS` how long each line is measured. A busy machine multiplies every figure: fsync waits for the
//! processor as much as for the disk, so compare lines of one run only.

#![expect(clippy::disallowed_methods, reason = "a stopwatch reads a clock")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use tenure_authority::conformance::block_on;
use tenure_authority::store::sqlite::{Options, SqliteStore};
use tenure_authority::{Authority, BootClock, Clock, Store, random_bits};
use tenure_core::decide::{Keys, Reply, Request};
use tenure_core::record::{Owner, Seen};
use tenure_core::{GrantId, InstanceId, OwnerName, ResourceName, SessionId, Ttl};

const CALLERS: usize = 64;
const ROUNDS: usize = 3;

fn main() {
    // `cargo test --benches` runs this as well; there is nothing to test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let folder = std::env::var_os("TENURE_BENCH_DIR").map_or_else(tempfile::tempdir, tempfile::tempdir_in);
    let folder = folder.expect("a folder");
    println!("| what | per second | p50 | p99 | commits |\n|---|---|---|---|---|");
    let (mut alone, mut many) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let store = store(&folder.path().join(format!("store{round}.db")));
        let (bare, one) = side_by_side(&folder.path().join(format!("bare{round}.db")), &store);
        bare.print("bare: two one-row commits, one caller, in turn with");
        one.print("acquire + release, one caller");
        let bare_alone = bare_alone(&folder.path().join(format!("alone{round}.db")));
        bare_alone.print("bare: two one-row commits, nothing else");
        let one_alone = cycles(&store, 1);
        one_alone.print("acquire + release, one caller, nothing else");
        cycles(&store, CALLERS).print("acquire + release, 64 threads, a session each");
        let crowd = cycles_of_tasks(&store);
        crowd.print("acquire + release, 64 callers of one process");
        renewals(&store, 1).print("renewal, one session");
        reads(&store, 1).print("read, one caller");
        reads(&store, CALLERS).print("read, 64 callers");
        renewals(&store, CALLERS).print("renewal, 64 sessions");
        println!("| | | | | |");
        let ratio = |one: &Figures, bare: &Figures| one.p50.as_secs_f64() / bare.p50.as_secs_f64();
        alone.push((ratio(&one, &bare), ratio(&one_alone, &bare_alone)));
        many.push((crowd.rate / bare_alone.rate, crowd.p99.as_secs_f64() / crowd.p50.as_secs_f64()));
    }
    println!(
        "\none caller's cycle over two bare commits, by medians (in turn, one after the other): {alone:.2?}, goal at most 1.3"
    );
    println!(
        "64 callers' cycles a second over one bare caller's, and their p99 over p50: {many:.2?}, goal at least 8 and below 3"
    );
}

struct Figures {
    rate: f64,
    p50: Duration,
    p99: Duration,
    commits: u64,
}

impl Figures {
    fn of(spans: &mut [Duration], elapsed: Duration) -> Self {
        spans.sort_unstable();
        let at = |percent: usize| spans.get(spans.len() * percent / 100).copied().unwrap_or_default();
        Self { rate: spans.len() as f64 / elapsed.as_secs_f64(), p50: at(50), p99: at(99), commits: 0 }
    }

    fn print(&self, what: &str) {
        let Self { rate, p50, p99, commits } = self;
        println!("| {what} | {rate:.0} | {:.1} µs | {:.1} µs | {commits} |", micros(*p50), micros(*p99));
    }
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

fn budget() -> Duration {
    let seconds = std::env::var("TENURE_BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(2.0))
}

/// Runs `step` on so many threads until the time is up, after a tenth of it for warming up.
fn measure<State>(callers: usize, start: impl Fn(usize) -> State + Sync, step: impl Fn(&mut State) + Sync) -> Figures {
    let (ready, over, counts) = (Barrier::new(callers + 1), AtomicBool::new(false), AtomicBool::new(false));
    let caller = |n: usize| {
        let mut state = start(n);
        let mut spans = Vec::new();
        ready.wait();
        while !over.load(Ordering::Relaxed) {
            let began = Instant::now();
            step(&mut state);
            if counts.load(Ordering::Relaxed) {
                spans.push(began.elapsed());
            }
        }
        spans
    };
    let caller = &caller;
    let (mut spans, elapsed) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers).map(|n| scope.spawn(move || caller(n))).collect();
        ready.wait();
        std::thread::sleep(budget() / 10);
        counts.store(true, Ordering::Relaxed);
        let began = Instant::now();
        std::thread::sleep(budget());
        over.store(true, Ordering::Relaxed);
        let elapsed = began.elapsed();
        let spans: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect();
        (spans, elapsed)
    });
    Figures::of(&mut spans, elapsed)
}

/// One caller does both in turn, so that whatever else the machine does meets both alike.
fn side_by_side(path: &Path, store: &Arc<SqliteStore>) -> (Figures, Figures) {
    let mut bare = Bare::open(path);
    let mut worker = worker(store, 0);
    let (mut bare_spans, mut cycle_spans) = (Vec::new(), Vec::new());
    let began = Instant::now();
    let before = store.commits();
    while began.elapsed() < budget() {
        let start = Instant::now();
        bare.two_commits();
        bare_spans.push(start.elapsed());
        let start = Instant::now();
        cycle(&mut worker);
        cycle_spans.push(start.elapsed());
    }
    let figures = |mut spans: Vec<Duration>| {
        let spent: Duration = spans.iter().sum();
        Figures::of(&mut spans, spent)
    };
    (figures(bare_spans), Figures { commits: store.commits() - before, ..figures(cycle_spans) })
}

/// A file of one row, written without any of ours.
struct Bare {
    connection: rusqlite::Connection,
    n: i64,
}

impl Bare {
    fn open(path: &Path) -> Self {
        let connection = rusqlite::Connection::open(path).expect("a file");
        let tables = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                      CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT; INSERT INTO t VALUES (1, 0)";
        connection.execute_batch(tables).expect("SQL");
        Self { connection, n: 0 }
    }

    fn two_commits(&mut self) {
        for _ in 0..2 {
            // A new value each time: rewriting the same bytes costs nothing.
            self.n += 1;
            let mut update = self.connection.prepare_cached("UPDATE t SET n = ?1 WHERE id = 1").expect("SQL");
            update.execute([self.n]).expect("an update");
        }
    }
}

fn bare_alone(path: &Path) -> Figures {
    measure(1, |_| Bare::open(path), Bare::two_commits)
}

fn store(path: &Path) -> Arc<SqliteStore> {
    let options = Options { create: true, ..Options::new(Clock::Boot(BootClock)) };
    Arc::new(SqliteStore::open(path, &options).expect("a store"))
}

struct Worker {
    authority: Authority,
    session: SessionId,
    resource: ResourceName,
    next: u64,
}

fn worker(store: &Arc<SqliteStore>, n: usize) -> Worker {
    let authority = Authority::new(Arc::clone(store) as Arc<dyn Store>);
    let session = SessionId::from_bits(random_bits().expect("random bits"));
    let asked_at = block_on(store.read(&Keys::default())).expect("a read").now;
    let opening = Request::Open {
        id: session,
        owner: Owner {
            name: OwnerName::new(format!("worker-{n}")).expect("a name"),
            instance: InstanceId::from_bits(random_bits().expect("random bits")),
        },
        on_this_host: true,
        ttl: Ttl::DEFAULT,
        asked_at,
        seen: Seen::default(),
    };
    block_on(authority.execute(&opening)).expect("an answer").expect("a session");
    let resource = ResourceName::new(format!("tenant/{n}/index")).expect("a name");
    Worker { authority, session, resource, next: 0 }
}

fn cycle(worker: &mut Worker) {
    block_on(cycle_of(worker));
}

async fn cycle_of(worker: &mut Worker) {
    let request = Request::Acquire {
        resource: worker.resource.clone(),
        grant: GrantId::from_bits(random_bits().expect("random bits")),
        session: worker.session,
        sinks: BTreeSet::new(),
    };
    match worker.authority.execute(&request).await.expect("an answer") {
        Ok(Reply::Granted(granted)) => {
            let release = Request::Release { token: granted.token };
            worker.authority.execute(&release).await.expect("an answer").expect("a release");
        }
        other => unreachable!("{other:?}"),
    }
}

fn cycles(store: &Arc<SqliteStore>, callers: usize) -> Figures {
    let before = store.commits();
    let mut figures = measure(callers, |n| worker(store, n), cycle);
    figures.commits = store.commits() - before;
    figures
}

/// As in a process that embeds the holder: tasks of one runtime, whose leases stand on one session.
fn cycles_of_tasks(store: &Arc<SqliteStore>) -> Figures {
    let before = store.commits();
    let shared = worker(store, 0);
    let (counts, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let tasks: Vec<_> = (0..CALLERS)
        .map(|n| {
            let resource = ResourceName::new(format!("task/{n}/index")).expect("a name");
            let mut worker = Worker { authority: shared.authority.clone(), resource, ..shared };
            let (counts, over) = (Arc::clone(&counts), Arc::clone(&over));
            runtime.spawn(async move {
                let mut spans = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    cycle_of(&mut worker).await;
                    if counts.load(Ordering::Relaxed) {
                        spans.push(began.elapsed());
                    }
                }
                spans
            })
        })
        .collect();
    std::thread::sleep(budget() / 10);
    counts.store(true, Ordering::Relaxed);
    let began = Instant::now();
    std::thread::sleep(budget());
    over.store(true, Ordering::Relaxed);
    let elapsed = began.elapsed();
    let mut spans: Vec<_> = tasks.into_iter().flat_map(|task| runtime.block_on(task).expect("no panic")).collect();
    let mut figures = Figures::of(&mut spans, elapsed);
    figures.commits = store.commits() - before;
    figures
}

fn renewals(store: &Arc<SqliteStore>, callers: usize) -> Figures {
    let before = store.commits();
    let mut figures = measure(
        callers,
        |n| worker(store, n),
        |worker| {
            let renewal = Request::Renew { id: worker.session, n: worker.next, seen: Seen::default() };
            worker.next += 1;
            block_on(worker.authority.execute(&renewal)).expect("an answer").expect("a renewal");
        },
    );
    figures.commits = store.commits() - before;
    figures
}

fn reads(store: &Arc<SqliteStore>, callers: usize) -> Figures {
    measure(
        callers,
        |n| {
            let worker = worker(store, n);
            Keys { session: Some(worker.session), resource: Some(worker.resource), grant: None }
        },
        |keys| drop(block_on(store.read(keys)).expect("a read")),
    )
}
