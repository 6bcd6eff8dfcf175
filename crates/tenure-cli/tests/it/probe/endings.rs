//! What a probe leaves behind: nothing that is stopped, and nothing that runs.

use super::{Scene, script, stderr};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

/// The processes whose command line or environment names the folder of a scene, but for the probe itself.
fn left(scene: &Scene, probe: u32) -> Vec<String> {
    let folder = scene.folder.path().to_str().unwrap();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read =
            |name| String::from_utf8_lossy(&std::fs::read(entry.path().join(name)).unwrap_or_default()).into_owned();
        if read("environ").contains(folder) && entry.file_name() != *probe.to_string() {
            found.push(format!("{}: {}", read("cmdline").replace('\0', " "), read("stat")));
        }
    }
    found
}

/// Polls until nothing is left, for at most ten seconds.
#[track_caller]
fn nothing_is_left(scene: &Scene, probe: u32) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    for _ in 0..1_000 {
        if left(scene, probe).is_empty() {
            return;
        }
        let _ = never.recv_timeout(Duration::from_millis(10));
    }
    assert_eq!(left(scene, probe), Vec::<String>::new());
}

const THEIRS: &str = "sqlite:theirs.db?create=true";

/// A probe that stands where A is stopped and B runs without an end.
fn under_way(scene: &Scene) -> (Child, impl Sized) {
    let script = "echo ready; [ $TENURE_PROBE_WORKER = A ] && { setsid sleep 600 & sleep 600; exit; }
        echo B runs; sleep 600";
    let words = ["--pause-on", "ready", "--read", "true", "--resource", "job", "--authority", THEIRS];
    let mut probe =
        scene.probe(&words, &["sh", "-c", script]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(probe.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("B runs")));
    let stopped = left(scene, probe.id()).iter().filter(|stat| stat.contains(") T ")).count();
    assert!(stopped >= 2, "A and the holder of its lease stand still: {:#?}", left(scene, probe.id()));
    (probe, lines)
}

fn signal(process: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(process), signal).unwrap();
}

#[test]
fn a_probe_that_is_interrupted_leaves_nothing_behind() {
    for (number, name) in [(2, rustix::process::Signal::INT), (15, rustix::process::Signal::TERM)] {
        let scene = Scene::new();
        let (mut probe, _listener) = under_way(&scene);
        signal(&probe, name);
        assert_eq!(probe.wait().unwrap().code(), Some(128 + number));
        let show = format!("'{}' show job --json --authority sqlite:theirs.db", env!("CARGO_BIN_EXE_tenure"));
        let shown: serde_json::Value = serde_json::from_slice(&scene.shell(&show).output().unwrap().stdout).unwrap();
        assert_eq!((&shown["state"], &shown["epoch"]), (&"free".into(), &2.into()), "B's lease was given up: {shown}");
        // Not a moment later: the probe waits for all of them before it ends.
        assert_eq!(left(&scene, 0), Vec::<String>::new());
    }
}

#[test]
fn a_probe_that_is_killed_leaves_nothing_stopped() {
    let scene = Scene::new();
    let (mut probe, _listener) = under_way(&scene);
    signal(&probe, rustix::process::Signal::KILL);
    probe.wait().unwrap();
    nothing_is_left(&scene, 0);
}

#[test]
fn a_worker_that_comes_to_no_end_is_ended_with_all_that_it_has_started() {
    let scene = Scene::new();
    scene.write("out", "old");
    let words = ["--timeout", "700ms", "--pause-on", "ready", "--read", "cat out"];

    let judged = scene.judge_shell(&words, "sleep 600");
    judged.expect("undecided", 2).because("A never reached the marker: ended by the probe after 700 ms");

    let judged = scene.judge_shell(&words, "READY; [ $TENURE_PROBE_WORKER = A ] || sleep 600");
    judged.expect("undecided", 2).because("B did not succeed (ended by the probe after 700 ms)");

    let script = "READY; [ $TENURE_PROBE_WORKER = B ] && { echo B >out; exit; }; setsid sleep 600 &";
    let judged = scene.judge_shell(&words, script);
    judged.expect("undecided", 2).because("A did not end after it was woken").because("sleep (");
    nothing_is_left(&scene, 0);
}

#[test]
fn a_command_line_that_makes_no_sense_starts_nothing() {
    let scene = Scene::new();
    let mark = ["touch", "started"];
    let wrong: [(&[&str], &str); 7] = [
        (&["--read", "no-such-program"], "--read: \"no-such-program\" cannot be run"),
        (&["--read", "true", "--pause-on", "("], "regex parse error"),
        (&["--read", "true", "--pause-after", "90s"], "--pause-after must be shorter than --timeout"),
        (&["--read", "true", "--control", "never"], "give --tried or --refusals"),
        (&["--read", "true", "--no-lease", "--ttl", "1s"], "cannot be used with"),
        (&["--read", "true", "--resource", "r", "--sink", "file:f?create=true"], "give --authority as well"),
        (&["--read", "true", "--sink", "file:nowhere"], "nowhere"),
    ];
    for (words, why) in wrong {
        let output = scene.probe(words, &mark).output().unwrap();
        let told = stderr(&output);
        assert!(matches!(output.status.code(), Some(64 | 69)), "{words:?}: {told}");
        assert!(told.contains(why) && output.stdout.is_empty(), "{words:?}: {told}");
        assert!(!scene.path("started").exists(), "{words:?}");
    }
    let output = scene.probe(&["--read", "true"], &["no-such-worker"]).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("the worker \"no-such-worker\" cannot be started"), "{}", stderr(&output));
    nothing_is_left(&scene, 0);
}

#[test]
fn an_authority_that_others_use_is_asked_only_when_it_is_named() {
    let scene = Scene::new();
    let words = ["--pause-on", "ready", "--read", "cat out"];
    let text = script("READY; echo $TENURE_PROBE_WORKER >out");
    let worker = ["sh", "-c", &text];
    let status = scene.probe(&words, &worker).env("TENURE_AUTHORITY", THEIRS).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(!scene.path("theirs.db").exists());
    let words = [&words[..], &["--authority", THEIRS, "--resource", "job"]].concat();
    let judged = scene.judge(&words, &worker);
    judged.expect("fail", 1);
    assert!(scene.path("theirs.db").exists());
    assert_eq!(judged.round()["authority"]["resource"], "job");
}

#[test]
fn a_worker_learns_of_its_own_lease_and_of_no_outer_one() {
    let scene = Scene::new();
    let text = script("READY; env | grep ^TENURE_ | sort >env.$TENURE_PROBE_WORKER");
    let worker = ["sh", "-c", &text];
    let words = ["--pause-on", "ready", "--read", "true"];
    let run = |extra: &[&str]| {
        let words = [extra, &words[..]].concat();
        let output = scene.probe(&words, &worker).env("TENURE_TOKEN", "outer@1:0").env("TENURE_EPOCH", "1").output();
        assert_eq!(output.unwrap().status.code(), Some(2));
        let names = |text: String| text.lines().map(|line| line.split('=').next().unwrap().to_owned()).collect();
        let env = std::fs::read_to_string(scene.path("env.B")).unwrap();
        (names(env.clone()), env)
    };
    let (names, _): (Vec<String>, String) = run(&["--no-lease"]);
    assert_eq!(names, ["TENURE_PROBE_WORKER"]);
    let (names, env) = run(&[]);
    let told =
        ["AUTHORITY", "EPOCH", "OWNER", "PROBE_WORKER", "RESOURCE", "TOKEN"].map(|name| format!("TENURE_{name}"));
    assert_eq!(names, told);
    assert!(env.contains("TENURE_EPOCH=2") && env.contains("@2:") && env.contains("TENURE_OWNER=probe-B@"), "{env}");
}
