//! A file that was put back, copied or moved: noticed before anything is granted from it.

use crate::world::{ManualClock, Place, Worker, existing, grant, sqlite};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::store::sqlite::{Options, SqliteStore};
use tenure_authority::{Authority, AuthorityError, Clock, HistoryQuery, Recorded, Store, StoreError};
use tenure_core::decide::{Keys, Refusal, Reply, Request, View};
use tenure_core::record::{Event, Owner, Seen};
use tenure_core::{InstanceId, OwnerName, SessionId, Ttl};

/// Nobody here has a longer ttl than the usual one, which each witness allows for.
const SPAN: Duration = Ttl::DEFAULT.get();

fn clock() -> ManualClock {
    ManualClock::at(Duration::from_secs(1))
}

/// A closed store with one grant of `r`, and a copy of it from before a second grant.
fn with_a_backup(clock: &ManualClock) -> (Place, PathBuf) {
    let place = Place::new();
    let worker = Worker::open(sqlite(&place.path, clock.clock()), 1, true);
    let first = worker.acquire("r", grant(1));
    worker.release(&first);
    drop(worker);
    let backup = place.folder.path().join("backup.db");
    fs::copy(&place.path, &backup).expect("a copy");
    let worker = Worker::open(sqlite(&place.path, clock.clock()), 2, true);
    assert_eq!(worker.acquire("r", grant(2)).epoch.get(), 2);
    (place, backup)
}

fn witness(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-witness");
    name.into()
}

fn open(path: &Path, clock: Clock) -> Arc<dyn Store> {
    Arc::new(existing(path, clock).expect("a store"))
}

fn view(store: &Arc<dyn Store>) -> View {
    block_on(store.read(&Keys::default())).expect("a read").view
}

fn last(store: &Arc<dyn Store>) -> Recorded {
    block_on(store.history(HistoryQuery::default())).expect("the history").pop().expect("a row")
}

/// How an opening is answered: how long nothing is granted.
fn quarantine(store: &Arc<dyn Store>) -> Option<Duration> {
    let now = block_on(store.read(&Keys::default())).expect("a read").now;
    let opening = Request::Open {
        id: SessionId::from_bits(77),
        owner: Owner { name: OwnerName::new("w").expect("a name"), instance: InstanceId::from_bits(7) },
        on_this_host: true,
        ttl: Ttl::new(SPAN).expect("a ttl"),
        asked_at: now,
        seen: Seen::default(),
    };
    match block_on(Authority::new(Arc::clone(store)).execute(&opening)).expect("an answer") {
        Ok(Reply::Opened { .. }) => None,
        Err(Refusal::Quarantined { remaining }) => Some(remaining),
        other => unreachable!("{other:?}"),
    }
}

/// Opens what was put back, which must be noticed, once, for the reason, and for no longer than needed.
fn is_noticed(path: &Path, clock: &ManualClock, why: &str, span: Duration) {
    let before = fs::metadata(path).expect("the file").ino();
    let store = open(path, clock.clock());
    assert_eq!(quarantine(&store), Some(span), "{why}");
    let row = last(&store).transition;
    assert_eq!(row.event, Event::Quarantined);
    assert!(row.why.as_ref().is_some_and(|text| text.as_str().contains(why)), "{row:?}");
    let noticed = view(&store).authority;
    drop(store);
    let store = open(path, clock.clock());
    assert_eq!(view(&store).authority, noticed, "the next opening finds nothing new");
    assert_eq!(fs::metadata(path).expect("the file").ino(), before);
    clock.set(Duration::from_secs(1) + span);
    assert_eq!(quarantine(&store), None, "it ends");
}

/// The authority's machine had died. Its file came back from the backup of the hour before, and the workers with it.
#[test]
fn a_file_that_was_copied_back_grants_nothing_while_a_lost_holder_may_believe() {
    let clock = clock();
    let (place, backup) = with_a_backup(&clock);
    fs::remove_file(&place.path).expect("it is there");
    fs::copy(&backup, &place.path).expect("a copy");
    is_noticed(&place.path, &clock, "another file than its witness saw", SPAN);
    let worker = Worker::open(open(&place.path, clock.clock()), 3, true);
    assert_eq!(view(worker.authority.store()).authority.incarnation, 2);
    assert_eq!(worker.acquire("r", grant(3)).epoch.get(), 2, "as a receiver will say, and it learns");
}

#[test]
fn a_file_that_was_copied_back_into_its_place_is_noticed_by_its_history() {
    let clock = clock();
    let (place, backup) = with_a_backup(&clock);
    fs::copy(&backup, &place.path).expect("a copy over it");
    is_noticed(&place.path, &clock, "a later history", SPAN);
}

#[test]
fn a_copy_is_another_store_with_and_without_its_witness() {
    let clock = clock();
    let (place, backup) = with_a_backup(&clock);
    is_noticed(&backup, &clock, "no witness", Ttl::MAX.get());
    let (copy, clock) = (place.folder.path().join("copy.db"), self::clock());
    fs::copy(&place.path, &copy).expect("a copy");
    fs::copy(witness(&place.path), witness(&copy)).expect("a copy");
    is_noticed(&copy, &clock, "another file than its witness saw", SPAN);
}

#[test]
fn a_witness_that_nobody_can_read_is_put_aside_and_counts_as_none() {
    let clock = clock();
    let (place, _) = with_a_backup(&clock);
    fs::write(witness(&place.path), "tenure witness 1\nst").expect("damaged");
    is_noticed(&place.path, &clock, "damaged", Ttl::MAX.get());
    assert!(place.files().contains("tenure.db-witness.damaged"), "{:?}", place.files());
}

#[test]
fn a_file_that_was_removed_and_made_anew_is_noticed_unless_its_witness_went_too() {
    let clock = clock();
    let (place, _) = with_a_backup(&clock);
    fs::remove_file(&place.path).expect("it is there");
    drop(sqlite(&place.path, clock.clock()));
    is_noticed(&place.path, &clock, "this one is new", SPAN);
    fs::remove_file(&place.path).expect("it is there");
    fs::remove_file(witness(&place.path)).expect("it is there");
    let store: Arc<dyn Store> = sqlite(&place.path, clock.clock());
    assert_eq!((quarantine(&store), view(&store).authority.incarnation), (None, 1));
}

#[test]
fn what_leaves_the_file_as_it_is_goes_on() {
    let clock = clock();
    let (place, _) = with_a_backup(&clock);
    let elsewhere = place.folder.path().join("elsewhere.db");
    fs::rename(&place.path, &elsewhere).expect("moved");
    fs::rename(witness(&place.path), witness(&elsewhere)).expect("moved");
    rusqlite::Connection::open(&elsewhere).expect("a database").execute_batch("VACUUM").expect("room");
    for _ in 0..3 {
        let store = open(&elsewhere, clock.clock());
        assert_eq!((quarantine(&store), view(&store).authority.incarnation), (None, 1));
    }
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode();
    assert_eq!(mode(&witness(&elsewhere)), mode(&elsewhere), "whoever may use the one may use the other");
}

/// Eight workers were started at once after the file was put back, and each noticed it.
#[test]
fn many_who_notice_at_once_quarantine_once() {
    let clock = clock();
    let (place, backup) = with_a_backup(&clock);
    fs::rename(&backup, &place.path).expect("put back");
    let (all, path) = (Barrier::new(8), &place.path);
    let options = Options { busy_timeout: Duration::from_secs(30), ..Options::new(clock.clock()) };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                all.wait();
                let store: Arc<dyn Store> = Arc::new(SqliteStore::open(path, &options).expect("a store"));
                assert_eq!(quarantine(&store), Some(SPAN));
            });
        }
    });
    let store = open(path, clock.clock());
    let rows = block_on(store.history(HistoryQuery::default())).expect("the history");
    let noticed = rows.iter().filter(|row| row.transition.event == Event::Quarantined).count();
    assert_eq!((noticed, view(&store).authority.incarnation), (1, 2));
}

fn is_told(answer: &Result<Result<Reply, Refusal>, AuthorityError>) {
    let Err(AuthorityError::Store(error @ StoreError::Unavailable(_))) = answer else { unreachable!("{answer:?}") };
    assert!(error.to_string().contains("end this process and start it again"), "{error}");
}

/// An administrator put the backup into its place while a worker ran. The worker had the old file open, granted from it,
/// and another worker granted the same from the new one.
#[test]
fn a_process_whose_file_is_replaced_grants_nothing_more() {
    let clock = clock();
    let (place, backup) = with_a_backup(&clock);
    let worker = Worker::open(open(&place.path, clock.clock()), 3, true);
    worker.acquire("other", grant(4));
    fs::rename(&backup, &place.path).expect("put back");
    is_told(&worker.ask(&worker.acquiring("third", grant(5))));
    is_told(&worker.ask(&Request::Renew { id: worker.session, n: 0, seen: Seen::default() }));
    is_noticed(&place.path, &clock, "another file than its witness saw", SPAN);
    is_told(&worker.ask(&worker.acquiring("third", grant(5))));
    drop(worker);
    let store = open(&place.path, clock.clock());
    assert_eq!(quarantine(&store), None, "what the old process knew does not count for the new file");
}

/// As `sqlite3 FILE '.restore COPY'` does: through SQLite, so that the file stays the same.
#[test]
fn a_process_whose_history_is_shortened_grants_nothing_more() {
    let clock = clock();
    let (place, _) = with_a_backup(&clock);
    let worker = Worker::open(open(&place.path, clock.clock()), 3, true);
    worker.acquire("other", grant(4));
    let other = rusqlite::Connection::open(&place.path).expect("a database");
    other.execute_batch("DELETE FROM history WHERE number > 3").expect("SQL");
    is_told(&worker.ask(&worker.acquiring("third", grant(5))));
    drop((worker, other));
    is_noticed(&place.path, &clock, "a later history", SPAN);
}

#[test]
fn the_witness_follows_a_process_that_stays_open() {
    let clock = clock();
    let place = Place::new();
    let day = Ttl::MAX.get();
    let worker = Worker::open_for(day, sqlite(&place.path, clock.clock()), 1, true);
    worker.acquire("r", grant(1));
    let read = || fs::read_to_string(witness(&place.path)).expect("a witness");
    assert!(read().contains(&format!("longest_ttl_ns {}", day.as_nanos())), "it stands there before the session does");
    // The machine's clock: the scribe rests on it.
    let begun = tenure_authority::BootClock.now_nanos();
    while !read().contains("number 2\n") {
        assert!(tenure_authority::BootClock.now_nanos() - begun < 20_000_000_000, "{}", read());
        std::thread::yield_now();
    }
    worker.acquire("s", grant(2));
    drop(worker);
    assert!(read().contains("number 3\n"), "and at the end it is all there: {}", read());
}
