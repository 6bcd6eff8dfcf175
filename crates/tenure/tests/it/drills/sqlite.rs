use super::elsewhere::{Elsewhere, Gone, Job, is_told};
use super::{Drill, RESOURCE, TTL, Worker, Written};
use std::fs;
use std::path::{Path, PathBuf};
use tenure::blocking::wait_for;
use tenure::core::record::{LeaseRecord, Phase};
use tenure::{ResourceName, Token};
use tenure_servers::eventually;

fn url(path: &Path) -> String {
    // A quarantine lasts as long as the longest ttl.
    format!("sqlite:{}?create=true&max_ttl=2s", path.display())
}

/// A file that SQLite or the store keeps beside this one.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// An operator takes the resource away from a worker that goes on. Nothing is broken: what the other drills are measured
/// against.
#[test]
fn an_operator_takes_it_away() {
    let mut drill = Drill::new("sqlite-taken-away", "SQLite: an operator takes the resource away");
    let url = url(&drill.path("tenure.db"));
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    assert!(matches!(drill.writes(&mut alice), Written::Accepted));
    let mut bob = drill.worker("bob", &url);
    drill.tell("an operator takes it away from alice");
    let revoke = tenure::core::decide::Request::Revoke {
        resource: ResourceName::new(RESOURCE).unwrap(),
        only: None,
        actor: "operator".parse().unwrap(),
        reason: "drill".parse().unwrap(),
    };
    wait_for(bob.tenure.authority().execute(&revoke)).unwrap().unwrap();
    drill.takes(&mut bob);
    drill.loses(&alice);
    drill.ends(alice, bob, &url);
}

/// A backup from before the newest grant is renamed into the place of the file, as the store's page says, while the holder
/// goes on with the old one.
#[test]
fn a_backup_is_renamed_into_its_place() {
    const TEST: &str = "drills::sqlite::a_backup_is_renamed_into_its_place";
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
    const TEST: &str = "drills::sqlite::a_backup_is_copied_over_it";
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
    let carol =
        Gone { name: "carol", why: "its process has ended", token, receiver: drill.path("shop.db"), refused: 0 };
    drill.ends(carol, bob, &url);
}

/// The process is killed when its grant is on the disk, and before it hears of it.
#[test]
fn a_worker_is_killed_before_it_hears_of_its_grant() {
    if is_told() {
        return;
    }
    let title = "SQLite: a worker is killed between its grant and the answer";
    let test = "drills::sqlite::a_worker_is_killed_before_it_hears_of_its_grant";
    killed(test, "sqlite-killed-granted", title, "granted, not announced", |lease| lease.phase == Phase::Sealing);
}

/// The process is killed when its grant is sealed and announced, and before it hears of that.
#[test]
fn a_worker_is_killed_before_it_hears_of_its_announcement() {
    if is_told() {
        return;
    }
    let title = "SQLite: a worker is killed between its announcement and the answer";
    let test = "drills::sqlite::a_worker_is_killed_before_it_hears_of_its_announcement";
    killed(test, "sqlite-killed-announced", title, "announced", |lease| lease.phase == Phase::Held);
}

fn killed(test: &str, slug: &'static str, title: &'static str, state: &str, is_time: impl Fn(&LeaseRecord) -> bool) {
    let mut drill = Drill::new(slug, title);
    let (path, receiver) = (drill.path("tenure.db"), drill.path("shop.db"));
    let url = url(&path);
    let mut bob = drill.worker("bob", &url);
    // Somebody had it once: the receiver is enrolled, so that a grant is announced only when it is sealed.
    drill.takes(&mut bob);
    bob.release();
    let mut alice = Elsewhere::start(test, Job::Ask, &url, &receiver);
    let lease = loop {
        assert_eq!(alice.hear(), "written", "it has heard of its grant");
        let lease = record(&bob);
        if lease.grant != bob.token().grant && is_time(&lease) {
            break lease;
        }
        alice.order("go on");
    };
    alice.kill();
    drill.tell(format_args!("the grant of epoch {} is on the disk ({state}), and alice is killed", lease.epoch));
    assert_eq!(record(&bob).grant, lease.grant, "the grant stands without anybody who knows");
    drill.takes(&mut bob);
    assert_eq!(bob.token().epoch.get(), lease.epoch.get() + 1);
    assert!(drill.rows().is_empty(), "alice never began");
    let token = Token { resource: lease.resource, epoch: lease.epoch, grant: lease.grant };
    let alice = Gone { name: "alice", why: "killed, and it never knew", token, receiver, refused: 0 };
    drill.ends(alice, bob, &url);
}

fn record(worker: &Worker) -> LeaseRecord {
    let resource = ResourceName::new(RESOURCE).unwrap();
    wait_for(worker.tenure.authority().inspect(&resource)).unwrap().view.lease.unwrap()
}

/// The disk is full: nothing is renewed and nothing granted, and nothing is lost. When there is space again, it goes on.
#[test]
fn the_disk_is_full() {
    if !super::apart::is_apart("drills::sqlite::the_disk_is_full", &["--mount"]) {
        return;
    }
    let mut drill = Drill::new("sqlite-full", "SQLite: the disk is full");
    let disk = Disk::mount("1m");
    let url = url(&disk.path("tenure.db"));
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    assert!(matches!(drill.writes(&mut alice), Written::Accepted));
    let mut bob = drill.worker("bob", &url);
    disk.fill();
    drill.tell("the disk is full");
    drill.loses(&alice);
    let told = bob.take(TTL, |_| ()).expect_err("nothing can be written").to_string();
    drill.tell(format_args!("bob is told: {told}"));
    let left = record(&bob);
    assert_eq!((left.epoch, left.grant), (alice.token().epoch, alice.token().grant), "nothing was lost");
    disk.make_room();
    drill.tell("there is space again");
    drill.takes(&mut bob);
    assert_eq!(bob.token().epoch.get(), alice.token().epoch.get() + 1);
    let check = rusqlite::Connection::open(disk.path("tenure.db")).unwrap();
    let answer: String = check.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
    drop(check);
    drill.ends(alice, bob, &url);
}

/// A small disk. It goes with the mount namespace of this process.
struct Disk(tempfile::TempDir);

impl Disk {
    fn mount(size: &str) -> Self {
        let disk = Self(tempfile::tempdir().unwrap());
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(disk.0.path());
        assert!(mount.status().unwrap().success(), "no disk can be mounted");
        disk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Takes all that is left.
    fn fill(&self) {
        let mut filler = fs::File::options().create(true).append(true).open(self.path("filler")).unwrap();
        while std::io::Write::write_all(&mut filler, &[1; 512]).is_ok() {}
    }

    fn make_room(&self) {
        fs::remove_file(self.path("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Before its folder is removed.
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}
