//! What an operator looks at: `ls`, `show`, `history`, `export`, `import`, on real stores.

mod following;
mod moving;
mod stage;

use crate::site::stderr;
use serde_json::Value;
use stage::{DAY, Stage, all_states, redacted};
use std::process::{Command, Stdio};

#[test]
fn ls_says_who_holds_what_and_for_how_long() {
    let stage = all_states();
    insta::assert_snapshot!("ls", redacted(&stage.shows(&["ls"])));
    insta::assert_snapshot!("ls_json", redacted(&stage.shows(&["ls", "--json"])));
}

#[test]
fn ls_lists_what_was_asked_for() {
    let stage = all_states();
    let names = |args: &[&str]| -> Vec<String> {
        let listed = stage.json(&[&["ls", "--json"], args].concat());
        let names = listed["resources"].as_array().unwrap().iter();
        names.map(|row| row["resource"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["free", "index/tenant-7", "index/tenant-8", "lost", "nightly", "old", "report"];
    assert_eq!(names(&[]), all);
    assert_eq!(names(&["index/"]), all[1..3]);
    assert_eq!(names(&["index/tenant-8"]), all[2..3]);
    assert_eq!(names(&["l"]), ["lost"]);
    assert_eq!(names(&["--held"]), ["index/tenant-7", "index/tenant-8", "nightly"]);
    assert_eq!(names(&["--expired"]), ["lost"]);
    // Whatever process of that place holds them, and only what is granted now.
    assert_eq!(names(&["--mine", "--owner", "alice@web1/99"]), ["index/tenant-7", "index/tenant-8"]);
    assert_eq!(names(&["--mine", "--owner", "carol@web3", "--expired"]), ["lost"]);
    assert_eq!(names(&["--mine", "--owner", "alice@web2"]), Vec::<String>::new());
}

#[test]
fn an_empty_list_says_so_and_is_an_empty_list() {
    let stage = Stage::new();
    for (args, said) in [
        (&["ls"][..], "tenure ls: no resource was ever granted at sqlite:"),
        (&["ls", "x", "--held"], "tenure ls: no resource is held whose name begins with \"x\" at sqlite:"),
        (&["ls", "--mine", "--owner", "me@here"], "tenure ls: no resource is granted to me@here at sqlite:"),
    ] {
        let output = stage.run(args);
        assert!(output.status.success() && output.stdout.is_empty(), "{args:?}");
        assert!(stderr(&output).starts_with(said), "{}", stderr(&output));
    }
    let output = stage.run(&["ls", "--json"]);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["resources"], Value::Array(Vec::new()));
    assert!(listed["now"].as_str().is_some_and(|now| now.starts_with("20")), "{listed}");
}

/// Prefixes at the edges of pages and of letters: a page is a thousand resources.
#[test]
fn ls_finds_every_name_of_a_prefix_among_many() {
    let stage = Stage::new();
    let alice = stage.worker(1, "alice@web1", DAY);
    for n in 0..1_205 {
        alice.acquire(&format!("many/{n:04}"), &[]);
    }
    for other in ["manx", "many", "manz", "many/\u{10ffff}", "中", "a"] {
        alice.acquire(other, &[]);
    }
    let count = |prefix: &str| stage.json(&["ls", prefix, "--json"])["resources"].as_array().unwrap().len();
    assert_eq!(
        [count(""), count("many"), count("many/"), count("many/1"), count("many/0")],
        [1_211, 1_207, 1_206, 205, 1_000]
    );
    assert_eq!([count("中"), count("a"), count("many/\u{10ffff}"), count("n")], [1, 1, 1, 0]);
    assert_eq!(stage.shows(&["ls", "many/"]).lines().count(), 1_207, "a line of titles, however many pages");
}

#[test]
fn show_tells_the_whole_story_of_a_resource() {
    let stage = all_states();
    for resource in ["index/tenant-7", "index/tenant-8", "lost", "nightly", "report", "old", "older", "free"] {
        let file = format!("show_{}", resource.replace('/', "_"));
        insta::assert_snapshot!(file, redacted(&stage.shows(&["show", resource])));
    }
    for resource in ["index/tenant-7", "lost", "older"] {
        let file = format!("show_{}_json", resource.replace('/', "_"));
        let object = stage.json(&["show", resource, "--json"]);
        let lines = object["history"].as_array().unwrap().iter().map(|row| format!("{row}\n"));
        let history: String = lines.collect();
        let mut rest = object.clone();
        rest["history"] = Value::Null;
        insta::assert_snapshot!(file, redacted(&format!("{rest}\n{history}")));
    }
}

/// "Who held epoch N, from when to when, and why did it end": also when nobody but a deadline ended it.
#[test]
fn the_story_says_how_each_epoch_ended() {
    let stage = all_states();
    let object = stage.json(&["show", "lost", "--json"]);
    let steps: Vec<_> = object["history"].as_array().unwrap().iter().collect();
    let events: Vec<_> = steps.iter().map(|row| row["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["granted", "ended", "granted"]);
    assert_eq!(steps[0]["actor"], "carol@web3/77");
    assert_eq!((&steps[1]["session"], &steps[1]["why"]), (&steps[0]["session"], &Value::from("its deadline passed")));
    assert_eq!(object["state"], "expired");
    let nightly = stage.json(&["show", "nightly", "--json"]);
    let revoked = &nightly["history"][1];
    assert_eq!((&revoked["event"], &revoked["epoch"]), (&"revoked".into(), &2.into()));
    assert_eq!(
        (&revoked["actor"], &revoked["why"]),
        (&"operator@desk".into(), &"its host was taken out of the rack".into())
    );
}

#[test]
fn show_knows_the_processes_of_this_host() {
    let stage = Stage::new();
    let host = rustix::system::uname().nodename().to_str().unwrap().to_owned();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    stage.worker(1, &format!("me@{host}/{}", std::process::id()), DAY).acquire("mine", &[]);
    stage.worker(2, &format!("me@{host}/{}", gone.id()), DAY).acquire("orphan", &[]);
    stage.worker(3, "me@far-away/1", DAY).acquire("far", &[]);
    let [mine, orphan, far] = ["mine", "orphan", "far"].map(|resource| stage.shows(&["show", resource]));
    assert!(mine.contains(&format!("me@{host}, pid {}, running\n", std::process::id())), "{mine}");
    assert!(orphan.contains(&format!("pid {}, not running any more", gone.id())), "{orphan}");
    assert!(orphan.contains("nobody renews it: free in 23 h 59 min. At once: tenure takeover orphan"), "{orphan}");
    assert!(far.contains("me@far-away, pid 1 there\n"), "{far}");
    let running = |resource| stage.json(&["show", resource, "--json"])["owner"]["running"].clone();
    assert_eq!(["mine", "orphan", "far"].map(running), [true.into(), false.into(), Value::Null]);
}

#[test]
fn a_resource_that_nobody_knows_has_neighbours() {
    let stage = all_states();
    let output = stage.run(&["show", "index/tenant-9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let said = "index/tenant-9 has never been granted here; near to it: index/tenant-7, index/tenant-8";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    let output = stage.run(&["show", "something else", "--json"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(stderr(&output).trim_end().ends_with("has never been granted here"), "{}", stderr(&output));
}

#[test]
fn history_is_oldest_first_and_may_be_cut() {
    let stage = all_states();
    insta::assert_snapshot!("history", redacted(&stage.shows(&["history"])));
    insta::assert_snapshot!("history_json", redacted(&stage.shows(&["history", "nightly", "--json"])));
    let numbers = |args: &[&str]| -> Vec<u64> {
        let lines = stage.shows(&[&["history", "--json"], args].concat());
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["number"].as_u64().unwrap()).collect()
    };
    let all = numbers(&[]);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    assert_eq!(numbers(&["--rows", "3"]), all[all.len() - 3..]);
    let nightly = numbers(&["nightly"]);
    assert_eq!(numbers(&["nightly", "-n", "2"]), nightly[nightly.len() - 2..]);
    let output = stage.run(&["history", "no such"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert_eq!(stderr(&output), "tenure history: the history has no row about no such\n");
}

#[test]
fn colours_come_only_when_they_are_wanted() {
    let stage = all_states();
    let colored = stage.shows(&["ls", "--color", "always"]);
    insta::assert_snapshot!("ls_color", redacted(&colored).replace('\u{1b}', "<esc>"));
    assert_eq!(
        anstream::adapter::strip_str(&stage.shows(&["show", "lost", "--color", "always"])).to_string().lines().next(),
        Some("lost  expired")
    );
    for args in [&["ls"][..], &["show", "lost"], &["history"]] {
        assert!(!stage.shows(args).contains('\u{1b}'), "{args:?}");
        let colored = stage.shows(&[args, &["--color", "always"]].concat());
        assert!(colored.contains("\u{1b}[31m"), "{args:?}: something was taken away or has expired");
    }
}

/// `COLUMNS` says how wide that is when no terminal does, and without it a hundred columns are.
#[test]
fn tables_fit_the_width() {
    let stage = all_states();
    for args in [&["ls"][..], &["history"], &["show", "index/tenant-8"], &["show", "nightly"]] {
        for width in [80, 100, 120] {
            let mut command = stage.command(args);
            match width {
                100 => command.env_remove("COLUMNS"),
                width => command.env("COLUMNS", width.to_string()),
            };
            let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
            // What to do next is a sentence, which a terminal wraps.
            let lines = text.lines().filter(|line| !line.contains("tenure "));
            let widest = lines.map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{args:?} at {width}: {widest:?}\n{text}");
        }
    }
}

/// Whoever may write a reason must not have the terminal of whoever reads it.
#[test]
fn a_reason_does_nothing_to_a_terminal() {
    let stage = Stage::new();
    stage.worker(1, "alice@web1", DAY).acquire("r", &[]);
    stage.revoke("r", "one\ntwo \u{1b}[2J\u{7}");
    for args in [&["show", "r"][..], &["history"], &["history", "--json"], &["show", "r", "--json"]] {
        let text = stage.shows(args);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{args:?}: {text:?}");
    }
    assert!(stage.shows(&["history"]).contains("one\\ntwo \\u{1b}[2J\\u{7}"), "{}", stage.shows(&["history"]));
}

/// `tenure ls | head -1`.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let stage = Stage::new();
    let alice = stage.worker(1, "alice@web1", DAY);
    for n in 0..1_500 {
        alice.acquire(&format!("a rather long name, so that a pipe is soon full: {n}"), &[]);
    }
    for args in [
        &["ls"][..],
        &["ls", "--json"],
        &["history"],
        &["history", "--json"],
        &["history", "--follow"],
        &["export"],
        &["show", "a rather long name, so that a pipe is soon full: 7"],
    ] {
        let mut child =
            stage.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()), "{args:?}");
    }
}
