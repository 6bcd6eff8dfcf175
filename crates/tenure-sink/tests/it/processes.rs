//! Two processes at one sink: races, and writers that are stopped or killed.

use crate::process::{Process, job, say, wait_for_go};
use crate::{id, operation, seal, token};
use rusqlite::{Connection, TransactionBehavior};
use std::convert::Infallible;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Digest, Outcome, Verdict};
use tenure_sink::file::Operation;
use tenure_sink::{FileSink, Lookup, Sink, SinkError, SqliteFence, SqliteSink};

const ENTRY: &str = "processes::child";
const BOUND: Duration = Duration::from_millis(200);

/// What the children do. In the ordinary run there is no job, and the parents below check what the children said.
#[test]
fn child() {
    let Some((job, place)) = job() else { return };
    match job.as_str() {
        "sqlite-hold" => sqlite_hold(&place),
        "sqlite-race" => sqlite_race(&place),
        "file-hold" => file_hold(&place),
        "file-race" => file_race(&place),
        "file-write" => file_write(&place),
        other => panic!("no such job: {other}"),
    }
}

fn sqlite_connect(place: &Path) -> Connection {
    let connection = Connection::open(place).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection
}

fn sqlite_create(place: &Path) -> SqliteSink {
    let sink = SqliteSink::create(place, id(), Rule::Sealed).unwrap();
    sqlite_connect(place).execute_batch("CREATE TABLE log (line INTEGER PRIMARY KEY, epoch, pid)").unwrap();
    sink
}

fn sqlite_hold(place: &Path) {
    let mut connection = sqlite_connect(place);
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let admitted = SqliteFence::new(Rule::Sealed).admit(&tx, &token(1)).unwrap();
    tx.execute("INSERT INTO log (epoch) VALUES (1)", []).unwrap();
    say(format_args!("admitted {}", admitted.is_ok()));
    wait_for_go();
    tx.commit().unwrap();
    say("committed");
}

/// Writes under epoch 1 until it is refused.
fn sqlite_race(place: &Path) {
    let mut connection = sqlite_connect(place);
    // Short turns: in SQLite's own long pauses busy writers pass each other for seconds.
    connection.busy_timeout(Duration::from_millis(5)).unwrap();
    let mut written = 0;
    loop {
        let Ok(tx) = connection.transaction_with_behavior(TransactionBehavior::Immediate) else { continue };
        let admitted = SqliteFence::new(Rule::Sealed).admit(&tx, &token(1)).unwrap();
        if let Err(verdict) = admitted {
            return say(format_args!("{} after {}", verdict.name(), written > 0));
        }
        tx.execute("INSERT INTO log (epoch, pid) VALUES (1, ?1)", [std::process::id()]).unwrap();
        tx.commit().unwrap();
        written += 1;
        if written == 1 {
            say("writing");
        }
    }
}

fn file_hold(place: &Path) {
    let sink = FileSink::open(place, id(), Rule::Sealed).unwrap();
    let verdict = sink.apply(&token(1), None, "target", &Digest([1; 32]), |file| {
        say("admitted true");
        wait_for_go();
        file.write_all(b"old").unwrap();
        Ok::<_, Infallible>(())
    });
    say(verdict.unwrap().name());
}

fn file_race(place: &Path) {
    let sink = FileSink::open(place, id(), Rule::Sealed).unwrap();
    for written in 0.. {
        match sink.write(&token(1), None, "target", format!("{} {written}", std::process::id()).as_bytes()).unwrap() {
            Verdict::Written if written == 0 => say("writing"),
            Verdict::Written => {}
            verdict => return say(format_args!("{} after {}", verdict.name(), written > 0)),
        }
    }
}

/// Writes operation after operation, saying of each that it stands, until it is killed.
fn file_write(place: &Path) {
    let sink = FileSink::open(place, id(), Rule::Sealed).unwrap();
    for number in 0.. {
        let verdict = file_apply(&sink, number).unwrap();
        assert_eq!(verdict, Verdict::Written);
        say(number);
    }
}

fn file_apply(sink: &FileSink, number: u64) -> Result<Verdict, SinkError> {
    let outcome = Outcome::new(number.to_string()).unwrap();
    let operation = Operation { id: operation(&number.to_string()), outcome };
    sink.write(&token(1), Some(&operation), "target", &content(number))
}

/// Long enough for several pages, and the same number from end to end.
fn content(number: u64) -> Vec<u8> {
    number.to_be_bytes().repeat(4096)
}

#[track_caller]
fn is_busy(sealing: Result<Sealing, SinkError>, place: &Path) {
    let Err(error) = sealing else { panic!("the seal has passed a stopped writer: {sealing:?}") };
    assert!(matches!(error, SinkError::Busy { .. } | SinkError::HeldBy { .. }) && error.is_transient(), "{error:?}");
    let said = error.to_string();
    assert!(said.contains(&place.display().to_string()), "it does not say where: {said}");
    assert!(said.contains("200 ms") && said.contains("stopped"), "it does not say what to do: {said}");
}

#[test]
fn v4_a_stopped_writer_holds_off_a_seal_at_sqlite_within_the_bound_and_says_so() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    let sink = sqlite_create(&path).with_wait(BOUND);
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut writer = Process::start(ENTRY, "sqlite-hold", &path);
    assert_eq!(writer.hear().as_deref(), Some("admitted true"));
    writer.stop();
    let sealed = seal(&sink, &token(2));
    let said = sealed.as_ref().unwrap_err().to_string();
    assert!(said.contains(&format!("Process {} ", writer.id())) && said.contains("which is stopped"), "{said}");
    is_busy(sealed, &path);
    // It goes on and is in time, since nothing was sealed.
    writer.resume();
    writer.go();
    assert_eq!(writer.hear().as_deref(), Some("committed"));
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
}

#[test]
fn a_writer_that_is_killed_at_sqlite_lets_the_seal_go_on_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    let sink = sqlite_create(&path).with_wait(BOUND);
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut writer = Process::start(ENTRY, "sqlite-hold", &path);
    assert_eq!(writer.hear().as_deref(), Some("admitted true"));
    writer.stop();
    is_busy(seal(&sink, &token(2)), &path);
    writer.kill();
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
    let lines: i64 = sqlite_connect(&path).query_row("SELECT count(*) FROM log", [], |row| row.get(0)).unwrap();
    assert_eq!(lines, 0);
}

#[test]
fn v4_a_stopped_writer_holds_off_a_seal_at_files_within_the_bound_and_says_so() {
    let folder = TempDir::new().unwrap();
    let sink = FileSink::create(folder.path(), id(), Rule::Sealed).unwrap().with_wait(BOUND);
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut writer = Process::start(ENTRY, "file-hold", folder.path());
    assert_eq!(writer.hear().as_deref(), Some("admitted true"));
    writer.stop();
    let generation = generation(&sink.clone().with_wait(BOUND));
    is_busy(seal_in(&sink, &generation), folder.path());
    // Another resource is not held up.
    let mut other = token(1);
    other.resource = tenure_core::ResourceName::new("another").unwrap();
    assert!(matches!(seal(&sink, &other), Ok(Sealing::Seal(_))));
    writer.resume();
    writer.go();
    assert_eq!(writer.hear().as_deref(), Some("written"));
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(sink.read("target").unwrap().as_deref(), Some(&b"old"[..]));
}

#[test]
fn a_writer_that_is_killed_at_files_lets_the_seal_go_on_and_leaves_nothing() {
    let folder = TempDir::new().unwrap();
    let sink = FileSink::create(folder.path(), id(), Rule::Sealed).unwrap().with_wait(BOUND);
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut writer = Process::start(ENTRY, "file-hold", folder.path());
    assert_eq!(writer.hear().as_deref(), Some("admitted true"));
    writer.stop();
    is_busy(seal_in(&sink, &generation(&sink)), folder.path());
    writer.kill();
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(sink.read("target").unwrap(), None);
}

/// The generation, by way of a resource that nobody holds.
fn generation(sink: &FileSink) -> tenure_core::Generation {
    let free = tenure_core::ResourceName::new("free").unwrap();
    tenure_sink::conformance::answered(sink.describe(&free)).unwrap().generation
}

fn seal_in(sink: &FileSink, generation: &tenure_core::Generation) -> Result<Sealing, SinkError> {
    let enrolled = std::collections::BTreeSet::new();
    tenure_sink::conformance::answered(sink.seal(&token(2), generation, &enrolled))
}

#[test]
fn i2_two_processes_race_a_seal_at_sqlite() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.sqlite");
    let sink = sqlite_create(&path).with_wait(Duration::from_secs(30));
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let writers = [(); 2].map(|()| Process::start(ENTRY, "sqlite-race", &path));
    for writer in &writers {
        assert_eq!(writer.hear().as_deref(), Some("writing"));
    }
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
    let count =
        || -> i64 { sqlite_connect(&path).query_row("SELECT count(*) FROM log", [], |row| row.get(0)).unwrap() };
    let sealed = count();
    for writer in &writers {
        assert_eq!(writer.hear().as_deref(), Some("stale after true"));
    }
    assert_eq!(count(), sealed, "an older write landed after the seal had returned");
}

#[test]
fn i2_two_processes_race_a_seal_at_files() {
    let folder = TempDir::new().unwrap();
    let sink = FileSink::create(folder.path(), id(), Rule::Sealed).unwrap().with_wait(Duration::from_secs(30));
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let writers = [(); 2].map(|()| Process::start(ENTRY, "file-race", folder.path()));
    for writer in &writers {
        assert_eq!(writer.hear().as_deref(), Some("writing"));
    }
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
    let sealed = sink.read("target").unwrap();
    for writer in &writers {
        assert_eq!(writer.hear().as_deref(), Some("stale after true"));
    }
    assert_eq!(sink.read("target").unwrap(), sealed, "an older write landed after the seal had returned");
}

#[test]
fn a_writer_killed_anywhere_in_a_write_leaves_whole_content_and_one_effect() {
    for round in 0..8 {
        let folder = TempDir::new().unwrap();
        let sink = FileSink::create(folder.path(), id(), Rule::Sealed).unwrap();
        assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
        let mut writer = Process::start(ENTRY, "file-write", folder.path());
        for number in 0..=round {
            assert_eq!(writer.hear(), Some(number.to_string()));
        }
        writer.kill();
        let mut last = round;
        while let Some(said) = writer.hear() {
            last = said.parse().unwrap();
        }
        // The killed one may have done one more than it could say.
        let standing = sink.read("target").unwrap().unwrap();
        assert!(standing == content(last) || standing == content(last + 1), "round {round}: half a write");
        let found = sink.lookup(&token(1), &operation(&(last + 1).to_string())).unwrap().unwrap();
        let applied = standing == content(last + 1);
        assert_eq!(matches!(found, Lookup::Found(_)), applied, "round {round}: the record and the content differ");
        let repeated = file_apply(&sink, last + 1).unwrap();
        assert_eq!(repeated.name(), if applied { "replay" } else { "written" }, "round {round}");
        assert_eq!(file_apply(&sink, 0).unwrap().name(), "replay");
        assert_eq!(sink.read("target").unwrap().unwrap(), content(last + 1));
    }
}
