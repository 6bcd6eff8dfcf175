use crate::site::{Said, Site, hold};
use serde_json::json;
use std::collections::BTreeSet;
use tenure::blocking::wait_for;
use tenure::core::record::Event;

const JOB: &str = "nightly";

fn takeover(site: &Site, more: &[&str]) -> Said {
    let args = ["takeover", JOB, "--reason", "db3 is being rebuilt"];
    site.tenure(&[&args, more].concat())
}

/// jenkins lockable-resources #43, go-gcslock #10, granit #298, zlux #582: who holds it, since when, and an audited way to
/// take it away. helm #8987, restic #3219, borg #955: users delete a lock by hand, and cannot know what they cut off.
#[test]
fn a_takeover_says_from_whom_it_took_what_and_the_history_keeps_who_did_it_and_why() {
    let site = Site::new();
    let worker = site.worker("alice@db3/4711");
    let lease = hold(&worker, JOB, &[]);
    let said = takeover(&site, &[]).ended(0);
    let said = said.with(&["alice@db3/4711", "epoch 1", "Nobody is stopped by this", "No receiver is enrolled"]);
    assert!(!said.out.contains("force") && !said.out.contains("unlock"), "{said:?}");
    let row = site.history().into_iter().find(|row| row.event == Event::Revoked).unwrap();
    assert!(row.actor.unwrap().as_str().starts_with("op@"));
    assert_eq!(row.why.unwrap().as_str(), "db3 is being rebuilt");
    // The old holder has lost it for good, and the next one gets a higher epoch.
    assert!(lease.ensure_owned().is_err());
    let next = site.worker("bob");
    assert_eq!(hold(&next, JOB, &[]).token().epoch.get(), 2);
}

#[test]
fn a_takeover_in_json_says_the_same() {
    let site = Site::new();
    let out = site.files("out");
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[&out]);
    let said = takeover(&site, &["--json"]).ended(0).json();
    assert_eq!(said["taken"], true);
    assert_eq!(said["from"]["owner"], "alice");
    assert_eq!(said["from"]["epoch"], 1);
    assert_eq!(said["from"]["grant"], lease.token().grant.to_string());
    assert_eq!(said["receivers"], json!([out]));
    assert_eq!(said["reason"], "db3 is being rebuilt");
    let hears = said["old_holder_hears_within_ms"].as_u64().unwrap();
    assert!((60_000..=120_000).contains(&hears), "{said}");
    assert!(said["from"]["since"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn where_nothing_is_held_there_is_nothing_to_take_over() {
    let site = Site::new();
    takeover(&site, &[]).ended(1).with(&["nothing to take over", "nobody ever held it"]);
    let worker = site.worker("alice");
    hold(&worker, JOB, &[]).release().unwrap();
    takeover(&site, &[]).ended(1).with(&["nobody holds it; its last epoch is 1, of alice"]);
    assert_eq!(takeover(&site, &["--json"]).ended(1).json()["taken"], false);
}

/// An operator looks, goes to ask somebody, and types when the next worker has it already.
#[test]
fn a_takeover_from_an_epoch_that_is_over_does_not_hit_the_next_holder() {
    let site = Site::new();
    let worker = site.worker("alice");
    hold(&worker, JOB, &[]).release().unwrap();
    let lease = hold(&worker, JOB, &[]);
    takeover(&site, &["--if-epoch", "1"]).ended(1).with(&["alice", "under epoch 2"]);
    lease.ensure_owned().unwrap();
    takeover(&site, &["--if-epoch", "2"]).ended(0);
    assert!(lease.ensure_owned().is_err());
}

#[test]
fn the_history_is_owed_a_reason() {
    let site = Site::new();
    for verb in ["takeover", "reopen"] {
        site.tenure(&[verb, JOB]).ended(64).with(&["--reason"]);
        site.tenure(&[verb, JOB, "--reason", "  "]).ended(64).with(&["say why"]);
    }
}

#[test]
fn a_release_by_its_token_is_repeated_and_never_hits_the_next_holder() {
    let site = Site::new();
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[]);
    let token = lease.token().clone();
    for _ in 0..2 {
        site.inside(&token, &["release"]).ended(0).with(&["Released: nightly, epoch 1"]);
    }
    let next = hold(&site.worker("bob"), JOB, &[]);
    let said = site.tenure(&["release", "--token", &token.to_string(), "--json"]).ended(76);
    assert_eq!(said.json()["holder"]["owner"], "bob");
    assert!(said.err.contains("bob") && said.err.contains("under epoch 2"), "{said:?}");
    drop(next);
    site.tenure(&["release"]).ended(64).with(&["TENURE_TOKEN", "--token"]);
    site.tenure(&["release", "--token", "nightly"]).ended(64).with(&["resource@epoch:grant"]);
}

#[test]
fn a_retirement_goes_on_where_it_stopped_and_closes_the_receivers() {
    let site = Site::new();
    let (out, more) = (site.files("out"), site.files("more"));
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[&out, &more]);
    let token = lease.token().clone();
    site.tenure(&["retire", JOB]).ended(75).with(&["alice", "tenure takeover nightly"]);
    lease.release().unwrap();
    std::fs::rename(site.path("more"), site.path("away")).unwrap();
    let said = site.tenure(&["retire", JOB, "--json"]).ended(69).with(&[&more, "is not there", "Repeat the command"]);
    assert_eq!(said.json()["unreached"].as_object().unwrap().keys().collect::<Vec<_>>(), [&more]);
    assert!(said.err.contains(&format!("forgotten at {out}")), "{said:?}");
    // Nobody gets it in between.
    let wish = worker.wish(JOB).wait(std::time::Duration::ZERO);
    assert!(worker.acquire(wish).unwrap_err().to_string().contains("being retired"));
    std::fs::rename(site.path("away"), site.path("more")).unwrap();
    let said = site.tenure(&["retire", JOB]).ended(0).with(&["Gone: nightly"]);
    assert!(!said.err.contains(&out), "what has forgotten is not asked again: {said:?}");
    site.tenure(&["retire", JOB]).ended(0).with(&["There is no nightly"]);
    for sink in [&out, &more] {
        site.fed(&token, b"late", &["put", "--sink", sink]).ended(76).with(&["stale"]);
    }
}

/// A receiver that another authority has used shows a higher epoch: the cut rises, and every receiver forgets again.
#[test]
fn a_retirement_rises_above_what_a_receiver_shows() {
    let site = Site::new();
    let (a, b) = (site.files("a"), site.files("b"));
    let worker = site.worker("alice");
    hold(&worker, JOB, &[&a, &b]).release().unwrap();
    let sink = tenure::sink::connect(&b).unwrap();
    let token: tenure::Token = format!("{JOB}@3:{:032x}", 7).parse().unwrap();
    let generation = wait_for(sink.describe(&token.resource)).unwrap().generation;
    let sealed = wait_for(sink.seal(&token, &generation, &BTreeSet::new())).unwrap();
    assert!(matches!(sealed, tenure::core::fence::Sealing::Seal(_)), "{sealed:?}");
    let said = site.tenure(&["retire", JOB]).ended(0).with(&["has a higher epoch: every receiver forgets again"]);
    assert_eq!(said.err.matches(&format!("forgotten at {a}")).count(), 2, "{said:?}");
    site.fed(&token, b"late", &["put", "--sink", &b]).ended(76);
}

#[test]
fn a_holder_whose_deadline_has_passed_does_not_hold_off_a_retirement() {
    let site = Site::new();
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[]);
    // As if its process had been killed long ago.
    let database = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    database.execute("UPDATE session SET deadline_ns = 1, version = version + 1", ()).unwrap();
    takeover(&site, &[]).ended(1).with(&["the lease of alice", "has ended: its deadline passed"]);
    site.tenure(&["retire", JOB]).ended(0).with(&["Gone"]);
    drop(lease);
}

#[test]
fn a_completed_resource_is_opened_again_with_its_outcome_shown() {
    let site = Site::new();
    let worker = site.worker("alice");
    let reopen = ["reopen", JOB, "--reason", "the source was corrected"];
    site.tenure(&reopen).ended(1).with(&["nothing to open again", "nobody ever held it"]);
    let lease = hold(&worker, JOB, &[]);
    site.tenure(&reopen).ended(1).with(&["nightly is held by alice, under epoch 1"]);
    lease.complete("version 12").unwrap();
    takeover(&site, &[]).ended(1).with(&["has completed it", "version 12"]);
    site.tenure(&reopen).ended(0).with(&["Open again: nightly", "alice", "epoch 1", "version 12"]);
    assert_eq!(site.tenure(&[&reopen[..], &["--json"]].concat()).ended(1).json()["reopened"], false);
    assert_eq!(hold(&worker, JOB, &[]).token().epoch.get(), 2);
    let row = site.history().into_iter().find(|row| row.event == Event::Reopened).unwrap();
    assert_eq!(row.why.unwrap().as_str(), "the source was corrected");
}

#[test]
fn the_receivers_are_listed_from_both_sides() {
    let site = Site::new();
    let (out, dead) = (site.files("out"), site.files("dead"));
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[&out, &dead]);
    std::fs::rename(site.path("dead"), site.path("away")).unwrap();
    site.tenure(&["sinks", JOB, "ls"]).ended(0).with(&[&out, "sealed", "has epoch 1, as the authority", "not reached"]);
    let said = site.tenure(&["sinks", JOB, "ls", "--json"]).ended(0).json();
    assert_eq!((&said["phase"], &said["epoch"]), (&json!("held"), &json!(1)));
    let row = |id: &str| said["receivers"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap();
    assert_eq!((&row(&out)["agreement"], &row(&out)["sealed"]), (&json!("same"), &json!(true)));
    assert_eq!(row(&out)["there"]["grant"], lease.token().grant.to_string());
    assert_eq!(row(&dead)["agreement"], "unreached");
    let tinted = site.tenure(&["sinks", JOB, "ls", "--color", "always"]).ended(0);
    assert!(tinted.out.contains("\u{1b}[32msealed\u{1b}[0m"), "{tinted:?}");
    site.tenure(&["sinks", "unknown", "ls"]).ended(1).with(&["there is no unknown"]);
}

/// A receiver that is gone for good must not hold off every takeover, and is never taken out silently.
#[test]
fn a_receiver_is_taken_out_after_it_forgot_or_with_a_word_about_it() {
    let site = Site::new();
    let (out, dead) = (site.files("out"), site.files("dead"));
    let worker = site.worker("alice");
    let token = hold(&worker, JOB, &[&out, &dead]).token().clone();
    site.inside(&token, &["release"]).ended(0);
    std::fs::rename(site.path("dead"), site.path("away")).unwrap();
    let remove =
        |id: &str, more: &[&str]| site.tenure(&[&["sinks", JOB, "remove", id, "--reason", "moved"], more].concat());
    remove("file:/other", &[]).ended(1).with(&["no enrolled receiver", &out]);
    remove(&dead, &[]).ended(69).with(&["stays enrolled", "--unreachable"]);
    remove(&dead, &["--unreachable"]).ended(0).with(&["Taken out", "was not told to forget", "epoch 1"]);
    let said = remove(&out, &["--json"]).ended(0).json();
    assert_eq!((&said["removed"], &said["forgotten"]), (&json!(true), &json!(true)));
    site.fed(&token, b"late", &["put", "--sink", &out]).ended(76).with(&["stale"]);
    let whys: Vec<_> = site.history().into_iter().filter(|row| row.event == Event::Unenrolled).collect();
    let whys: Vec<_> = whys.iter().map(|row| row.why.as_ref().unwrap().as_str()).collect();
    assert_eq!(whys, [format!("{dead}: moved (without its forgetting: it was not asked)"), format!("{out}: moved")]);
    // A candidate without an adapter is not refused any more.
    hold(&worker, JOB, &[]).release().unwrap();
}

#[test]
fn a_reopened_receiver_accepts_nothing_until_it_is_sealed_again_and_that_is_recorded_for_each_resource() {
    let site = Site::new();
    let out = site.files("out");
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[&out]);
    let other = hold(&worker, "hourly", &[&out]);
    let put = |input: &[u8]| site.fed(lease.token(), input, &["put", "--sink", &out]);
    put(b"before").ended(0);
    let reopen = ["sinks", JOB, "reopen", &out, "--reason", "restored from Monday"];
    site.tenure(&reopen).ended(0).with(&["Reopened", "2 resource(s): hourly, nightly"]);
    put(b"after").ended(75).with(&["unsealed", "--sink"]);
    assert_eq!(std::fs::read(site.path("out/nightly")).unwrap(), b"before");
    site.tenure(&["sinks", JOB, "ls"]).ended(0).with(&["unsealed", "was reopened since epoch 1 was sealed"]);
    let doctor = site.tenure(&["doctor"]).ended(0).with(&["2 receiver(s) of what is held are not sealed"]);
    assert!(doctor.out.contains("warn     seals"), "{doctor:?}");
    let whys: Vec<_> = site.history().into_iter().filter(|row| row.event == Event::SinkReopened).collect();
    assert_eq!(whys.len(), 2);
    assert!(whys.iter().all(|row| row.why.as_ref().unwrap().as_str() == format!("{out}: restored from Monday")));
    // The holder hears of it and seals it in its new generation.
    let id = out.parse().unwrap();
    lease.heed(&id, &tenure::Verdict::Unsealed).unwrap();
    put(b"after").ended(0);
    site.tenure(&["sinks", JOB, "ls"]).ended(0).with(&["sealed", "has epoch 1, as the authority"]);
    drop(other);
}

#[test]
fn a_well_kept_site_passes_the_doctor_and_a_broken_one_is_told_what_to_do() {
    let site = Site::new();
    let out = site.files("out");
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[&out]);
    let said = site.tenure(&["doctor", "--json"]).ended(0).json();
    assert_eq!(said["ok"], true);
    let names: Vec<_> =
        said["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
    for name in
        ["config", "engine", "clock", "boot", "file system", "disk", "rights", "authority", "schema", "wall clock"]
    {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    for name in ["speed", "quarantine", "ttl", "resources", "seals", "sessions", "receiver"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    site.tenure(&["doctor"]).ended(0).with(&[
        "named by TENURE_AUTHORITY",
        "1 known, 1 held now",
        "agrees with the authority",
    ]);
    let tinted = site.tenure(&["doctor", "--color", "always"]).ended(0);
    assert!(tinted.out.contains("\u{1b}[32mok\u{1b}[0m"), "{tinted:?}");
    let narrow = site.command(&["doctor"]).env("COLUMNS", "70").output().unwrap();
    let narrow = String::from_utf8(narrow.stdout).unwrap();
    assert!(narrow.lines().all(|line| line.chars().count() <= 70), "{narrow}");
    // A receiver that is restored from a copy, a ttl above what is allowed, and a receiver that was never there.
    let bad = site.path("bad.toml");
    std::fs::write(&bad, "ttl = \"48h\"").unwrap();
    let said = site.tenure(&["doctor", "--config", bad.to_str().unwrap(), "--sink", "file:nowhere"]).ended(1);
    said.with(&["fail     ttl", "fail     receiver", "file:nowhere", "bad.toml is used"]);
    drop(lease);
}

#[test]
fn the_doctor_makes_no_authority_where_none_is() {
    let site = Site::new();
    let url = format!("sqlite:{}?create=true", site.path("none.db").display());
    let said = site.tenure(&["doctor", "--authority", &url]).ended(1);
    said.with(&["fail     authority", "there is no store", "named by --authority", "`tenure run` makes it"]);
    assert!(!site.path("none.db").exists());
}
