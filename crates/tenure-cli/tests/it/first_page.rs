//! The five minutes of the first page, typed in order into one shell: what it prints is what the page shows.

use crate::site::{Site, undisturbed};
use regex::Regex;
use std::path::Path;
use std::process::Stdio;

const MARK: &str = "-- typed --";

/// The commands of a page's part, each with what it prints.
pub(crate) fn typed(part: &str) -> Vec<(String, String)> {
    let blocks = part.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let entries = blocks.flat_map(|block| block.split("$ ").skip(1));
    entries
        .map(|entry| {
            let (command, shown) = entry.split_once('\n').unwrap_or((entry, ""));
            (command.to_owned(), shown.trim_end().to_owned())
        })
        .collect()
}

/// The same text whoever runs it, whenever.
fn masked(text: &str) -> String {
    let masks = [
        (r"[\w.-]+@[\w.-]+/\d+", "WHO"),
        (r"[\w.-]+@[\w.-]+, pid \d+", "WHO"),
        (r"probe/[0-9a-f]+", "RESOURCE"),
        (r"@(\d+):[0-9a-f]{32}", "@$1:GRANT"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME"),
        (r"\d\d:\d\d:\d\d", "TIME"),
        (r"\d+(\.\d)? m?s\b", "SPAN"),
        // A run's own session and that of whoever waits come in either order.
        (r"(?m)^ +\d+  TIME", "N TIME"),
        // How many commands of the worker were under way when it was stopped.
        (r"SPAN, \d process(es)?", "STOPPED"),
        // Where a table wraps its lines depends on what is in them.
        (r"[\s-]+", " "),
    ];
    let mut text = text.to_owned();
    for (pattern, mask) in masks {
        text = Regex::new(pattern).unwrap().replace_all(&text, mask).into_owned();
    }
    text
}

#[test]
fn the_five_minutes_of_the_first_page_print_what_it_shows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("README.md")).unwrap();
    let part = page.split("\n## ").find(|part| part.starts_with("Five minutes")).unwrap();
    let typed = typed(part);
    let (built, rest) = typed.split_at(2);
    // The two that a test must not type: it runs what was built for it.
    assert_eq!(built[0].0, "cargo build --release");
    assert_eq!(built[1].0, r#"PATH="$PWD/target/release:$PATH""#);

    let site = Site::new();
    std::os::unix::fs::symlink(root.join("examples").canonicalize().unwrap(), site.path("examples")).unwrap();
    let mut script = "set -m\nexec 2>&1\n".to_owned();
    for (command, _) in rest {
        script += &format!("echo '{MARK}'\n{command}\n");
        if command.ends_with('&') {
            // A person takes a moment before the next one.
            script += "until tenure ls --held --json 2>/dev/null | grep -q tenant:42; do sleep 0.05; done\n";
        }
    }
    let mut shell = undisturbed("timeout");
    shell.args(["--kill-after=1s", "120s", "bash"]);
    let bin = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    shell.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    for (name, value) in site.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    // As a newcomer has it: nothing says where the authority is.
    shell.env_remove("TENURE_AUTHORITY").env_remove("COLUMNS").current_dir(site.path(""));
    let script = site.script("typed.sh", &script);
    let output = shell.arg(script).stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<&str> = printed.split(&format!("{MARK}\n")).skip(1).collect();
    assert_eq!(printed.len(), rest.len(), "{printed:#?}");
    for ((command, shown), printed) in rest.iter().zip(printed) {
        assert_eq!(masked(printed.trim_end()), masked(shown), "{command}\n{printed}");
    }
    assert!(site.path("sync.log").exists(), "the first run's command has worked before it was ended");
}
