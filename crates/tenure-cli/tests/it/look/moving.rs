use super::stage::{DAY, Stage, all_states, name, redacted};
use crate::site::stderr;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};
use tenure::authority::HistoryQuery;
use tenure::blocking::wait_for;
use tenure::core::decide::Keys;

/// The lines, without since when something is held: that is reckoned anew each time, and may differ by a millisecond.
fn lines(text: &str) -> Vec<Value> {
    let parsed = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(since) = line.get_mut("since") {
            assert!(since.as_str().is_some_and(|since| since.ends_with('Z')), "{since}");
            *since = Value::Null;
        }
        line
    });
    parsed.collect()
}

/// Imports a file into another store of the stage's folder.
fn import(stage: &Stage, file: &Path, into: &str, more: &[&str]) -> Output {
    let url = format!("sqlite:{}?create=true", stage.path(into).display());
    stage.run(&[&["import", file.to_str().unwrap(), "--authority", &url], more].concat())
}

fn exported(stage: &Stage, store: &str) -> String {
    let url = format!("sqlite:{}", stage.path(store).display());
    stage.shows(&["export", "--authority", &url])
}

#[test]
fn an_export_is_lines_of_a_known_form() {
    let stage = all_states();
    insta::assert_snapshot!("export", redacted(&stage.shows(&["export"])));
    let file = stage.path("archive.jsonl");
    std::fs::write(&file, "an older one").unwrap();
    stage.shows(&["export", "archive.jsonl"]);
    let (written, shown) = (std::fs::read_to_string(&file).unwrap(), stage.shows(&["export", "-"]));
    assert_eq!(lines(&written)[1..], lines(&shown)[1..], "only the time of the export differs");
    let left = std::fs::read_dir(stage.folder.path()).unwrap().count();
    assert_eq!(left, 5, "the archive, the store's three files and its witness");
    // A link stays one, and so does a device.
    std::os::unix::fs::symlink("archive.jsonl", stage.path("newest")).unwrap();
    std::fs::write(&file, "an older one").unwrap();
    stage.shows(&["export", "newest"]);
    assert_eq!(lines(&std::fs::read_to_string(&file).unwrap())[1..], lines(&shown)[1..]);
    assert!(stage.path("newest").is_symlink());
    assert_eq!(lines(&stage.shows(&["export", "/dev/stdout"]))[1..], lines(&shown)[1..]);
    let output = stage.run(&["export", "no/such/folder/archive.jsonl"]);
    assert_eq!(output.status.code(), Some(70));
    assert!(stderr(&output).contains("no/such/folder/archive.jsonl cannot be written"), "{}", stderr(&output));
}

/// What an import changes: nobody holds, nothing is registered, and there is one row more.
#[test]
fn what_was_imported_is_exported_again() {
    let stage = all_states();
    let first = lines(&stage.shows(&["export"]));
    std::fs::write(stage.path("a"), stage.shows(&["export"])).unwrap();
    let output = import(&stage, &stage.path("a"), "b.db", &["--json", "--owner", "mover@desk"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let second = lines(&exported(&stage, "b.db"));
    let kind = |lines: &[Value], kind: &str| -> Vec<Value> {
        lines.iter().filter(|line| line["kind"] == kind).cloned().collect()
    };
    let (rows, again) = (kind(&first, "row"), kind(&second, "row"));
    let (added, taken) = again.split_last().unwrap();
    assert_eq!(taken, rows, "number for number, time for time");
    assert_eq!((&added["event"], &added["actor"]), (&"quarantined".into(), &"mover@desk".into()));
    assert_eq!(added["why"], format!("imported from {}", first[0]["store"].as_str().unwrap()));
    let expected: Vec<_> = kind(&first, "resource")
        .into_iter()
        .map(|mut resource| {
            if resource["phase"] == "held" || resource["phase"] == "sealing" {
                resource["phase"] = "free".into();
            }
            for receiver in resource["receivers"].as_object_mut().unwrap().values_mut() {
                *receiver = json!({ "generation": null, "sealed": false });
            }
            resource
        })
        .collect();
    assert_eq!(kind(&second, "resource"), expected);
    let (before, after) = (&first[0], &second[0]);
    assert_eq!((&before["incarnation"], &after["incarnation"]), (&1.into(), &2.into()));
    assert_eq!((&after["floor"], &after["max_ttl_ms"]), (&before["floor"], &before["max_ttl_ms"]));
    assert_eq!(before["longest_live_ttl_ms"], 86_400_000);
    assert_eq!((&after["longest_live_ttl_ms"], after["quarantine_ms"].is_u64()), (&Value::Null, true));
    assert_ne!(before["store"], after["store"]);
    assert_eq!(
        told,
        json!({
            "store": after["store"], "from": before["store"], "incarnation": 2, "floor": before["floor"],
            "rows": rows.len(), "resources": expected.len(), "quarantine_ms": 86_400_000, "dry_run": false,
        })
    );
    // It is quarantined, and says so.
    let url = format!("sqlite:{}", stage.path("b.db").display());
    let shown = stage.shows(&["show", "index/tenant-7", "--authority", &url]);
    assert!(shown.contains("nothing is granted for 23 h 59 min more"), "{shown}");
}

/// A store that was moved twice is moved with what is left of its quarantine.
#[test]
fn a_quarantine_moves_along() {
    let stage = all_states();
    std::fs::write(stage.path("a"), stage.shows(&["export"])).unwrap();
    assert!(import(&stage, &stage.path("a"), "b.db", &[]).status.success());
    std::fs::write(stage.path("b"), exported(&stage, "b.db")).unwrap();
    let output = import(&stage, &stage.path("b"), "c.db", &["--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["quarantine_ms"].as_u64() > Some(86_000_000), "{told}");
    assert_eq!(told["incarnation"], 3);
}

#[test]
fn without_a_holder_nothing_has_to_be_waited_for() {
    let stage = Stage::new();
    std::fs::write(stage.path("a"), stage.shows(&["export"])).unwrap();
    let output = import(&stage, &stage.path("a"), "b.db", &[]);
    assert!(stderr(&output).contains("grants may begin at once"), "{}", stderr(&output));
    assert_eq!(lines(&exported(&stage, "b.db")).len(), 2, "the header, and the row of the import");
}

#[test]
fn a_dry_run_checks_everything_and_makes_nothing() {
    let stage = all_states();
    std::fs::write(stage.path("a"), stage.shows(&["export"])).unwrap();
    let output = import(&stage, &stage.path("a"), "b.db", &["--dry-run"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = redacted(&stderr(&output));
    assert!(
        said.starts_with("tenure import: would import 29 rows and 7 resources of <store> into a new store; "),
        "{said}"
    );
    assert!(!stage.path("b.db").exists());
    let output = stage.run(&["import", "a", "--dry-run"]);
    assert_eq!(output.status.code(), Some(65), "{}", stderr(&output));
}

#[test]
fn a_store_with_a_history_is_left_alone() {
    let stage = all_states();
    std::fs::write(stage.path("a"), stage.shows(&["export"])).unwrap();
    let before = lines(&stage.shows(&["export"]));
    let output = stage.run(&["import", "a"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(65), 0));
    assert!(stderr(&output).contains("has a history of 29 rows already: import into a new"), "{}", stderr(&output));
    assert_eq!(lines(&stage.shows(&["export"]))[1..], before[1..]);
}

/// Every kind of damage is named by its line, and nothing is made of the rest.
#[test]
fn a_damaged_file_is_refused_with_the_line_and_the_reason() {
    let stage = all_states();
    let whole: Vec<String> = stage.shows(&["export"]).lines().map(str::to_owned).collect();
    let changed = |line: usize, from: &str, to: &str| {
        let mut lines = whole.clone();
        assert!(lines[line - 1].contains(from), "{}", lines[line - 1]);
        lines[line - 1] = lines[line - 1].replacen(from, to, 1);
        lines.join("\n")
    };
    let without = |line: usize| [&whole[..line - 1], &whole[line..]].concat().join("\n");
    let last = whole.len();
    let row = |event: &str| 1 + whole.iter().position(|line| line.contains(&format!("\"event\":\"{event}\""))).unwrap();
    let resource = |name: &str| {
        1 + whole
            .iter()
            .position(|line| line.starts_with(&format!("{{\"kind\":\"resource\",\"resource\":\"{name}\"")))
            .unwrap()
    };
    let completed = whole[resource("report") - 1].replace("\"outcome\":\"7 files\"", "\"outcome\":null");
    let cases = [
        (String::new(), 1, "it is empty"),
        ("hello\n".to_owned(), 1, "expected value"),
        (without(1), 1, "an export begins with"),
        (changed(1, "tenure-export", "something"), 1, "format: \"something\" is not"),
        (changed(1, "\"version\":1", "\"version\":2"), 1, "version: 2 is not 1"),
        (changed(1, "\"incarnation\":1", "\"incarnation\":0"), 1, "its incarnation 0 is none"),
        (changed(1, "\"longest_live_ttl_ms\":86400000", "\"longest_live_ttl_ms\":86400001"), 1, "may believe for"),
        (changed(1, "\"max_ttl_ms\":86400000", "\"max_ttl_ms\":1"), 1, "max_ttl_ms: a ttl of 1ms is too short"),
        (changed(1, "\"store\"", "\"stor\""), 1, "unknown field `stor`"),
        (without(3), 30, "a resource after 28 of 29 rows: some are missing"),
        (changed(3, "\"number\":2", "\"number\":3"), 3, "goes on with number 3, where 2 comes next"),
        (changed(row("revoked"), "revoked", "stolen"), row("revoked"), "event: \"stolen\" is none"),
        (changed(3, "\"epoch\":1", "\"epoch\":0"), 3, "epoch: "),
        (changed(2, "\"session\":\"", "\"session\":\"x"), 2, "session: an id is written as 32"),
        (changed(2, "\"at\":\"2", "\"at\":\"x"), 2, "is no time in RFC 3339"),
        (whole[..last - 1].join("\n"), last - 1, "it ends here, with 29 of 29 rows and 6 of 7 resources"),
        (whole[..9].join("\n"), 9, "it ends here, with 8 of 29 rows and 0 of 7 resources"),
        (whole.join("\n")[..whole.join("\n").len() - 5].to_owned(), last, "it is cut off"),
        ([whole.clone(), vec![whole[last - 1].clone()]].concat().join("\n"), last + 1, "a resource is too many here"),
        ([whole.clone(), vec![whole[1].clone()]].concat().join("\n"), last + 1, "a row is too many here"),
        ([whole.clone(), whole.clone()].concat().join("\n"), last + 1, "a second export begins here"),
        (changed(resource("lost"), "\"epoch\":2", "\"epoch\":1"), resource("lost"), "the resource lost has epoch 1"),
        (
            changed(resource("lost"), "\"resource\":\"lost\"", "\"resource\":\"lust\""),
            6,
            "the resource lost has no record",
        ),
        (changed(1, "\"floor\":1", "\"floor\":null"), row_of(&whole, "older"), "the resource older has no record"),
        (
            changed(resource("old"), "\"resource\":\"old\"", "\"resource\":\"nightly\""),
            resource("old"),
            "nightly has a record already",
        ),
        (
            [&whole[..resource("report") - 1], &[completed], &whole[resource("report")..]].concat().join("\n"),
            resource("report"),
            "is completed has an outcome",
        ),
    ];
    for (content, line, why) in cases {
        let file = stage.path("damaged");
        std::fs::write(&file, &content).unwrap();
        let _ = std::fs::remove_file(stage.path("b.db"));
        let output = import(&stage, &file, "b.db", &[]);
        let said = stderr(&output);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(65), 0), "{why}: {said}");
        assert!(said.contains(&format!("damaged, line {line}: ")) && said.contains(why), "line {line}, {why}: {said}");
        assert!(said.contains("Nothing was changed"), "{said}");
        assert!(!stage.path("b.db").exists(), "{why}: a store was made");
    }
    let output = stage.run(&["import", "not there"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("not there cannot be read"), "{}", stderr(&output));
}

/// The line of the first row about a resource with its highest epoch.
fn row_of(lines: &[String], resource: &str) -> usize {
    1 + lines
        .iter()
        .position(|line| line.contains("\"kind\":\"row\"") && line.contains(&format!("\"resource\":\"{resource}\"")))
        .unwrap()
}

/// Ten thousand rows of a hundred resources come back as they were, through a pipe as well.
#[test]
fn a_long_history_comes_back_as_it_was() {
    let stage = Stage::new();
    let text = long(10_000, 100);
    let mut child = stage.command(&["import"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let again = stage.shows(&["export"]);
    let rows = |text: &str| text.lines().skip(1).take(10_000).map(str::to_owned).collect::<Vec<_>>();
    assert!(rows(&again) == rows(&text), "a row differs");
    let read = wait_for(stage.authority.inspect(&name("resource-099"))).unwrap();
    assert_eq!(read.view.lease.map(|lease| lease.epoch.get()), Some(50));
    let head = wait_for(stage.authority.store().read(&Keys::default())).unwrap();
    assert_eq!((head.view.history, head.view.authority.incarnation), (10_001, 8));
    let newest = HistoryQuery { resource: Some(name("resource-099")), ..HistoryQuery::default() };
    assert_eq!(wait_for(stage.authority.store().history(newest)).unwrap().len(), 100);
    // The epochs go on above.
    let token = stage.worker(1, "alice@web1", DAY).acquire("resource-099", &[]);
    assert_eq!(token.epoch.get(), 51);
}

/// An export of a history in which each resource was granted and released in turn.
fn long(rows: u64, resources: u64) -> String {
    let mut text = format!(
        "{{\"kind\":\"export\",\"format\":\"tenure-export\",\"version\":1,\"store\":\"sqlite:1\",\"incarnation\":7,\
         \"floor\":null,\"max_ttl_ms\":86400000,\"longest_live_ttl_ms\":null,\"quarantine_ms\":null,\"rows\":{rows},\
         \"resources\":{resources},\"exported_at\":\"2026-05-04T14:03:11.000Z\"}}\n"
    );
    let (grant, session) = (format!("{:032x}", 5), format!("{:032x}", 6));
    for n in 0..rows {
        let (event, of) = (["granted", "released"][usize::from(n % 2 == 1)], n / 2 % resources);
        let epoch = n / 2 / resources + 1;
        let at = format!("2026-05-04T{:02}:{:02}:{:02}.{:03}Z", n / 3_600, n / 60 % 60, n % 60, n % 1_000);
        writeln!(
            text,
            "{{\"kind\":\"row\",\"number\":{},\"at\":\"{at}\",\"at_ns\":{},\"event\":\"{event}\",\
             \"resource\":\"resource-{of:03}\",\"epoch\":{epoch},\"grant\":\"{grant}\",\"session\":\"{session}\",\
             \"actor\":\"alice@web1\",\"why\":null}}",
            n + 1,
            n * 1_000
        )
        .unwrap();
    }
    for of in 0..resources {
        writeln!(
            text,
            "{{\"kind\":\"resource\",\"resource\":\"resource-{of:03}\",\"phase\":\"free\",\"epoch\":{},\
             \"grant\":\"{grant}\",\"session\":\"{session}\",\"owner\":\"alice@web1\",\"instance\":\"{grant}\",\
             \"since\":\"2026-05-04T14:03:11.000Z\",\"receivers\":{{}},\"outcome\":null,\"cut\":null,\"forgotten\":null}}",
            rows / 2 / resources
        )
        .unwrap();
    }
    text
}
