//! The authority says nothing any more: packets are dropped, not refused. The command must be gone before the authority's
//! deadline, which nobody can ask for by then.

use super::{Running, account, is_alive, pid};
use crate::rig::distant::Distant;
use crate::rig::dropped::Dropped;
use crate::rig::held::Held;
use crate::rig::{Rig, until};
use crate::site::Site;
use crate::stores::Kind;
use rustix::process::Pid;
use std::time::Duration;
use tenure::blocking::wait_for;
use tenure::core::ResourceName;

/// How many tries; as many as `TENURE_DRILLS` says in a long run.
fn tries(usual: usize) -> usize {
    std::env::var("TENURE_DRILLS").ok().map_or(usual, |tries| tries.parse().expect("a number of tries"))
}

/// Runs at once in one silence.
const AT_ONCE: usize = 5;

/// A member of the group and one that has left it, both of which ignore the request to end.
const COMMAND: &str = r#"
sh -c 'trap "" TERM; echo $$ > "$0.member"; while :; do sleep 0.05; done' "$1" &
setsid sh -c 'trap "" TERM; echo $$ > "$0.away"; while :; do sleep 0.05; done' "$1" &
until [ -s "$1.member" ] && [ -s "$1.away" ]; do sleep 0.01; done
echo "up $$ $(cat "$1.member") $(cat "$1.away")"
trap "" TERM
while :; do sleep 0.05; done
"#;

/// One try of a few runs: how long before the authority's own deadline the last process of each was gone.
fn drill(rig: &mut dyn Rig, site: &Site, round: usize) -> Vec<Duration> {
    let path = site.script("stubborn.sh", COMMAND);
    let start = |number: usize| {
        let (resource, mark) = (format!("r{round}-{number}"), format!("mark{round}-{number}"));
        let url = rig.authority_url();
        let args =
            ["run", "--json", "--authority", &url, "--resource", &resource, "--ttl", "2s", "--", "sh", &path, &mark];
        let run = Running::start(rig.place(site.command(&args)));
        (resource, run)
    };
    let mut runs: Vec<_> = (0..AT_ONCE).map(start).collect();
    let groups: Vec<Vec<Pid>> = runs.iter_mut().map(|(_, run)| run.hear("up ").split(' ').map(pid).collect()).collect();
    rig.silence();
    let mut gone = [0_u64; AT_ONCE];
    until("every process of every command is gone", || {
        for (at, group) in gone.iter_mut().zip(&groups).filter(|(at, _)| **at == 0) {
            if !group.iter().any(|pid| is_alive(*pid)) {
                *at = rig.now();
            }
        }
        !gone.contains(&0)
    });
    // A renewal that is under way still must find its deadline passed: nothing but the past may count below.
    let latest = gone.iter().max().unwrap() + 2_000_000_000;
    until("every deadline has passed", || rig.now() > latest);
    rig.mend();
    let judged = runs.into_iter().zip(gone).map(|((resource, run), gone)| {
        let said = run.end().ended(76);
        assert!(account(&said)["ended"]["before_deadline_us"].as_u64().is_some(), "{said:#?}");
        let deadline = deadline(&rig.judges_url(), &resource);
        let left = deadline.checked_sub(gone);
        left.map(Duration::from_nanos).unwrap_or_else(|| panic!("{resource}: {} µs late", (gone - deadline) / 1000))
    });
    judged.collect()
}

/// The authority's own, as it stands in the store.
pub(super) fn deadline(url: &str, resource: &str) -> u64 {
    let reader = wait_for(tenure::Tenure::builder().owner("reader").connect(url)).unwrap();
    let read = wait_for(reader.authority().inspect(&ResourceName::new(resource).unwrap())).unwrap();
    read.view.holder.unwrap().deadline.as_nanos()
}

fn report(what: &str, mut margins: Vec<Duration>) {
    margins.sort();
    let (min, median, max) = (margins.first(), margins.get(margins.len() / 2), margins.last());
    println!(
        "{what}: {} of {} in time; before the deadline min {min:?} median {median:?} max {max:?}",
        margins.len(),
        margins.len()
    );
}

#[test]
fn the_last_process_is_gone_before_the_deadline_when_packets_are_dropped() {
    let _alone = super::alone();
    let (mut rig, site) = (Dropped::start(), Site::new());
    let rounds = tries(5).div_ceil(AT_ONCE);
    report("dropped packets", (0..rounds).flat_map(|round| drill(&mut rig, &site, round)).collect());
}

#[test]
fn the_last_process_is_gone_before_the_deadline_when_a_stopped_writer_holds_the_store() {
    let _alone = super::alone();
    let (mut rig, site) = (Held::start(), Site::new());
    report("a stopped writer", drill(&mut rig, &site, 0));
}

/// The same with a server behind the cable: connections stay open, and nothing comes back.
fn a_server_behind_the_cable(kind: Kind, port: u16) {
    let _alone = super::alone();
    let (mut rig, site) = (Distant::to(&kind.fresh().unwrap(), port), Site::new());
    // A quarter of the tries each: it is the same run in front of another store.
    let rounds = tries(5).min(25).div_ceil(AT_ONCE);
    let what = format!("{kind:?} behind dropped packets");
    report(&what, (0..rounds).flat_map(|round| drill(&mut rig, &site, round)).collect());
}

#[test]
fn the_last_process_is_gone_before_the_deadline_when_redis_is_behind_dropped_packets() {
    a_server_behind_the_cable(Kind::Redis, tenure_servers::Redis::shared().port());
}

#[test]
fn the_last_process_is_gone_before_the_deadline_when_postgres_is_behind_dropped_packets() {
    a_server_behind_the_cable(Kind::Postgres, tenure_servers::Postgres::shared().port());
}
