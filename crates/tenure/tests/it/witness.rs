//! A worker that is started again, and an authority that went back meanwhile and cannot notice it.

use std::fs;
use std::path::Path;
use std::time::Duration;
use tenure::authority::BootClock;
use tenure::blocking::wait_for;
use tenure::core::decide::Refusal;
use tenure::{AcquireError, Tenure};

fn connect(folder: &Path, witness: bool) -> Tenure {
    let builder = Tenure::builder().owner("worker");
    let builder = if witness { builder.witness(folder.join("state/witness")) } else { builder };
    wait_for(builder.connect(&format!("sqlite:{}?create=true", folder.join("a.db").display()))).unwrap()
}

/// Holds `name` once, and waits until the connection has closed its file.
fn work(folder: &Path, name: &str) {
    let tenure = connect(folder, true);
    wait_for(wait_for(tenure.acquire(name).into_future()).unwrap().release()).unwrap();
    drop(tenure);
    let begun = BootClock.now_nanos();
    while folder.join("a.db-wal").exists() {
        assert!(BootClock.now_nanos() - begun < 20_000_000_000, "the file stays open");
        std::thread::yield_now();
    }
}

fn copy(from: &Path, to: &Path) {
    for name in ["a.db", "a.db-witness"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

/// The whole disk of the authority went back to its snapshot of the night, with all that tells one file from another. The
/// workers' own machine did not.
#[test]
fn a_worker_that_is_started_again_notices_what_the_store_cannot() {
    let home = tempfile::tempdir().unwrap();
    let (folder, backup) = (home.path(), home.path().join("backup"));
    fs::create_dir(&backup).unwrap();
    work(folder, "first");
    copy(folder, &backup);
    work(folder, "second");
    copy(&backup, folder);
    // Somebody without a witness finds nothing wrong.
    let ignorant = connect(folder, false);
    let read = wait_for(ignorant.authority().store().read(&Default::default())).unwrap();
    assert_eq!(read.view.authority.incarnation, 1);
    let tenure = connect(folder, true);
    let refused = wait_for(tenure.acquire("first").wait(Duration::ZERO).into_future()).unwrap_err();
    let AcquireError::Refused { refusal: Refusal::Quarantined { remaining }, .. } = refused else {
        panic!("{refused}")
    };
    assert!(remaining > Duration::from_hours(23));
    drop(tenure);
    let again = connect(folder, true);
    let read = wait_for(again.authority().store().read(&Default::default())).unwrap();
    assert_eq!(read.view.authority.incarnation, 2, "the next one finds nothing new");
}
