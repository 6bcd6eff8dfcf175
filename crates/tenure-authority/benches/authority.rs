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
    let folder = std::env::var_os("TENURE_BENCH_DIR").map_or_else(|| tempfile::tempdir(), tempfile::tempdir_in);
    let folder = folder.expect("a folder");
    if std::env::var_os("READS").is_some() {
        let store = store(&folder.path().join("x.db"));
        reads(&store, 1).print("reads");
        return;
    }
    println!("| what | per second | p50 | p99 | commits |\n|---|---|---|---|---|");
    let (mut alone, mut many) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let bare = bare(&folder.path().join(format!("bare{round}.db")));
        bare.print("bare: two one-row commits, one caller");
        let path = folder.path().join(format!("store{round}.db"));
        let store = store(&path);
        let one = cycles(&store, 1);
        one.print("acquire + release, one caller");
        let crowd = cycles(&store, CALLERS);
        crowd.print("acquire + release, 64 callers");
        renewals(&store, 1).print("renewal, one session");
        reads(&store, 1).print("read, one caller");
        reads(&store, CALLERS).print("read, 64 callers");
        renewals(&store, CALLERS).print("renewal, 64 sessions");
        println!("| | | | | |");
        alone.push(one.p50.as_secs_f64() / bare.p50.as_secs_f64());
        many.push((crowd.rate / bare.rate, crowd.p99.as_secs_f64() / crowd.p50.as_secs_f64()));
    }
    println!("\none caller's cycle over two bare commits (median of each): {alone:.2?}, goal at most 1.3");
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
    spans.sort_unstable();
    let at = |percent: usize| spans.get(spans.len() * percent / 100).copied().unwrap_or_default();
    Figures { rate: spans.len() as f64 / elapsed.as_secs_f64(), p50: at(50), p99: at(99), commits: 0 }
}

fn bare(path: &Path) -> Figures {
    let connection = rusqlite::Connection::open(path).expect("a file");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT; INSERT INTO t VALUES (1, 0)",
        )
        .expect("SQL");
    let connection = std::sync::Mutex::new(connection);
    measure(
        1,
        |_| 0_i64,
        |n| {
            let connection = connection.lock().expect("one caller");
            for _ in 0..2 {
                // A new value each time: rewriting the same bytes costs nothing.
                *n += 1;
                let mut update = connection.prepare_cached("UPDATE t SET n = ?1 WHERE id = 1").expect("SQL");
                update.execute([*n]).expect("an update");
            }
        },
    )
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

fn cycles(store: &Arc<SqliteStore>, callers: usize) -> Figures {
    let before = store.commits();
    let mut figures = measure(
        callers,
        |n| worker(store, n),
        |worker| {
            let request = Request::Acquire {
                resource: worker.resource.clone(),
                grant: GrantId::from_bits(random_bits().expect("random bits")),
                session: worker.session,
                sinks: BTreeSet::new(),
            };
            match block_on(worker.authority.execute(&request)).expect("an answer") {
                Ok(Reply::Granted(granted)) => {
                    let release = Request::Release { token: granted.token };
                    block_on(worker.authority.execute(&release)).expect("an answer").expect("a release");
                }
                other => panic!("{other:?}"),
            }
        },
    );
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
