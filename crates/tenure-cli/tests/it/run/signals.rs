use super::{Running, is_alive, pid};
use crate::rig::until;
use crate::site::Site;
use rustix::process::Signal;
use std::process::Command;

#[test]
fn signals_are_passed_on_to_the_commands_group() {
    let site = Site::new();
    let text = r#"
for name in HUP INT QUIT TERM USR1 USR2; do trap "echo got $name" $name; done
echo up
until [ -e go ]; do sleep 0.01; done
exit 5
"#;
    let path = site.script("traps.sh", text);
    let mut run = Running::start(site.command(&["run", "--resource", "r", "--", "sh", &path]));
    run.hear("up");
    for (signal, name) in [
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::TERM, "TERM"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
        run.signal(signal);
        run.hear(&format!("got {name}"));
    }
    std::fs::write(site.path("go"), "").unwrap();
    run.end().ended(5);
}

#[test]
fn an_interrupted_command_gives_the_resource_back() {
    let site = Site::new();
    let mut run = Running::start(site.command(&["run", "--resource", "r", "--", "sh", "-c", "echo up $$; sleep 600"]));
    let command = pid(&run.hear("up "));
    run.signal(Signal::INT);
    run.end().ended(130);
    assert!(!is_alive(command));
    site.tenure(&["run", "--resource", "r", "--wait", "0s", "--", "true"]).ended(0);
}

#[test]
fn whoever_is_interrupted_while_waiting_leaves_nothing_behind() {
    let site = Site::new();
    let text = "echo up; until [ -e go ]; do sleep 0.01; done";
    let mut first = Running::start(site.command(&["run", "--resource", "r", "--", "sh", "-c", text]));
    first.hear("up");
    let second = Running::start(site.command(&["run", "--resource", "r", "--wait", "1h", "--", "true"]));
    until("the second has asked", || site.history().iter().filter(|row| row.event.name() == "opened").count() == 2);
    second.signal(Signal::TERM);
    second.end().ended(143).with(&["interrupted while waiting; nothing was started"]);
    std::fs::write(site.path("go"), "").unwrap();
    first.end().ended(0);
    let granted = site.history().iter().filter(|row| row.event.name() == "granted").count();
    assert_eq!(granted, 1);
}

/// Under nohup a closed terminal ends neither the run nor its command; a handler of the run's would undo that.
#[test]
fn a_signal_that_the_caller_ignores_stays_ignored() {
    let site = Site::new();
    let run = site.command(&["run", "--resource", "r", "--", "grep", "SigIgn", "/proc/self/status"]);
    let mut nohup = Command::new("sh");
    // Without what gives it all signals back.
    nohup.arg("-c").arg(r#"trap "" HUP; exec "$0" "$@""#).args(run.get_args().skip(1));
    for (name, value) in run.get_envs() {
        match value {
            Some(value) => nohup.env(name, value),
            None => nohup.env_remove(name),
        };
    }
    let said = Running::start(nohup).end().ended(0);
    let mask = u64::from_str_radix(said.out.trim().trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert_eq!(mask & 1, 1, "{said:?}");
}
