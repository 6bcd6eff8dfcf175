//! The file is put back: under a live holder, or while nobody runs.

use super::{record, url};
use crate::drills::elsewhere::{Elsewhere, Gone, Job, is_told};
use crate::drills::{Drill, RESOURCE, TTL, Written};
use std::fs;
use std::path::{Path, PathBuf};
use tenure::Token;
use tenure_servers::eventually;

/// A backup from before the newest grant is renamed into the place of the file, as the store's page says, while the holder
/// goes on with the old one.
#[test]
fn a_backup_is_renamed_into_its_place() {
    const TEST: &str = "drills::sqlite::put_back::a_backup_is_renamed_into_its_place";
    if is_told() {
        return;
    }
    let mut drill = Drill::new("sqlite-renamed", "SQLite: a backup takes the place of the file under a live holder");
    let (path, backup) = (drill.path("tenure.db"), drill.path("backup.db"));
    let mut carol = backed_up(&mut drill, TEST, &path, &backup);
    fs::rename(&backup, &path).unwrap();
    remove_logs(&path);
    drill.tell("the backup is renamed into its place, and the log beside it is removed");
    let why = eventually("carol stops", || Some(carol.asked("lost")).filter(|why| why != "believes"));
    drill.tell(format_args!("carol has stopped: {why}"));
    let mut bob = drill.worker("bob", &url(&path));
    drill.takes(&mut bob);
    assert_eq!(bob.token().epoch.get(), 3, "the receiver knew of carol's");
    drill.ends(carol, bob, &url(&path));
}

/// A backup is copied over the file while the holder goes on: what the store's page warns of. The file is the same to the
/// holder's process, which keeps its log, that nobody else sees any more. Nobody tells it, until the receiver does.
#[test]
fn a_backup_is_copied_over_it() {
    const TEST: &str = "drills::sqlite::put_back::a_backup_is_copied_over_it";
    if is_told() {
        return;
    }
    let mut drill = Drill::new("sqlite-overwritten", "SQLite: a backup is copied over the file under a live holder");
    let (path, backup) = (drill.path("tenure.db"), drill.path("backup.db"));
    let mut carol = backed_up(&mut drill, TEST, &path, &backup);
    fs::copy(&backup, &path).unwrap();
    remove_logs(&path);
    drill.tell("the backup is copied over the file, and the log beside it is removed");
    let mut bob = drill.worker("bob", &url(&path));
    drill.takes(&mut bob);
    assert_eq!(bob.token().epoch.get(), 3, "the receiver knew of carol's");
    drill.tell(format_args!("carol, when she asks nobody: {}", carol.asked("lost")));
    drill.tell(format_args!("carol writes under epoch 2: {}", carol.asked("write")));
    drill.ends(carol, bob, &url(&path));
}

/// The same, and the log is left where it is. All that the backup lacks stands there, so that nothing is lost.
#[test]
fn a_backup_is_copied_over_it_and_the_log_stays() {
    const TEST: &str = "drills::sqlite::put_back::a_backup_is_copied_over_it_and_the_log_stays";
    if is_told() {
        return;
    }
    let title = "SQLite: a backup is copied over the file under a live holder, and the log stays";
    let mut drill = Drill::new("sqlite-log-stays", title);
    let (path, backup) = (drill.path("tenure.db"), drill.path("backup.db"));
    let mut carol = backed_up(&mut drill, TEST, &path, &backup);
    fs::copy(&backup, &path).unwrap();
    drill.tell("the backup is copied over the file, and the log beside it stays");
    let mut bob = drill.worker("bob", &url(&path));
    let told = bob.take(TTL, |_| ()).expect_err("carol holds it").to_string();
    drill.tell(format_args!("bob is told: {told}"));
    assert_eq!(carol.asked("check"), "true", "she is renewed");
    assert_eq!(carol.asked("write"), "accepted");
    let token = record(&bob).token();
    carol.kill();
    drill.tell("carol is still renewed, and writes: accepted; then she is killed");
    drill.takes(&mut bob);
    assert_eq!(bob.token().epoch.get(), 3, "nothing was lost");
    let carol = Gone::new("carol", "killed", token, drill.path("shop.db"));
    drill.ends(carol, bob, &url(&path));
}

/// alice has had it, a backup is made, and carol has it, whom the backup does not know.
fn backed_up(drill: &mut Drill, test: &str, path: &Path, backup: &Path) -> Elsewhere {
    let url = url(path);
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    drop(alice);
    closed(path);
    fs::copy(path, backup).unwrap();
    drill.tell("alice has ended, and a backup is made");
    let mut carol = Elsewhere::start(test, Job::Hold, &url, &drill.path("shop.db"));
    let token: Token = carol.hear().parse().unwrap();
    drill.tell(format_args!("carol, in another process, holds {RESOURCE} under epoch {}", token.epoch));
    assert_eq!(carol.asked("write"), "accepted");
    drill.tell("carol writes: accepted");
    // What was granted within the last second may not stand in the witness yet.
    let connection = rusqlite::Connection::open(path).unwrap();
    let newest: i64 = connection.query_row("SELECT max(number) FROM history", (), |row| row.get(0)).unwrap();
    let newest = format!("number {newest}\n");
    let knows = || fs::read_to_string(beside(path, "-witness")).unwrap().contains(&newest).then_some(());
    eventually("the witness has seen it", knows);
    carol
}

/// Waits until no process has the file open.
fn closed(path: &Path) {
    eventually("the file is closed", || (!beside(path, "-wal").exists()).then_some(()));
}

fn remove_logs(path: &Path) {
    for end in ["-wal", "-shm"] {
        fs::remove_file(beside(path, end)).unwrap();
    }
}

/// The file is copied back while nobody runs, and its witness stands beside it.
#[test]
fn it_is_copied_back_beside_its_witness() {
    let title = "SQLite: the file is copied back while nobody runs, beside its witness";
    copied_back("sqlite-copied-back", title, "its witness stays", |_, _| ());
}

/// The same, and the witness is gone: to another machine, say.
#[test]
fn it_is_copied_back_without_a_witness() {
    let title = "SQLite: the file is copied back while nobody runs, without a witness";
    copied_back("sqlite-copied-alone", title, "its witness is gone", |path, _| {
        fs::remove_file(beside(path, "-witness")).unwrap();
    });
}

/// The same, and the witness is put back as well: nothing on the disk tells that anything was lost. The receiver does.
#[test]
fn it_is_copied_back_with_its_witness() {
    let title = "SQLite: the file is copied back while nobody runs, and its witness as well";
    copied_back("sqlite-copied-all", title, "so is its witness", |path, backup| {
        fs::copy(beside(backup, "-witness"), beside(path, "-witness")).unwrap();
    });
}

fn copied_back(slug: &'static str, title: &'static str, what: &str, and: impl FnOnce(&Path, &Path)) {
    let mut drill = Drill::new(slug, title);
    let (path, backup) = (drill.path("tenure.db"), drill.path("backup.db"));
    let url = url(&path);
    let once = |drill: &mut Drill, name| {
        let mut worker = drill.worker(name, &url);
        drill.takes(&mut worker);
        assert!(matches!(drill.writes(&mut worker), Written::Accepted));
        let token = worker.token().clone();
        drop(worker);
        closed(&path);
        token
    };
    once(&mut drill, "alice");
    fs::copy(&path, &backup).unwrap();
    fs::copy(beside(&path, "-witness"), beside(&backup, "-witness")).unwrap();
    drill.tell("alice has ended, and a copy is made");
    let token = once(&mut drill, "carol");
    fs::copy(&backup, &path).unwrap();
    and(&path, &backup);
    drill.tell(format_args!("carol has ended, and the copy is put back; {what}"));
    let mut bob = drill.worker("bob", &url);
    drill.takes(&mut bob);
    assert!(bob.token().epoch > token.epoch, "the receiver knew of carol's");
    let carol = Gone::new("carol", "its process has ended", token, drill.path("shop.db"));
    drill.ends(carol, bob, &url);
}

/// A file that SQLite or the store keeps beside this one.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
