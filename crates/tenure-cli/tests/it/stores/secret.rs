//! A password in an address is never shown: not in what a verb says, and not among the words of a process.

use super::Kind;
use crate::rig::until;
use crate::run::{Running, children, pid, watchdog};
use crate::site::{Site, hold, made};
use rustix::process::Pid;
use tenure_servers::{Etcd, Postgres, Redis};

const SECRET: &str = "hunter2-s3cret";

/// A store behind a password.
struct Guarded {
    kind: Kind,
    site: Site,
    /// The server, if it is not the shared one.
    _server: Option<Box<dyn std::any::Any>>,
}

impl Guarded {
    fn start(kind: Kind) -> Self {
        let (url, server): (String, Option<Box<dyn std::any::Any>>) = match kind {
            Kind::Sqlite => unreachable!("a file has no password"),
            // The server trusts everybody here, and is told a password all the same.
            Kind::Postgres => {
                (Postgres::shared().database().replace("postgres@", &format!("postgres:{SECRET}@")), None)
            }
            Kind::Redis => {
                let redis = Redis::options().requirepass(SECRET).start();
                (redis.url(), Some(Box::new(redis)))
            }
            Kind::Etcd => {
                let etcd = Etcd::start();
                etcd.ctl(&["user", "add", &format!("root:{SECRET}")]);
                etcd.ctl(&["user", "grant-role", "root", "root"]);
                etcd.ctl(&["auth", "enable"]);
                (etcd.url().replace("etcd://", &format!("etcd://root:{SECRET}@")), Some(Box::new(etcd)))
            }
        };
        assert!(url.contains(SECRET), "{url}");
        Self { kind, site: Site::on(url), _server: server }
    }

    /// Runs a verb with the address in the environment, and looks through all that it says.
    #[track_caller]
    fn silent(&self, code: Option<i32>, args: &[&str]) {
        self.silent_on(&self.site.authority(), code, args);
    }

    #[track_caller]
    fn silent_on(&self, url: &str, code: Option<i32>, args: &[&str]) {
        let output = self.site.command(args).env("TENURE_AUTHORITY", url).output().unwrap();
        let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        if let Some(code) = code {
            assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        } else {
            assert_ne!(output.status.code(), Some(0), "{args:?}: {said}");
        }
        assert!(!said.contains(SECRET) && !said.contains("s3cret"), "{:?} {args:?}: {said}", self.kind);
    }
}

fn nothing_is_said(kind: Kind) {
    let guarded = Guarded::start(kind);
    let site = &guarded.site;
    let out = site.files("out");
    let worker = site.worker("alice");
    let lease = hold(&worker, "held", &[&out]);
    let token = lease.token().to_string();
    hold(&worker, "free", &[]).release().unwrap();
    hold(&worker, "done", &[]).complete("x").unwrap();
    for more in [&[][..], &["--json"]] {
        let verbs: &[(&[&str], i32)] = &[
            (&["run", "--resource", "held", "--wait", "0s"], 75),
            (&["run", "--resource", "free", "--sink", &out, "--freeze", "--on-loss", "true"], 0),
            (&["check", "--token", &token], 0),
            (&["ls"], 0),
            (&["show", "held"], 0),
            (&["history"], 0),
            (&["sinks", "held", "ls"], 0),
            (&["takeover", "free", "--reason", "x"], 1),
            (&["reopen", "held", "--reason", "x"], 1),
            (&["retire", "held"], 75),
            (&["doctor"], 0),
            (&["migrate"], 0),
            (&["demo", "--authority"], 0),
            (&["probe", "--authority", "--pause-after", "100ms", "--read", "true"], 2),
        ];
        for (verb, code) in verbs {
            let command: &[&str] = if matches!(verb[0], "run" | "probe") { &["--", "true"] } else { &[] };
            let json = if verb[0] == "history" && !more.is_empty() { &["--json"][..] } else { more };
            guarded.silent(Some(*code), &[verb, json, command].concat());
        }
    }
    guarded.silent(Some(0), &["export", "archive.jsonl"]);
    assert!(!std::fs::read_to_string(site.path("archive.jsonl")).unwrap().contains(SECRET));
    guarded.silent(Some(65), &["import", "archive.jsonl"]);
    guarded.silent(Some(0), &["--help"]);
    guarded.silent(Some(0), &["run", "--help"]);
    guarded.silent(Some(64), &["run", "--resource"]);
    // A file with a slip in it.
    site.script("broken.toml", &format!("authority = \"{}", site.authority()));
    guarded.silent(Some(64), &["ls", "--config", "broken.toml"]);

    // What does not work says why, and not with what.
    let wrong = |from: &str, to: &str| site.authority().replace(from, to);
    let nobody = site.authority().split_once("127.0.0.1:").map(|(before, _)| format!("{before}127.0.0.1:1")).unwrap();
    for url in [&nobody, &wrong("://", ":"), &wrong("://", "//"), &made(&format!("{}%zz", site.authority()))] {
        for verb in [&["ls"][..], &["doctor"], &["doctor", "--json"], &["migrate"], &["demo", "--authority"]] {
            guarded.silent_on(url, None, verb);
        }
        guarded.silent_on(url, None, &["run", "--resource", "r", "--wait", "0s", "--json", "--", "true"]);
        guarded.silent_on(url, None, &["check", "--token", &token, "--json"]);
    }
    if kind != Kind::Postgres {
        // Another password than the server's.
        let refused = wrong(SECRET, "not-the-s3cret");
        guarded.silent_on(&refused, None, &["ls"]);
        guarded.silent_on(&refused, None, &["doctor"]);
    }
}

#[test]
fn postgres_nothing_is_said() {
    nothing_is_said(Kind::Postgres);
}

#[test]
fn redis_nothing_is_said() {
    nothing_is_said(Kind::Redis);
}

#[test]
fn etcd_nothing_is_said() {
    nothing_is_said(Kind::Etcd);
}

/// The words of a process, as everybody on the machine reads them.
fn words(pid: Pid) -> String {
    let words = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// This process's and those of all below it.
fn all_words(pid: Pid) -> Vec<String> {
    let mut all = vec![words(pid)];
    all.extend(children(pid).into_iter().flat_map(all_words));
    all
}

#[test]
fn no_process_of_a_run_has_it_among_its_words() {
    let guarded = Guarded::start(Kind::Redis);
    let mut run =
        Running::start(guarded.site.command(&["run", "--resource", "r", "--", "sh", "-c", "echo up $$; sleep 60"]));
    let command = pid(&run.hear("up "));
    let (watchdog, all) = (watchdog(run.pid()), all_words(run.pid()));
    assert!(all.iter().any(|words| words.contains("run-watchdog")) && all.len() >= 3, "{all:?}");
    assert!(!all.concat().contains(SECRET) && !words(watchdog).contains(SECRET), "{all:?}");
    rustix::process::kill_process(command, rustix::process::Signal::TERM).unwrap();
    run.end().ended(143);
}

#[test]
fn no_process_of_a_probe_has_it_among_its_words() {
    let guarded = Guarded::start(Kind::Redis);
    let script = "echo ready; sleep 60";
    let args =
        ["probe", "--authority", "--pause-on", "never", "--timeout", "60s", "--read", "true", "--", "sh", "-c", script];
    let probe = Running::start(guarded.site.command(&args));
    let mut all = Vec::new();
    until("the probe's holder and worker are there", || {
        all = all_words(probe.pid());
        all.iter().any(|words| words.contains("probe-holder")) && all.iter().any(|words| words.contains("sleep 60"))
    });
    assert!(!all.concat().contains(SECRET), "{all:?}");
    probe.signal(rustix::process::Signal::INT);
    probe.end();
}
