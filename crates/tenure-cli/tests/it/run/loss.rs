use super::{Running, account, is_alive, pid, watchdog};
use crate::rig::until;
use crate::site::Site;
use rustix::process::{Pid, Signal, kill_process};

/// A member of the group that ignores the request to end, one that has left the group and ignores it as well, and a
/// command that ends when it is asked to.
const STUBBORN: &str = r#"
trap 'echo asked >> asked; exit 0' TERM
sh -c 'trap "" TERM; echo $$ > member; while :; do sleep 0.05; done' &
setsid sh -c 'trap "" TERM; (setsid sh -c "trap \"\" TERM; echo \$\$ > away; while :; do sleep 0.05; done") & wait' &
until [ -s member ] && [ -s away ]; do sleep 0.01; done
echo "up $$ $(cat member) $(cat away)"
while :; do sleep 0.05; done
"#;

struct Group {
    run: Running,
    all: Vec<Pid>,
}

/// Starts a run of the stubborn command, and waits until all of it is there.
fn stubborn(site: &Site, args: &[&str]) -> Group {
    let path = site.script("stubborn.sh", STUBBORN);
    let command = site.command(&[&["run", "--json", "--resource", "r"], args, &["--", "sh", &path]].concat());
    let mut run = Running::start(command);
    let all = run.hear("up ").split(' ').map(pid).collect();
    Group { run, all }
}

impl Group {
    #[track_caller]
    fn is_gone(&self) {
        until("the last process of the command is gone", || !self.all.iter().any(|pid| is_alive(*pid)));
    }
}

/// A process that starts everything again (GitLab runner, systemd) stops the wrapper, or the whole machine is short of
/// memory: consul's lock killed its child 90 s late, or not at all.
#[test]
fn a_run_that_is_stopped_loses_its_command_in_time() {
    let site = Site::new();
    let group = stubborn(&site, &["--ttl", "3s", "--on-loss", "echo $TENURE_LOSS $TENURE_RESOURCE >> hook"]);
    group.run.signal(Signal::STOP);
    // Not one of these needs the run: it does not run.
    group.is_gone();
    until("the command for a loss has run", || site.path("hook").exists());
    group.run.signal(Signal::CONT);
    let said = group.run.end().ended(76);
    let account = account(&said);
    assert_eq!((account["outcome"].as_str(), account["lost"].as_str()), (Some("lost"), Some("deadline-passed")));
    assert!(account["ended"]["before_deadline_us"].as_u64().is_some_and(|left| left > 0), "{account}");
    assert_eq!((&account["on_loss"], &account["release"]), (&0.into(), &"lost".into()));
    assert_eq!(std::fs::read_to_string(site.path("asked")).unwrap(), "asked\n", "asked once, then killed");
    assert_eq!(std::fs::read_to_string(site.path("hook")).unwrap(), "deadline-passed r\n", "run once");
    said.with(&["the right to write r (epoch 1) was lost"]);
}

/// A CI job is killed with SIGKILL, and the state stays as it was ("pending-upgrade", a lock of 32 days). The next run takes
/// over after the ttl, without any person; and nothing of the first one is left by then.
#[test]
fn a_run_that_is_killed_takes_its_command_with_it_and_the_next_one_takes_over() {
    let site = Site::new();
    let group = stubborn(&site, &["--ttl", "5s", "--on-loss", "echo $TENURE_LOSS > hook"]);
    group.run.signal(Signal::KILL);
    group.is_gone();
    // The shell makes the file before it writes it.
    let hook = || std::fs::read_to_string(site.path("hook")).is_ok_and(|said| said.ends_with('\n'));
    until("the command for a loss has run", hook);
    assert_eq!(std::fs::read_to_string(site.path("hook")).unwrap(), "run-gone\n");
    group.run.end().ended(137);
    let at_once = site.tenure(&["run", "--resource", "r", "--wait", "0s", "--json", "--", "true"]).ended(75);
    let at_once = at_once.with(&["is held by your predecessor", "which is not there any more", "free in"]);
    assert_eq!(account(&at_once)["holder"]["predecessor"], true);
    site.tenure(&["run", "--resource", "r", "--wait", "20s", "--", "true"]).ended(0);
}

/// Waiting for a dead one is in vain before its deadline, and certain after it.
#[test]
fn a_restart_does_not_wait_in_vain_for_its_predecessor() {
    let site = Site::new();
    let group = stubborn(&site, &["--ttl", "100s"]);
    group.run.signal(Signal::KILL);
    group.is_gone();
    group.run.end().ended(137);
    let said = site.tenure(&["run", "--resource", "r", "--wait", "5s", "--", "true"]).ended(75);
    said.with(&["held by your predecessor", "give --wait"]);
}

/// SIGKILL of everything: the watchdog cannot be asked, and the command goes with it all the same.
#[test]
fn a_killed_watchdog_takes_the_command_with_it() {
    let site = Site::new();
    let group = stubborn(&site, &["--ttl", "60s"]);
    let watchdog = watchdog(group.run.pid());
    kill_process(watchdog, Signal::KILL).unwrap();
    group.is_gone();
    let said = group.run.end().ended(76).with(&["the watchdog was killed"]);
    assert_eq!(account(&said)["release"], "released", "nothing writes any more, so nobody has to wait");
    site.tenure(&["run", "--resource", "r", "--wait", "0s", "--", "true"]).ended(0);
}

#[test]
fn the_run_and_the_watchdog_killed_together_leave_no_command() {
    let site = Site::new();
    // It ends with its folder, should nobody else end it.
    let path = site.script("plain.sh", "echo up $$; while [ -e $0 ]; do sleep 0.05; done");
    let mut run = Running::start(site.command(&["run", "--resource", "r", "--ttl", "60s", "--", "sh", &path]));
    let command = pid(&run.hear("up "));
    let watchdog = watchdog(run.pid());
    run.signal(Signal::STOP);
    kill_process(watchdog, Signal::KILL).unwrap();
    run.signal(Signal::KILL);
    until("the command is gone", || !is_alive(command));
    run.end().ended(137);
}

/// The operator's takeover is noticed with the next renewal.
#[test]
fn a_takeover_by_an_operator_ends_the_command() {
    let site = Site::new();
    let group = stubborn(&site, &["--ttl", "3s"]);
    site.tenure(&["takeover", "r", "--reason", "it hangs"]).ended(0);
    group.is_gone();
    let said = group.run.end().ended(76);
    assert_eq!(account(&said)["lost"], "revoked");
}

/// A hung job that renews for ever holds the resource for ever: 32 days without a backup.
#[test]
fn a_hung_command_is_ended_after_max_hold_and_the_resource_is_free() {
    let site = Site::new();
    let group = stubborn(&site, &["--ttl", "60s", "--grace", "1s", "--max-hold", "1s"]);
    group.is_gone();
    let said = group.run.end().ended(76).with(&["--max-hold"]);
    assert_eq!((&account(&said)["lost"], &account(&said)["release"]), (&"max-hold".into(), &"released".into()));
    site.tenure(&["run", "--resource", "r", "--wait", "0s", "--", "true"]).ended(0);
}

#[test]
fn a_command_for_a_loss_that_fails_is_told() {
    let site = Site::new();
    let args = ["run", "--resource", "r", "--max-hold", "10ms", "--on-loss", "exit 9", "--", "sleep", "600"];
    site.tenure(&args).ended(76).with(&["the command for a loss ended with status 9"]);
}
