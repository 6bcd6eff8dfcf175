//! `tenure restore`, as an operator types it after a backup was put back.

use crate::site::{Said, Site, hold};
use std::fs;
use tenure::authority::BootClock;
use tenure::blocking::Tenure;
use tenure::core::record::Event;

const JOB: &str = "nightly";

fn restore(site: &Site, more: &[&str]) -> Said {
    site.tenure(&[&["restore"], more].concat())
}

/// Ends a worker, and waits until its connection has closed the file.
fn close(site: &Site, worker: Tenure) {
    drop(worker);
    let begun = BootClock.now_nanos();
    while site.path("authority.db-wal").exists() {
        assert!(BootClock.now_nanos() - begun < 20_000_000_000, "the file stays open");
        std::thread::yield_now();
    }
}

/// A site whose authority has gone back to before its last two grants, on a machine that notices nothing: witness and file
/// are as they were.
fn gone_back(site: &Site, url: &str) {
    let worker = site.worker("alice");
    hold(&worker, JOB, &[]).release().unwrap();
    close(site, worker);
    let (files, copies) = (["authority.db", "authority.db-witness"], site.path("backup"));
    fs::create_dir(&copies).unwrap();
    files.iter().for_each(|name| assert!(fs::copy(site.path(name), copies.join(name)).unwrap() > 0));
    let worker = site.worker("bob");
    hold(&worker, JOB, &[url]).release().unwrap();
    hold(&worker, "lost", &[url]).release().unwrap();
    close(site, worker);
    // Into the same files, so that they are the same ones.
    files.iter().for_each(|name| assert!(fs::copy(copies.join(name), site.path(name)).unwrap() > 0));
}

#[test]
fn a_restore_that_nobody_noticed_is_declared_and_what_was_lost_is_learnt() {
    let site = Site::new();
    let out = site.files("out");
    gone_back(&site, &out);
    let shown = site.tenure(&["show", JOB]).ended(0);
    assert!(!shown.out.contains("quarantined"), "{shown:?}");
    // First a look, which changes nothing.
    let looked = restore(&site, &["--dry-run", "--learn-from", &out]).ended(0);
    looked.with(&["Not in quarantine", "Would learn", "epoch 2 instead of 1", "lost: epoch 1, unknown before", &out]);
    assert!(!site.history().iter().any(|row| matches!(row.event, Event::Restored | Event::Learnt)));
    // Nobody is there to ask.
    let why = ["--reason", "the backup of Monday", "--learn-from", &out];
    restore(&site, &why).ended(64).with(&["every session ends", "1 d 0 h", "--yes"]);
    let said = restore(&site, &[&why[..], &["--yes"]].concat()).ended(0);
    said.with(&["Quarantined", "nothing is granted until", "Incarnation 2", "Learnt from", "epoch 2 instead of 1"]);
    let rows = site.history();
    let row = rows.iter().find(|row| row.event == Event::Restored).unwrap();
    assert_eq!(row.why.as_ref().unwrap().as_str(), "the backup of Monday");
    assert!(row.actor.as_ref().unwrap().as_str().starts_with("op@"));
    assert_eq!(rows.iter().filter(|row| row.event == Event::Learnt).count(), 2);
    // Once more, and there is nothing new in it.
    let again = restore(&site, &[&why[..], &["--json"]].concat()).ended(0).json();
    assert_eq!((&again["declared"], &again["learnt"]), (&false.into(), &serde_json::json!([])), "{again}");
    assert!(again["quarantine_ms"].as_u64().unwrap() > 86_000_000, "{again}");
    restore(&site, &why).ended(0).with(&["In quarantine already", "Nothing new from"]);
    assert_eq!(site.history().len(), rows.len(), "said twice, it is done once");
    // Everywhere it says how long it lasts, and what to do.
    let advice = "tenure restore --learn-from";
    site.tenure(&["show", JOB]).ended(0).with(&["quarantined", advice]);
    site.tenure(&["ls"]).ended(0).with(&["lost", "quarantined", advice]);
    site.tenure(&["doctor"]).with(&["quarantine", advice]);
    site.tenure(&["run", "--resource", JOB, "--wait", "0s", "--", "true"])
        .ended(75)
        .with(&["grants nothing for", advice]);
    let listed = site.tenure(&["sinks", "lost", "ls"]).ended(0);
    assert!(listed.out.contains(&out), "its receiver is enrolled again: {listed:?}");
}

/// The file was put back as most people do it: under a new name for the system. Nobody had to say a word.
#[test]
fn a_file_that_was_put_back_serves_nobody_by_accident() {
    let site = Site::new();
    let worker = site.worker("alice");
    hold(&worker, JOB, &[]).release().unwrap();
    close(&site, worker);
    fs::copy(site.path("authority.db"), site.path("backup.db")).unwrap();
    fs::rename(site.path("backup.db"), site.path("authority.db")).unwrap();
    let run = ["run", "--resource", JOB, "--wait", "0s", "--", "true"];
    site.tenure(&run).ended(75).with(&["went back in time", "tenure restore --learn-from"]);
    site.tenure(&["history"]).ended(0).with(&["quarantined", "another file than its witness saw"]);
    let said = restore(&site, &["--reason", "moved to a new disk", "--yes"]).ended(0);
    said.with(&["In quarantine already"]);
    let noticed = site.history().iter().filter(|row| row.event == Event::Quarantined).count();
    assert_eq!(noticed, 1);
    assert!(!site.history().iter().any(|row| row.event == Event::Restored));
}

#[test]
fn what_cannot_be_learnt_is_said() {
    let site = Site::new();
    let (out, away) = (site.files("out"), format!("file:{}", site.path("away").display()));
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[&out]);
    let only = |urls: &[&str]| {
        let urls = urls.iter().flat_map(|url| ["--learn-from", url]);
        restore(&site, &["--learn-only"].into_iter().chain(urls).collect::<Vec<_>>())
    };
    // A receiver that is not there does not keep the others from teaching.
    only(&[&away, &out]).ended(69).with(&["not learnt from", "is not there", "Nothing new from"]);
    only(&[&format!("{out}?id=another")]).ended(69).with(&["it is called another here", "?id="]);
    // Somebody holds it in the present life of the authority, and a receiver knows more.
    let ahead = tenure::sink::connect(&site.files("ahead")).unwrap();
    let token = tenure::Token { epoch: tenure::Epoch::new(9).unwrap(), ..lease.token().clone() };
    let generation = tenure::blocking::wait_for(ahead.describe(&token.resource)).unwrap().generation;
    let sealing = tenure::blocking::wait_for(ahead.seal(&token, &generation, &[ahead.id().clone()].into())).unwrap();
    assert!(matches!(sealing, tenure::core::fence::Sealing::Seal(_)));
    only(&[ahead.id().as_str()]).ended(75).with(&["not learnt", "held by alice"]);
    lease.ensure_owned().unwrap();
    lease.release().unwrap();
    only(&[ahead.id().as_str()]).ended(0).with(&["epoch 9 instead of 1"]);
    let short = ["--reason", "a promotion", "--longest-ttl", "2m"];
    restore(&site, &short).ended(64).with(&["nothing is granted for 2 min 0 s", "--yes"]);
    let said = restore(&site, &[&short[..], &["--yes", "--json"]].concat()).ended(0).json();
    assert_eq!((&said["declared"], &said["quarantine_ms"]), (&true.into(), &120_000.into()), "{said}");
    restore(&site, &["--learn-from", &out]).ended(64).with(&["--reason"]);
    restore(&site, &["--learn-only"]).ended(64).with(&["--learn-from"]);
}
