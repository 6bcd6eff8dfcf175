//! The programs that people copy from say what their page shows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROMPT: &str = "$ cargo run -q -p tenure --example ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What the page shows for each example.
fn page() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(root().join("examples/README.md")).unwrap();
    let blocks = text.split("```console\n").skip(1).map(|block| block.split_once("```").unwrap().0);
    blocks
        .map(|block| {
            let (command, output) = block.split_once('\n').unwrap();
            (command.strip_prefix(PROMPT).unwrap().to_owned(), output.to_owned())
        })
        .collect()
}

/// Each worker's lines in their order; how those of two workers lie between each other is chance. Ids and spans are, too.
fn by_worker(output: &str) -> BTreeMap<&str, Vec<String>> {
    let mut workers = BTreeMap::<_, Vec<_>>::new();
    for line in output.lines() {
        let (worker, said) = line.split_once(": ").unwrap_or(("", line));
        let words: Vec<_> = said.split(' ').collect();
        let masked = words.iter().enumerate().map(|(at, word)| {
            let is_span = word.parse::<f64>().is_ok()
                && words.get(at + 1).is_some_and(|unit| ["ms", "s"].contains(&unit.trim_end_matches(';')));
            let is_id = word.len() == 10 && word.starts_with('(') && word.ends_with(')');
            if is_span || is_id { "_" } else { word }
        });
        workers.entry(worker).or_default().push(masked.collect::<Vec<_>>().join(" "));
    }
    workers
}

/// Cargo itself finds and builds them, as for a reader: the tests' own build need not hold them.
fn run(example: &str, args: &[&str]) -> (Option<i32>, String) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--locked", "--package", "tenure", "--example", example, "--"]).args(args);
    let output = cargo.current_dir(root()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    (output.status.code(), text(&output.stdout))
}

#[test]
fn each_example_says_what_its_page_shows() {
    let page = page();
    let files = std::fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    // A program of several files has a folder.
    let mut names: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|kind| kind == "rs") || path.join("main.rs").exists())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, page.keys().cloned().collect::<Vec<_>>());
    for (name, shown) in &page {
        let (status, said) = run(name, &[]);
        assert_eq!((status, by_worker(&said)), (Some(0), by_worker(shown)), "{name} says now:\n{said}");
    }
}

#[test]
fn an_example_uses_the_authority_that_it_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}/authority.db?create=true", folder.path().display());
    let nightly = |night| run("cron-job", &[&url, night]);
    assert_eq!(nightly("1"), (Some(0), "cron: runs the job of 1 under epoch 1\ncron: completed: 3 pages\n".to_owned()));
    assert_eq!(nightly("1"), (Some(0), "cron: done already by cron: 3 pages\n".to_owned()));
    assert!(folder.path().join("authority.db").exists());
    // Held by somebody else: the status says so.
    let tenure = tenure::blocking::connect(&url).unwrap();
    let lease = tenure.acquire(tenure.wish("nightly-report/2")).unwrap();
    let (status, said) = nightly("2");
    assert_eq!(status, Some(75), "{said}");
    assert!(said.contains("held by ") && said.contains("under epoch 1"), "{said}");
    lease.release().unwrap();

    // What is completed there stays completed.
    for example in ["batch-worker", "backup"] {
        assert_eq!(run(example, &[&url]).0, Some(0));
        let (status, said) = run(example, &[&url]);
        assert_eq!(status, Some(0), "{said}");
        assert!(said.starts_with("first: ") && !said.contains("epoch"), "{said}");
    }
}
