//! Workers that keep all tenants in step.

use crate::site::{Kind, LEASE, Said, Site};
use serde_json::Value;
use std::process::{Child, Stdio};
use tenure_servers::eventually;
use vector_sync::point::KILL;

const TENANTS: [&str; 3] = ["acme", "blue", "corp"];

fn watch(site: &Site, environment: &[(&str, &str)]) -> Child {
    let sources = site.path().join("documents").display().to_string();
    let words = ["watch", "--json", "--sources", &sources, "--every", "100ms", "--ttl", LEASE];
    let mut command = site.command(&words);
    command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Ends it as a service manager does.
fn end(child: Child) -> Said {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    Said::of(child.wait_with_output().unwrap())
}

fn has_version(site: &Site, tenant: &str, version: u64) -> Option<Value> {
    let standing = site.standing(tenant);
    (standing["live"]["version"].as_u64() >= Some(version)).then_some(standing)
}

/// The story: the nightly build ran on every node of the cluster at once, and published what the slowest of them had read.
#[test]
fn of_several_watchers_one_publishes_each_change() {
    let site = Site::new(Kind::Sqlite);
    TENANTS.iter().for_each(|tenant| site.edition(tenant, "first"));
    let watchers = [watch(&site, &[]), watch(&site, &[])];
    for tenant in TENANTS {
        eventually("the first version", || has_version(&site, tenant, 1));
    }
    site.edition("blue", "second");
    let blue = eventually("the second version", || {
        let standing = has_version(&site, "blue", 2)?;
        // Files are written one by one: what is published last is of all of them.
        let found = site.search("blue", "edition second page 19");
        let is_there = found["hits"][0]["text"].as_str().unwrap().contains("Edition second, page 19");
        // A round that is ended before it is at its end is in nobody's account.
        (is_there && standing["holder"].is_null() && standing["live"]["recorded"] == true).then_some(standing)
    });
    let said = watchers.map(end);
    let mut published = 0;
    for said in &said {
        assert_eq!(said.status, 0, "{said:?}");
        let account: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
        published += account["rounds"]["published"].as_u64().unwrap_or(0);
        assert_eq!(account["losses"], serde_json::json!({}), "{said:?}");
        assert_eq!(account["rounds"].get("failed"), None, "{said:?}");
    }
    let moves: usize = TENANTS.iter().map(|tenant| site.standing(tenant)["moves"].as_array().unwrap().len()).sum();
    assert_eq!(published, moves as u64, "each version was published by one of them: {said:?}");
    for tenant in ["acme", "corp"] {
        assert_eq!(site.standing(tenant)["live"]["version"], 1, "nothing has changed there");
    }
    assert_eq!(blue["tenant"], "blue");
}

/// The story: a worker died in the middle, and what it had built lay there for months, since nothing ever changed again.
#[test]
fn what_a_dead_worker_left_is_cleared_away_although_nothing_changes() {
    let site = Site::new(Kind::Sqlite);
    site.edition("acme", "first");
    site.round("acme");
    site.edition("acme", "second");
    let dead = watch(&site, &[(KILL, "written")]).wait_with_output().unwrap();
    assert_eq!(dead.status.code(), None, "{dead:?}");
    // Back to what is live: there is nothing to publish.
    site.edition("acme", "first");
    let left = site.standing("acme");
    assert_eq!(left["generations"].as_array().unwrap().len(), 2, "{left}");
    let watcher = watch(&site, &[]);
    let standing = eventually("the shadow is gone", || {
        let standing = site.standing("acme");
        (standing["generations"].as_array().unwrap().len() == 1).then_some(standing)
    });
    let said = end(watcher);
    assert_eq!(standing["live"]["version"], 1, "{standing}");
    assert!(said.out.contains("\"outcome\":\"unchanged\""), "{said:?}");
}

/// The story: a rejected snapshot, or an unchanged one, was looked at every few seconds by many workers, and each look took a
/// lease: the history grew by a million rows a day.
#[test]
fn a_look_at_what_has_not_changed_takes_no_lease() {
    let site = Site::new(Kind::Sqlite);
    site.edition("acme", "first");
    site.round("acme");
    let history = || site.done(&["status", "--json", "--tenant", "acme"]);
    let before: Value = serde_json::from_str(&history()).unwrap();
    let watcher = watch(&site, &[]);
    // Another tenant's version tells that the watcher has looked at all of them.
    site.edition("blue", "first");
    eventually("the other tenant's version", || has_version(&site, "blue", 1));
    end(watcher);
    site.edition("acme", "second");
    let next = site.round("acme");
    let epoch = before["live"]["epoch"].as_u64().unwrap();
    assert_eq!(next["epoch"], epoch + 1, "the next grant is the very next one: {next}");
}
