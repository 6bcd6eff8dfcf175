use crate::world::{Place, Worker, arguments, child, child_of, existing, grant, sqlite};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tenure_authority::conformance::block_on;
use tenure_authority::{AuthorityError, BootClock, Clock, Page, Store, StoreError};
use tenure_core::Ttl;
use tenure_core::decide::Reply;

fn clock() -> Clock {
    Clock::Boot(BootClock)
}

/// Acquires new resources until something goes wrong: how many were granted, and what it was.
fn fill(worker: &Worker) -> (u64, AuthorityError) {
    let long = "x".repeat(400);
    for n in 0..100_000 {
        match worker.ask(&worker.acquiring(&format!("{n}/{long}"), grant(n))) {
            Ok(answer) => assert!(matches!(answer, Ok(Reply::Granted(_))), "{answer:?}"),
            Err(error) => return (n, error),
        }
    }
    unreachable!("nothing went wrong")
}

fn count(store: &Arc<dyn Store>) -> u64 {
    block_on(store.leases(Page { after: None, limit: 1_000_000 })).expect("the resources").len() as u64
}

/// Runs this test in a child, through a shell that first sets the scene.
fn in_shell(shell: &mut Command, scene: &str, test: &str, path: &Path) {
    let program = std::env::current_exe().expect("this test's own program");
    let script = format!("{scene} && exec \"$@\"");
    let output = shell
        .args(["sh", "-c", &script, "sh"])
        .arg(program)
        .args(arguments("full_disk", test))
        .env(format!("TENURE_CHILD_{test}"), path)
        .output()
        .expect("a shell");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("the child has checked"), "{said}");
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_space() {
    const TEST: &str = "a_full_disk_refuses_and_goes_on_when_there_is_space";
    if let Some(folder) = child_of(TEST) {
        let filler = folder.join("filler");
        std::fs::write(&filler, vec![1; 200_000]).expect("there is space");
        let store: Arc<dyn Store> = sqlite(&folder.join("tenure.db"), clock());
        let worker = Worker::open_for(Ttl::MAX.get(), Arc::clone(&store), 1, true);
        let (granted, error) = fill(&worker);
        assert!(matches!(error, AuthorityError::Store(StoreError::NotWritable(_))), "{error:?}");
        assert!(error.to_string().contains("free space"), "{error}");
        assert_eq!(count(&store), granted, "nothing was lost, and nothing is there that was refused");
        std::fs::remove_file(filler).expect("it is there");
        worker.acquire("with space again", grant(1_000_000));
        assert_eq!(count(&store), granted + 1);
        println!("the child has checked");
        return;
    }
    let place = Place::new();
    let namespace = |command: &mut Command| {
        command.args(["--mount", "--map-root-user"]);
    };
    let mut probe = Command::new("unshare");
    namespace(&mut probe);
    let probed = probe.args(["mount", "-t", "tmpfs", "tmpfs"]).arg(place.folder.path()).status();
    if !probed.is_ok_and(|status| status.success()) {
        println!("not run: this machine lets nobody mount a small file system of their own");
        return;
    }
    let mut shell = Command::new("unshare");
    namespace(&mut shell);
    let scene = format!("mount -t tmpfs -o size=600k tmpfs '{}'", place.folder.path().display());
    in_shell(&mut shell, &scene, TEST, place.folder.path());
}

/// A limit on the size of files makes the commit itself fail; whether it was made is then not for the store to say.
#[test]
fn a_commit_that_fails_is_unknown_and_whole() {
    const TEST: &str = "a_commit_that_fails_is_unknown_and_whole";
    if let Some(path) = child_of(TEST) {
        let store: Arc<dyn Store> = sqlite(&path, clock());
        let worker = Worker::open_for(Ttl::MAX.get(), Arc::clone(&store), 1, true);
        let (granted, error) = fill(&worker);
        assert!(matches!(error, AuthorityError::Unknown), "{error:?}");
        let found = count(&store);
        assert!(found == granted || found == granted + 1, "granted {granted}, found {found}");
        println!("the child has checked");
        return;
    }
    let place = Place::new();
    // 600 blocks of 512 bytes; the signal would end the process before the write could fail.
    in_shell(&mut Command::new("env"), "trap '' XFSZ && ulimit -f 600", TEST, &place.path);
    let store: Arc<dyn Store> = Arc::new(existing(&place.path, clock()).expect("the same store, without a limit"));
    let worker = Worker::open(store, 2, true);
    worker.acquire("after it", grant(1_000_000));
}

#[test]
fn a_file_that_may_not_be_written_is_told() {
    const TEST: &str = "a_file_that_may_not_be_written_is_told";
    if let Some(path) = child_of(TEST) {
        let error = existing(&path, clock()).expect_err("it may not be written");
        assert!(matches!(error, StoreError::NotWritable(_)), "{error:?}");
        assert!(error.to_string().contains("give the right to write"), "{error}");
        println!("the child has checked");
        return;
    }
    let place = Place::new();
    drop(sqlite(&place.path, clock()));
    let before = std::fs::read(&place.path).expect("the file");
    let chmod = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own file");
    };
    chmod(&place.path, 0o444);
    for folder in [0o755, 0o555] {
        chmod(place.folder.path(), folder);
        let mut child = child("full_disk", TEST, &place.path);
        if rustix::process::geteuid().is_root() {
            // Root may write everything; nobody may not.
            child.uid(65_534).gid(65_534);
        }
        let output = child.output().expect("a child");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("the child has checked"), "{said}");
    }
    chmod(place.folder.path(), 0o755);
    assert_eq!(std::fs::read(&place.path).expect("the file"), before);
}
