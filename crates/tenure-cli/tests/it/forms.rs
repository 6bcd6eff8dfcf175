//! What all verbs have in common: JSON for programs, a name in front of what is said aside, and no panic when nobody reads.

use crate::help;
use crate::site::{Said, Site, hold};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};
use tenure::blocking::{Lease, Tenure};

const JOB: &str = "nightly";

/// Where each verb has something to do. Each has its own resource, since some take the right away.
struct Scene {
    site: Site,
    out: String,
    book: String,
    token: String,
    _held: (Tenure, Vec<Lease>),
}

/// Where a verb's JSON stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Json {
    One,
    Lines,
    /// The last line of standard error.
    Aside,
}

impl Scene {
    fn new() -> Self {
        let site = Site::new();
        let (out, book) = (site.files("out"), crate::unknown::book(&site));
        let worker = site.worker("alice@db3/4711");
        let mut held = vec![hold(&worker, JOB, &[&out])];
        hold(&worker, "done", &[]).complete("7 files").unwrap();
        hold(&worker, "gone", &[]).release().unwrap();
        held.extend(["taken", "released", "left"].map(|resource| hold(&worker, resource, &[&out])));
        site.tenure(&["export", "archive.jsonl"]).ended(0);
        let token = held[0].token().to_string();
        Self { site, out, book, token, _held: (worker, held) }
    }

    /// Each verb that has `--json`, with its words and its exit status.
    fn verbs(&self) -> Vec<(&'static str, Vec<String>, i32, Json)> {
        let released = self._held.1.iter().find(|lease| lease.token().resource.as_str() == "released");
        let released = released.unwrap().token().to_string();
        let empty = format!("sqlite:{}?create=true", self.site.path("empty.db").display());
        let (out, book) = (self.out.as_str(), self.book.as_str());
        let folder = self.site.path("keys").display().to_string();
        let next = tenure::grant::KeyFolder::new(&folder).make().unwrap()[1].id.to_string();
        let because = ["--reason", "as a test"];
        let verbs: [(&str, Vec<&str>, i32, Json); 26] = [
            ("run", vec!["--resource", "fresh", "--", "true"], 0, Json::Aside),
            ("check", vec![], 0, Json::One),
            ("put", vec!["--sink", out], 0, Json::One),
            ("probe", vec!["--no-lease", "--pause-after", "1s", "--read", "true", "--", "true"], 2, Json::One),
            ("demo", vec![], 0, Json::One),
            ("demo receipts", vec!["demo", "receipts"], 0, Json::One),
            ("ls", vec![], 0, Json::One),
            ("show", vec![JOB], 0, Json::One),
            ("history", vec![], 0, Json::Lines),
            ("takeover", [&["taken"][..], &because].concat(), 0, Json::One),
            ("release", vec!["--token", &released], 0, Json::One),
            ("retire", vec!["gone"], 0, Json::One),
            ("reopen", [&["done"][..], &because].concat(), 0, Json::One),
            ("sinks ls", vec!["sinks", JOB, "ls"], 0, Json::One),
            ("sinks remove", [&["sinks", "left", "remove", out][..], &because].concat(), 0, Json::One),
            ("sinks reopen", [&["sinks", JOB, "reopen", out][..], &because].concat(), 0, Json::One),
            ("unknown ls", vec!["unknown", "ls", "--sink", book], 0, Json::One),
            ("unknown show", vec!["unknown", "show", "lost", "--sink", book], 0, Json::One),
            (
                "unknown resolve",
                [&["unknown", "resolve", "lost", "--sink", book, "--applied"][..], &because].concat(),
                0,
                Json::One,
            ),
            ("restore", vec!["--learn-only", "--learn-from", out], 0, Json::One),
            ("keys make", vec!["keys", "make", "--keys", &folder], 0, Json::One),
            ("keys remove", vec!["keys", "remove", &next, "--keys", &folder], 0, Json::One),
            ("keys rotate", vec!["keys", "rotate", "--keys", &folder], 0, Json::One),
            ("doctor", vec![], 0, Json::One),
            ("import", vec!["archive.jsonl", "--authority", &empty], 0, Json::One),
            ("migrate", vec![], 0, Json::One),
        ];
        let verbs = verbs.into_iter().map(|(verb, words, code, json)| {
            let words = if verb.contains(' ') { words } else { [&[verb][..], &words].concat() };
            (verb, words.into_iter().map(str::to_owned).collect(), code, json)
        });
        verbs.collect()
    }

    fn command(&self, words: &[String], json: bool) -> Command {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        if json {
            let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
            words.insert(end, "--json");
        }
        let mut command = self.site.command(&words);
        command.env("TENURE_TOKEN", &self.token);
        command
    }
}

fn said(mut command: Command) -> Said {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Only one of them reads.
    let _ = child.stdin.take().unwrap().write_all(b"content");
    Said::of(child.wait_with_output().unwrap())
}

#[test]
fn every_verb_s_json_is_json_and_nothing_else() {
    let scene = Scene::new();
    let verbs = scene.verbs();
    let tried: BTreeSet<String> = verbs.iter().map(|(verb, ..)| (*verb).to_owned()).collect();
    let all = help::all().into_iter().filter(|(_, text)| text.contains("--json\n"));
    assert_eq!(tried, all.map(|(verb, _)| verb.join(" ")).collect(), "all that have it are tried");
    for (verb, words, code, json) in verbs {
        let said = said(scene.command(&words, true)).ended(code);
        let lines: Vec<&str> = match json {
            Json::Aside => said.err.lines().last().into_iter().collect(),
            Json::One | Json::Lines => vec![said.out.as_str()],
        };
        let lines = if json == Json::Lines { said.out.lines().collect() } else { lines };
        assert!(!lines.is_empty(), "{verb}: {said:#?}");
        for line in lines {
            let value: Result<serde_json::Value, _> = serde_json::from_str(line);
            assert!(value.as_ref().is_ok_and(serde_json::Value::is_object), "{verb}: {value:?} {said:#?}");
        }
    }
}

#[test]
fn what_a_verb_says_aside_begins_with_its_name() {
    let scene = Scene::new();
    for (verb, words, code, _) in scene.verbs() {
        let said = said(scene.command(&words, false)).ended(code);
        let name = format!("tenure {}: ", verb.split(' ').next().unwrap());
        // The narration of a probe is a table of its own.
        let lines = said.err.lines().filter(|_| verb != "probe");
        let others: Vec<&str> = lines.filter(|line| !line.starts_with(&name)).collect();
        assert_eq!(others, [""; 0], "{verb}");
        assert!(!said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'), "{verb}: no colours in a pipe");
    }
}

/// As in `tenure ... | head -0`, and as under a supervisor whose log is gone: the status is that of what was done.
#[test]
fn nobody_who_reads_is_no_failure_of_any_verb() {
    for json in [false, true] {
        for aside in [false, true] {
            let scene = Scene::new();
            for (verb, words, code, _) in scene.verbs() {
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                let mut command = scene.command(&words, json);
                if aside {
                    command.stderr(writer).stdout(Stdio::null());
                } else {
                    command.stdout(writer).stderr(Stdio::null());
                }
                command.stdin(std::fs::File::open("/dev/null").unwrap());
                let status = command.status().unwrap();
                assert_eq!(status.code(), Some(code), "{verb}, json: {json}, aside: {aside}");
            }
        }
    }
}

#[test]
fn a_verb_that_is_none_names_the_nearest() {
    let site = Site::new();
    for (wrong, right) in [("shw", "show"), ("historry", "history"), ("lss", "ls"), ("completion", "<SHELL>")] {
        let said = site.tenure(&[wrong]).ended(64);
        assert!(said.err.contains(right) && said.out.is_empty(), "{said:#?}");
    }
    let said = site.tenure(&[]).ended(64);
    assert!(said.err.contains("Usage: tenure <COMMAND>") && said.err.contains("  takeover "), "{said:#?}");
}

/// Who reads one verb's JSON can read them all.
#[test]
fn every_verb_says_the_same_of_a_holder() {
    let scene = Scene::new();
    let site = &scene.site;
    let old = scene.token.replace("@1:", "@7:");
    let refused = site.tenure(&["run", "--json", "--resource", JOB, "--wait", "0s", "--", "true"]).ended(75);
    let refused: serde_json::Value = serde_json::from_str(refused.err.lines().last().unwrap()).unwrap();
    let told = [
        refused["holder"].clone(),
        site.tenure(&["ls", JOB, "--json"]).ended(0).whole_json()["resources"][0]["holder"].clone(),
        site.tenure(&["show", JOB, "--json"]).ended(0).json()["holder"].clone(),
        site.inside(&scene.token, &["check", "--json"]).ended(0).json()["holder"].clone(),
        site.inside(&old, &["check", "--json"]).ended(76).json()["holder"].clone(),
        site.inside(&old, &["release", "--json"]).ended(76).json()["holder"].clone(),
        site.tenure(&["takeover", JOB, "--if-epoch", "7", "--reason", "x", "--json"]).ended(1).json()["holder"].clone(),
        site.tenure(&["takeover", JOB, "--reason", "x", "--json"]).ended(0).json()["from"].clone(),
    ];
    let keys = |holder: &serde_json::Value| holder.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    for holder in &told {
        assert_eq!(keys(holder), keys(&told[0]));
        assert_eq!((&holder["owner"], &holder["place"]), (&"alice@db3/4711".into(), &"alice@db3".into()));
        assert_eq!((&holder["pid"], &holder["epoch"]), (&4711.into(), &1.into()));
        let [since, until] = ["since", "until"].map(|key| holder[key].as_str().unwrap());
        assert!(since < until && since.ends_with('Z'), "{holder}");
    }
}
