//! What the command says of itself: help, manual, completions.
//!
//! After a text was changed: `INSTA_UPDATE=always cargo test -p tenure-cli --test it help`, and look at the difference.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn tenure(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    // Without a terminal the width comes from the environment.
    let output = command.args(args).env("COLUMNS", "100").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn help(verb: &[String]) -> String {
    let mut args: Vec<&str> = verb.iter().map(String::as_str).collect();
    args.push("--help");
    tenure(&args)
}

/// The verbs that a help text lists.
fn listed(help: &str) -> impl Iterator<Item = String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What a verb's line does not hold goes on further to the right.
    let names = commands.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help").map(str::to_owned)
}

/// All verbs with their help, and theirs: `[]` is the command itself.
pub(crate) fn all() -> Vec<(Vec<String>, String)> {
    let mut all = vec![(Vec::new(), help(&[]))];
    let mut at = 0;
    while let Some((verb, text)) = all.get(at) {
        let more: Vec<_> = listed(text).map(|name| [&verb[..], &[name]].concat()).collect();
        all.extend(more.into_iter().map(|verb| (verb.clone(), help_of(&verb))));
        at += 1;
    }
    all
}

/// A verb below another may stand behind that one's own arguments.
fn help_of(verb: &[String]) -> String {
    match verb {
        [outer, inner] if outer == "sinks" => tenure(&[outer, "nightly", inner, "--help"]),
        verb => help(verb),
    }
}

#[test]
fn help_is_as_it_was() {
    let all = all();
    assert!(all.iter().any(|(verb, _)| verb == &["run"]), "{all:?}");
    // All of them are looked at, however many differ.
    let mut differ = Vec::new();
    for (verb, text) in &all {
        let name = ["tenure".to_owned()].iter().chain(verb).cloned().collect::<Vec<_>>().join("-");
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.set_prepend_module_to_snapshot(false);
        settings.set_snapshot_path("help");
        let compare = || settings.bind(|| insta::assert_snapshot!(name.as_str(), text));
        let told = catch_unwind(AssertUnwindSafe(compare));
        if told.is_err() {
            differ.push(name);
        }
    }
    assert!(differ.is_empty(), "{differ:?}: see at the top of this file");
}

#[test]
fn every_verb_that_is_shown_has_help_and_no_line_is_too_wide() {
    for (verb, text) in all() {
        assert!(text.contains("Usage: tenure"), "{verb:?}: {text}");
        let wide = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{verb:?}");
    }
}

/// Reads a page as man does, with all warnings.
fn groff(path: &Path) -> Output {
    let groff = Command::new("groff").args(["-Tutf8", "-man", "-ww", "-P-cbou"]).arg(path).output();
    groff.expect("groff reads the manual: apt-get install --yes groff-base")
}

#[test]
fn the_manual_holds_every_verb_and_is_read_without_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tenure.1");
    std::fs::write(&path, tenure(&["man"])).unwrap();
    let read = groff(&path);
    assert_eq!(String::from_utf8_lossy(&read.stderr), "");
    let text = String::from_utf8(read.stdout).unwrap();
    let lines: BTreeSet<&str> = text.lines().collect();
    for (verb, _) in all().iter().filter(|(verb, _)| !verb.is_empty()) {
        assert!(lines.contains(format!("TENURE {}", verb.join(" ").to_uppercase()).as_str()), "{verb:?}: {text}");
    }
    for heading in ["NAME", "AUTHORITY", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
        assert!(lines.contains(heading), "{heading}: {text}");
    }
    assert!(
        lines.contains("       75  not now: somebody else holds the resource, or it was not acquired in time"),
        "{text}"
    );
    assert!(!text.contains("demo-worker"), "what is hidden stays so");
}

#[test]
fn each_verb_has_a_page_of_its_own_where_man_looks() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("share/man1");
    assert_eq!(tenure(&["man", "--dir", folder.to_str().unwrap()]), "");
    let written: BTreeSet<String> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let name = |verb: &[String]| [&["tenure".to_owned()], verb].concat().join("-") + ".1";
    assert_eq!(written, all().iter().map(|(verb, _)| name(verb)).collect());
    for page in &written {
        let read = groff(&folder.join(page));
        assert_eq!(String::from_utf8_lossy(&read.stderr), "", "{page}");
        assert!(String::from_utf8_lossy(&read.stdout).contains("SYNOPSIS\n       tenure"), "{page}");
    }
    // A file stands where the folder should be.
    let output =
        Command::new(env!("CARGO_BIN_EXE_tenure")).arg("man").arg("--dir").arg(folder.join("tenure.1")).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(70));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the pages cannot be written into"), "{output:?}");
}

/// What bash offers for the last of the words.
fn bash_offers(words: &[&str]) -> Vec<String> {
    // As bash itself calls it: the command, the word, the one before.
    let script = r#"
        source <("$TENURE" completions bash) || exit 1
        function_of=$(complete -p tenure | sed 's/.*-F \([^ ]*\).*/\1/')
        COMP_WORDS=(tenure "$@"); COMP_CWORD=$#
        "$function_of" tenure "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", script, "bash"]).args(words).env("TENURE", env!("CARGO_BIN_EXE_tenure"));
    let output = bash.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_and_their_options() {
    assert_eq!(bash_offers(&["ru"]), ["run"]);
    assert_eq!(bash_offers(&["demo", "--ke"]), ["--keep"]);
    assert_eq!(bash_offers(&["completions", "f"]), ["fish"]);
    assert_eq!(bash_offers(&["demo-w"]), [""; 1], "what is hidden stays so");
}

/// Shells that need not be here; where they are, they must be able to read their script.
#[test]
fn other_shells_read_their_scripts() {
    let dir = tempfile::tempdir().unwrap();
    for (shell, only_reads, holds) in [("zsh", "-n", "#compdef tenure"), ("fish", "-n", "complete -c tenure")] {
        let script = tenure(&["completions", shell]);
        assert!(script.contains(holds) && script.contains("run"), "{shell}: {script}");
        let path = dir.path().join(shell);
        std::fs::write(&path, script).unwrap();
        if let Ok(output) = Command::new(shell).arg(only_reads).arg(&path).output() {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// As in `tenure man | head -1`: an output that nobody reads to its end is no failure.
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    for args in [&["completions", "zsh"][..], &["man"], &["--help"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_tenure")).args(args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""), "{args:?}");
    }
}
