use crate::site::{Site, hold};
use std::time::Duration;

const JOB: &str = "nightly";

#[test]
fn a_script_that_holds_goes_on_and_one_that_was_taken_over_stops() {
    let site = Site::new();
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[]);
    let token = lease.token().clone();
    site.inside(&token, &["check"]).ended(0).with(&["owned: nightly, epoch 1"]);
    let said = site.inside(&token, &["check", "--json"]).ended(0).json();
    assert_eq!((&said["owned"], &said["standing"]), (&true.into(), &"owned".into()));
    assert!(said["holder"]["remaining_ms"].as_u64().unwrap() > 60_000, "{said}");
    site.tenure(&["takeover", JOB, "--reason", "hangs"]).ended(0);
    site.inside(&token, &["check"]).ended(76).with(&["op@", "took it away", "hangs", "nobody holds it", "Stop here"]);
    let next = hold(&site.worker("bob"), JOB, &[]);
    let said = site.inside(&token, &["check", "--json"]).ended(76).json();
    assert_eq!((&said["owned"], &said["standing"]), (&false.into(), &"lost".into()));
    assert_eq!((&said["holder"]["owner"], &said["holder"]["epoch"]), (&"bob".into(), &2.into()));
    assert_eq!((&said["ended"]["event"], &said["ended"]["why"]), (&"revoked".into(), &"hangs".into()));
    drop(next);
}

#[test]
fn whatever_ended_it_is_lost_for_good() {
    let site = Site::new();
    let worker = site.worker("alice");
    let released = hold(&worker, "released", &[]).token().clone();
    site.inside(&released, &["release"]).ended(0);
    site.inside(&released, &["check"]).ended(76).with(&["alice released it"]);
    // How it ended is told, not what became of the resource afterwards.
    site.tenure(&["retire", "released"]).ended(0);
    site.inside(&released, &["check"]).ended(76).with(&["alice released it", "or it was retired"]);
    let lease = hold(&worker, "completed", &[]);
    let completed = lease.token().clone();
    lease.complete("version 12").unwrap();
    site.inside(&completed, &["check"]).ended(76).with(&["alice completed the resource", "version 12"]);
    let lease = hold(&worker, "expired", &[]);
    let database = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    database.execute("UPDATE session SET deadline_ns = 1, version = version + 1", ()).unwrap();
    site.inside(lease.token(), &["check"]).ended(76).with(&["nobody holds it", "its deadline passed"]);
    let next = hold(&site.worker("bob"), "expired", &[]);
    site.inside(lease.token(), &["check"]).ended(76).with(&["bob was granted the next epoch", "under epoch 3"]);
    let forged = next.token().to_string().replace("@3:", "@4:");
    site.inside(&forged, &["check"]).ended(76).with(&["lost: expired, epoch 4"]);
}

/// cilium #42920: what runs on after a loss that nobody noticed does damage; a loss is a hard stop within a bounded time.
/// Here the authority does not answer at all, because a stopped process holds its file.
#[test]
fn no_answer_within_the_bound_counts_as_lost() {
    let site = Site::new();
    let token = hold(&site.worker("alice"), JOB, &[]).token().clone();
    let database = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    database.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();
    let clock = tenure::authority::BootClock;
    let before = clock.now_nanos();
    let said = site.inside(&token, &["check", "--within", "300ms"]).ended(69);
    let took = Duration::from_nanos(clock.now_nanos() - before);
    said.with(&["no answer within 300 ms", "Treat it as lost"]);
    assert!(took < Duration::from_secs(4), "{took:?}");
    let said = site.inside(&token, &["check", "--within", "300ms", "--json"]).ended(69).json();
    assert_eq!(said["standing"], "unknown");
}

#[test]
fn a_check_makes_no_authority_and_knows_nonsense() {
    let site = Site::new();
    let token = hold(&site.worker("alice"), JOB, &[]).token().clone();
    let url = format!("sqlite:{}?create=true", site.path("none.db").display());
    site.inside(&token, &["check", "--authority", &url]).ended(69).with(&["no store", "Treat it as lost"]);
    assert!(!site.path("none.db").exists());
    site.inside(&token, &["check", "--authority", "mysql:x"]).ended(64).with(&["write sqlite:PATH"]);
    site.inside(&"nightly@0:1", &["check"]).ended(64).with(&["TENURE_TOKEN holds no token"]);
    site.tenure(&["check"]).ended(64).with(&["tenure run"]);
}

/// A run that was frozen and goes on under a new epoch writes the file anew; its variables are as they were.
#[test]
fn the_token_s_file_is_newer_than_the_variable() {
    let site = Site::new();
    let worker = site.worker("alice");
    let old = hold(&worker, JOB, &[]).token().clone();
    site.inside(&old, &["release"]).ended(0);
    let lease = hold(&worker, JOB, &[]);
    let file = site.path("token");
    std::fs::write(&file, format!("{}\n", lease.token())).unwrap();
    let check = || {
        let mut command = site.command(&["check"]);
        command.env("TENURE_TOKEN", old.to_string()).env("TENURE_TOKEN_FILE", &file).output().unwrap()
    };
    site.inside(&old, &["check"]).ended(76);
    assert_eq!(check().status.code(), Some(0));
    std::fs::remove_file(&file).unwrap();
    let said = check();
    assert_eq!(said.status.code(), Some(76));
    assert!(String::from_utf8(said.stderr).unwrap().contains("is gone"));
}

#[test]
fn a_file_is_put_once_for_each_operation_also_across_epochs() {
    let site = Site::new();
    let out = site.files("out");
    let worker = site.worker("alice");
    let token = hold(&worker, JOB, &[&out]).token().clone();
    let put = |token: &tenure::Token, input: &str, more: &[&str]| {
        site.fed(token, input.as_bytes(), &[&["put", "--sink", &out], more].concat())
    };
    let read = |name: &str| std::fs::read_to_string(site.path("out").join(name)).unwrap();
    put(&token, "one", &[]).ended(0).with(&["written", "3 bytes", "epoch 1"]);
    assert_eq!(read("nightly"), "one");
    let once = ["--op", "dump-1", "--name", "dump.sql", "--json"];
    assert_eq!(put(&token, "dump", &once).ended(0).json()["verdict"], "written");
    put(&token, "other", &once[..4]).ended(65).with(&["conflict", "another --op"]);
    // rentemester #583 and four more: a crash between the effect and its record; the next owner repeats the intent under
    // its own epoch, and finds it done.
    site.inside(&token, &["release"]).ended(0);
    let next = hold(&worker, JOB, &[&out]).token().clone();
    let said = put(&next, "dump", &once).ended(0).json();
    assert_eq!((&said["verdict"], &said["current_epoch"], &said["epoch"]), (&"replay".into(), &1.into(), &2.into()));
    assert!(said["outcome"].as_str().unwrap().starts_with("dump.sql: 4 bytes, sha256 "), "{said}");
    // The old one is told first that it has lost, not that its operation stands.
    put(&token, "dump", &once[..4]).ended(76).with(&["stale", "epoch 2", "stop here"]);
    assert_eq!((read("dump.sql"), read("nightly")), ("dump".to_owned(), "one".to_owned()));
}

#[test]
fn an_overtaken_run_puts_nothing() {
    let site = Site::new();
    let out = site.files("out");
    let old = hold(&site.worker("alice"), JOB, &[&out]).token().clone();
    site.inside(&old, &["release"]).ended(0);
    let worker = site.worker("bob");
    let lease = hold(&worker, JOB, &[&out]);
    site.fed(lease.token(), b"new", &["put", "--sink", &out]).ended(0);
    site.fed(&old, b"old", &["put", "--sink", &out]).ended(76).with(&["stale", "was not changed"]);
    assert_eq!(std::fs::read(site.path("out/nightly")).unwrap(), b"new");
    let left: Vec<_> = std::fs::read_dir(site.path("out")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the target and the sink's own folder: {left:?}");
}

#[test]
fn a_put_that_makes_no_sense_says_what_would() {
    let site = Site::new();
    let out = site.files("out");
    let worker = site.worker("alice");
    let token = hold(&worker, "jobs/nightly", &[&out]).token().clone();
    let put = |args: &[&str]| site.fed(&token, b"x", &[&["put"], args].concat());
    put(&[]).ended(64).with(&["--sink"]);
    put(&["--sink", &out]).ended(64).with(&["jobs/nightly", "give --name NAME"]);
    put(&["--sink", &out, "--name", "../x"]).ended(64).with(&["leave out the `/`"]);
    put(&["--sink", "s3:bucket"]).ended(64).with(&["write file:FOLDER"]);
    put(&["--sink", "file:nowhere", "--name", "x"]).ended(69).with(&["is not there"]);
    let database = format!("sqlite:{}?create=true", site.path("shop.db").display());
    put(&["--sink", &database, "--name", "x"]).ended(64).with(&["no receiver of files", "file:FOLDER"]);
    put(&["--sink", &out, "--name", "x"]).ended(0);
    let unsealed = site.files("unsealed");
    put(&["--sink", &unsealed, "--name", "x"])
        .ended(75)
        .with(&["unsealed", "tenure run --resource jobs/nightly --sink"]);
}
