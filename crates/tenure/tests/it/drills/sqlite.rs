mod put_back;

use super::elsewhere::{Elsewhere, Gone, Job, is_told};
use super::{Drill, RESOURCE, TTL, Worker, Written};
use std::fs;
use std::path::{Path, PathBuf};
use tenure::ResourceName;
use tenure::blocking::wait_for;
use tenure::core::record::{LeaseRecord, Phase};

fn url(path: &Path) -> String {
    // A quarantine lasts as long as the longest ttl.
    format!("sqlite:{}?create=true&max_ttl=2s", path.display())
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
    let alice = Gone::new("alice", "killed, and it never knew", lease.token(), receiver);
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
    let told = told.replace(&disk.path("").display().to_string(), "");
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
