use crate::site::Site;
use std::process::Child;

/// Two runs of one unit at once, a hundred times: never are two commands alive. The commands see to it themselves, with a
/// folder that only one of them can make.
#[test]
fn a_hundred_runs_at_once_never_have_two_commands_alive() {
    let _alone = super::alone();
    let site = Site::new();
    let script = "mkdir alone || { echo two >> broken; exit 1; }; echo ran >> ran; sleep 0.01; rmdir alone";
    let args = ["run", "--resource", "r", "--wait", "5m", "--ttl", "60s", "--", "sh", "-c", script];
    let start = || site.command(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut runs: Vec<Child> = (0..100).map(|_| start()).collect();
    for run in &mut runs {
        assert!(run.wait().unwrap().success());
    }
    assert!(!site.path("broken").exists());
    assert_eq!(std::fs::read_to_string(site.path("ran")).unwrap().lines().count(), 100);
}
