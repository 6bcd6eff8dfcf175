//! In a terminal: the command has the keyboard, and gives it back.

use crate::site::{Site, hold, undisturbed};
use std::io::Write;
use std::process::Stdio;

/// Types into a terminal of its own, in which `command` runs, and returns what appeared there. Each piece is typed when the
/// text before it has appeared.
#[track_caller]
fn typed(site: &Site, command: &str, pieces: &[(&str, &str)]) -> String {
    typed_with(site, command, pieces, |_| {})
}

/// The same, with something that is done when a text has appeared, before its piece is typed.
#[track_caller]
fn typed_with(site: &Site, command: &str, pieces: &[(&str, &str)], mut meanwhile: impl FnMut(&str)) -> String {
    let plain = site.command(&[]);
    let mut terminal = undisturbed("script");
    // With a path, so that the commands inside find `tenure` by its name.
    let tenure = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", tenure.display(), std::env::var("PATH").unwrap());
    terminal.args(["-q", "-e", "-f", "-c", command, "/dev/null"]).current_dir(site.path("")).env("PATH", path);
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => terminal.env(name, value),
            None => terminal.env_remove(name),
        };
    }
    terminal.stdin(Stdio::piped());
    let mut run = super::Running::start(terminal);
    let mut keys = run.child.stdin.take().unwrap();
    for (appears, type_this) in pieces {
        run.see(appears);
        meanwhile(appears);
        keys.write_all(type_this.as_bytes()).unwrap();
        keys.flush().unwrap();
    }
    let said = run.end();
    drop(keys);
    format!("{}{}status {}", said.out, said.err, said.code)
}

#[test]
fn a_command_reads_from_the_keyboard() {
    let site = Site::new();
    let shown =
        typed(&site, r#"tenure run --resource r -- sh -c 'echo up; read word; echo "got $word"'"#, &[("up", "word\n")]);
    assert!(shown.contains("got word") && shown.ends_with("status 0"), "{shown}");
}

#[test]
fn the_interrupt_key_reaches_the_command_and_the_run_reports_it() {
    let site = Site::new();
    let shown = typed(&site, "tenure run --resource r -- sh -c 'echo up; exec sleep 600'", &[("up", "\u{3}")]);
    assert!(shown.ends_with("status 130"), "{shown}");
}

/// A script that asks before and after a run: the terminal comes back to it.
#[test]
fn the_terminal_comes_back_to_a_script_that_waits() {
    let site = Site::new();
    let text = r#"
tenure run --resource r -- sh -c 'echo first; read word; echo "got $word"'
echo second
read word
echo "then $word"
"#;
    let path = site.script("ask.sh", text);
    let shown = typed(&site, &format!("sh {path}"), &[("first", "one\n"), ("second", "two\n")]);
    assert!(shown.contains("got one") && shown.contains("then two") && shown.ends_with("status 0"), "{shown}");
}

/// The stop key stops the command and the run; the shell that goes on wakes both.
#[test]
fn the_stop_key_stops_both_and_fg_wakes_both() {
    let site = Site::new();
    let text = r#"
set -m
tenure run --resource r --ttl 60s -- sh -c 'echo up; read word; echo "got $word"'
echo stopped
fg >/dev/null
echo "end $?"
"#;
    let path = site.script("jobs.sh", text);
    let shown = typed(&site, &format!("bash {path}"), &[("up", "\u{1a}"), ("stopped", "back\n")]);
    assert!(shown.contains("got back") && shown.contains("end 0"), "{shown}");
}

/// A password prompt behind `| tee log`: the command has no keyboard, says nothing, and could not even be interrupted.
#[test]
fn a_command_that_waits_for_a_keyboard_it_does_not_have_can_be_interrupted() {
    let site = Site::new();
    // The second one is in the run's group, and needs the keyboard itself.
    let line = "tenure run --resource r -- sh -c 'echo up; read word' | cat";
    let text = format!("set -m\n{line}\n");
    let path = site.script("pipe.sh", &text);
    let shown = typed(&site, &format!("bash {path}"), &[("waits for the keyboard", "\u{3}")]);
    assert!(shown.ends_with("status 130"), "{shown}");
}

/// The interrupt key ends the script with the run in it, as it ends one without.
#[test]
fn the_interrupt_key_ends_the_script_around_the_run() {
    let site = Site::new();
    let text = "for turn in 1 2; do tenure run --resource r -- sh -c 'echo up $0; exec sleep 600' $turn; done\n";
    let path = site.script("loop.sh", text);
    let shown = typed(&site, &format!("bash {path}"), &[("up 1", "\u{3}")]);
    assert!(!shown.contains("up 2") && shown.ends_with("status 130"), "{shown}");
}

/// Where no shell waits that could wake them again, as in a container, the stop key stops nothing.
#[test]
fn without_a_shell_the_stop_key_stops_nothing() {
    let site = Site::new();
    let line = "exec tenure run --resource r -- sh -c 'echo up; read word; echo \"got $word\"'";
    let shown = typed(&site, line, &[("up", "\u{1a}word\n")]);
    assert!(shown.contains("got") && shown.ends_with("status 0"), "{shown}");
}

/// Somebody who watches sees that it waits, and for how long still.
#[test]
fn whoever_watches_sees_the_waiting() {
    let site = Site::new();
    let worker = site.worker("other");
    let lease = hold(&worker, "r", &[]);
    let shown = typed(&site, "tenure run --resource r --wait 2s -- true", &[]);
    assert!(shown.contains("waiting for r ") && shown.contains("at most 2 s"), "{shown}");
    assert!(shown.ends_with("status 75"), "{shown}");
    lease.release().unwrap();
}

/// A command that stands still has no use for the keyboard; whoever sits there may want to end it.
#[test]
fn the_interrupt_key_ends_a_run_whose_command_stands_still() {
    let site = Site::new();
    let text = "tenure run --freeze --resource r --ttl 2s -- sh -c 'echo up; while :; do sleep 0.05; done'\n";
    let path = site.script("frozen.sh", text);
    // Nobody answers, so that it stands still until somebody ends it.
    let holder = rusqlite::Connection::open(site.path("authority.db")).unwrap();
    let held = std::cell::Cell::new(false);
    let shown = typed_with(&site, &format!("sh {path}"), &[("up", ""), ("stands still", "\u{3}")], |_| {
        if !held.replace(true) {
            holder.execute_batch("BEGIN IMMEDIATE").unwrap();
        }
    });
    assert!(shown.ends_with("status 76") || shown.ends_with("status 130"), "{shown}");
}
