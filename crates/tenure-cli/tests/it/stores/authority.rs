//! Holding, looking, stepping in.

use super::{Kind, on_every_store};
use crate::run::{Running, account};
use crate::site::{Site, hold};
use serde_json::Value;
use std::time::Duration;
use tenure::blocking::wait_for;
use tenure::core::record::Event;
use tenure_servers::{Redis, Sentinels};

const JOB: &str = "nightly";

on_every_store!(
    a_run_holds_checks_and_puts,
    a_holder_is_shown_to_everybody,
    a_takeover_ends_the_command_and_its_writes,
    what_is_over_is_given_up_retired_and_opened_again,
    a_probe_waits_for_the_end_of_a_lease,
);

fn events(site: &Site) -> Vec<Event> {
    site.history().into_iter().filter(|row| row.resource.is_some()).map(|row| row.event).collect()
}

fn a_run_holds_checks_and_puts(kind: Kind) {
    let site = kind.site();
    let out = site.files("out");
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let job = format!("env; {tenure} check || exit; echo content | {tenure} put --sink {out}");
    let said = site.tenure(&["run", "--resource", JOB, "--sink", &out, "--json", "--", "sh", "-c", &job]).ended(0);
    let said = said.with(&["owned: nightly, epoch 1", "written"]);
    // The whole address, but it makes no store where this one is gone.
    assert!(said.out.lines().any(|line| line == format!("TENURE_AUTHORITY={}", site.authority())), "{said:#?}");
    let account = account(&said);
    assert_eq!((&account["outcome"], &account["release"]), (&"exited".into(), &"released".into()));
    assert_eq!(std::fs::read_to_string(site.path("out/nightly")).unwrap(), "content\n");
    let again = site.tenure(&["run", "--resource", JOB, "--sink", &out, "--", "sh", "-c", "echo $TENURE_EPOCH"]);
    assert_eq!(again.ended(0).out, "2\n");
    let once = [Event::Granted, Event::Bound, Event::Sealed, Event::Announced, Event::Released];
    let all = events(&site);
    for event in once {
        assert!(all.contains(&event), "{event:?} is not in {all:?}");
    }
}

fn a_holder_is_shown_to_everybody(kind: Kind) {
    let site = kind.site();
    let worker = site.worker("alice@db3/4711");
    let lease = hold(&worker, JOB, &[]);
    let refused = site.tenure(&["run", "--resource", JOB, "--wait", "0s", "--json", "--", "true"]).ended(75);
    let refused = refused.with(&["nightly is held by alice@db3, pid 4711 there", "under epoch 1", "left unless"]);
    let told: Vec<Value> = vec![
        account(&refused)["holder"].clone(),
        site.tenure(&["ls", "--json"]).ended(0).whole_json()["resources"][0]["holder"].clone(),
        site.tenure(&["show", JOB, "--json"]).ended(0).json()["holder"].clone(),
        site.inside(lease.token(), &["check", "--json"]).ended(0).json()["holder"].clone(),
    ];
    for holder in &told {
        assert_eq!((&holder["owner"], &holder["epoch"]), (&"alice@db3/4711".into(), &1.into()), "{holder}");
        let left = holder["remaining_ms"].as_u64().unwrap();
        assert!((100_000..=120_000).contains(&left), "{holder}");
        assert_eq!(holder["remaining_at_most"], !kind.tells_what_is_left(), "{holder}");
        assert!(holder["held_for_ms"].as_u64().is_some_and(|held| held < 60_000), "{holder}");
    }
    let (ls, show) = (site.tenure(&["ls"]).ended(0), site.tenure(&["show", JOB]).ended(0));
    if kind.tells_what_is_left() {
        assert!(!ls.out.contains('≤') && show.out.contains(" of 2 min 0 s"), "{ls:#?} {show:#?}");
    } else {
        assert!(ls.out.contains("≤ ") && show.out.contains("at most "), "{ls:#?} {show:#?}");
    }
    site.tenure(&["history", JOB]).ended(0).with(&["granted", "alice@db3/4711"]);
    let listed = site.tenure(&["history", "--json"]).ended(0);
    assert!(listed.out.lines().count() >= 2, "{listed:#?}");
    // An address names what a command sees, whether by an option or by the environment.
    let mut command = site.command(&["ls", "--authority", &site.authority(), "--json"]);
    let output = command.env_remove("TENURE_AUTHORITY").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("alice@db3/4711"));
}

fn a_takeover_ends_the_command_and_its_writes(kind: Kind) {
    let site = kind.site();
    let out = site.files("out");
    let script = "echo token $TENURE_TOKEN; while :; do sleep 0.05; done";
    let args = ["run", "--resource", JOB, "--sink", &out, "--ttl", "3s", "--json", "--", "sh", "-c", script];
    let mut run = Running::start(site.command(&args));
    let token = run.hear("token ");
    site.inside(&token, &["check"]).ended(0);
    site.tenure(&["takeover", JOB, "--reason", "it hangs", "--if-epoch", "1"])
        .ended(0)
        .with(&["Taken from", "epoch 1"]);
    site.inside(&token, &["check"]).ended(76).with(&["it hangs"]);
    assert_eq!(account(&run.end().ended(76))["lost"], "revoked");
    let worker = site.worker("bob");
    let next = hold(&worker, JOB, &[&out]);
    assert_eq!(next.token().epoch.get(), 2);
    site.fed(&token, b"late", &["put", "--sink", &out]).ended(76).with(&["stale"]);
    site.tenure(&["release", "--token", &token]).ended(76).with(&["bob", "under epoch 2"]);
    site.tenure(&["sinks", JOB, "ls"]).ended(0).with(&["sealed", "has epoch 2, as the authority"]);
}

fn what_is_over_is_given_up_retired_and_opened_again(kind: Kind) {
    let site = kind.site();
    let out = site.files("out");
    let worker = site.worker("alice");
    let lease = hold(&worker, JOB, &[&out]);
    let token = lease.token().clone();
    site.tenure(&["retire", JOB]).ended(75).with(&["alice"]);
    for _ in 0..2 {
        site.inside(&token, &["release"]).ended(0);
    }
    site.tenure(&["retire", JOB]).ended(0).with(&["Gone: nightly"]);
    site.tenure(&["show", JOB]).ended(0).with(&["retired", "A new grant begins above epoch 1"]);
    site.fed(&token, b"late", &["put", "--sink", &out]).ended(76).with(&["stale"]);
    let other = site.worker("bob");
    let lease = hold(&other, JOB, &[&out]);
    assert_eq!(lease.token().epoch.get(), 2);
    lease.complete("version 12").unwrap();
    site.tenure(&["run", "--resource", JOB, "--", "true"]).ended(75).with(&["bob", "has completed"]);
    site.tenure(&["reopen", JOB, "--reason", "corrected"]).ended(0).with(&["Open again"]);
    site.tenure(&["run", "--resource", JOB, "--sink", &out, "--", "true"]).ended(0);
    let read = wait_for(worker.authority().inspect(&token.resource)).unwrap();
    assert_eq!(read.view.lease.unwrap().epoch.get(), 3);
}

/// A's lease is left to expire, in the store's own time; its late write meets a sealed receiver.
fn a_probe_waits_for_the_end_of_a_lease(kind: Kind) {
    let site = kind.site();
    let out = site.files("out");
    let tenure = env!("CARGO_BIN_EXE_tenure");
    let worker =
        format!("echo ready; sleep 0.2; echo $TENURE_PROBE_WORKER > c; {tenure} put --sink {out} --name doc < c");
    let words = ["probe", "--authority", "--wait-ttl", "--ttl", "2s", "--sink", &out, "--pause-on", "^ready", "--json"];
    let said = site.tenure(&[&words[..], &["--read", "cat out/doc", "--", "sh", "-c", &worker]].concat()).ended(0);
    let judged = said.json();
    assert_eq!(
        (&judged["verdict"], &judged["lease"]["authority"]),
        (&"pass".into(), &site.authority().into()),
        "{judged}"
    );
    assert_eq!(judged["lease"]["ended_by"], "expiry");
}

#[test]
fn sentinels_lead_to_the_authority() {
    let redis = Redis::start();
    let sentinels = Sentinels::start(3, &redis, 2, Duration::from_secs(2), Duration::from_secs(10));
    let addresses: Vec<String> = sentinels.addrs().iter().map(ToString::to_string).collect();
    let site = Site::on(format!("redis+sentinel://{}/{}", addresses.join(","), Sentinels::NAME));
    let check = format!("{} check", env!("CARGO_BIN_EXE_tenure"));
    site.tenure(&["run", "--resource", JOB, "--", "sh", "-c", &check]).ended(0).with(&["owned: nightly, epoch 1"]);
    site.tenure(&["ls"]).ended(0).with(&["nightly", "free"]);
    site.tenure(&["doctor"]).ended(0).with(&["identity", "failover"]);
}
