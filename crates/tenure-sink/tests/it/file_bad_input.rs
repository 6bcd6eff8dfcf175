//! Folders that are something else, damaged, of another version or read-only, and names that are no names.

use crate::process::{Process, job, say};
use crate::{id, operation, seal, token};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Outcome, Verdict};
use tenure_sink::file::Operation;
use tenure_sink::{FileSink, SinkError};

fn sink() -> (TempDir, FileSink) {
    let folder = TempDir::new().unwrap();
    let sink = FileSink::create(folder.path(), id(), Rule::Sealed).unwrap();
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    (folder, sink)
}

fn open(path: &Path) -> SinkError {
    FileSink::open(path, id(), Rule::Sealed).unwrap_err()
}

/// The one file of that name among the sink's records.
fn record(folder: &TempDir, name: &str) -> PathBuf {
    let own = folder.path().join(".tenure");
    let mut found: Vec<PathBuf> = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path().join(name)).collect();
    found.push(own.join(name));
    found.retain(|path| path.is_file());
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn names_that_are_no_file_names_are_refused_and_touch_nothing() {
    let (folder, sink) = sink();
    let long = "x".repeat(256);
    for name in ["", ".", "..", "../up", "a/b", "/etc/passwd", "a\0b", ".tenure", &long] {
        let written = sink.write(&token(1), None, name, b"content");
        assert!(matches!(&written, Err(SinkError::BadName { name: said, .. }) if said == name), "{written:?}");
        assert!(matches!(sink.read(name), Err(SinkError::BadName { .. })));
    }
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [".tenure"]);
    for name in [&long[1..], "a b", "ü", "-rf", "..."] {
        assert_eq!(sink.write(&token(1), None, name, name.as_bytes()).unwrap(), Verdict::Written, "{name:?}");
        assert_eq!(sink.read(name).unwrap().as_deref(), Some(name.as_bytes()));
    }
}

#[test]
fn a_folder_that_is_no_sink_is_not_made_one_by_opening_it() {
    let folder = TempDir::new().unwrap();
    assert!(matches!(open(folder.path()), SinkError::NotInstalled { .. }));
    let file = folder.path().join("file");
    fs::write(&file, "content").unwrap();
    for error in [open(&file), FileSink::create(&file, id(), Rule::Sealed).unwrap_err()] {
        assert!(matches!(error, SinkError::Foreign { .. }), "{error:?}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"content");
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file"]);
}

#[test]
fn a_sink_whose_folder_goes_away_is_missing_and_does_not_come_back() {
    let (folder, sink) = sink();
    let path = folder.path().to_path_buf();
    drop(folder);
    for error in [seal(&sink, &token(2)).unwrap_err(), sink.write(&token(1), None, "target", b"x").unwrap_err()] {
        assert!(matches!(error, SinkError::Missing { .. }), "{error:?}");
    }
    assert!(!path.exists());
}

#[test]
fn another_schema_version_is_refused_with_advice() {
    let (folder, _sink) = sink();
    let path = record(&folder, "namespace.json");
    let text = fs::read_to_string(&path).unwrap();
    for (version, advice) in [(2, "newer version"), (0, "older program")] {
        fs::write(&path, text.replace("\"schema\": 1", &format!("\"schema\": {version}"))).unwrap();
        let error = open(folder.path());
        assert!(matches!(error, SinkError::Schema { found, known: 1, .. } if found == version), "{error:?}");
        assert!(error.to_string().contains(advice), "{error}");
        // Another version may look different in every other respect.
        fs::write(&path, format!("{{\"schema\": {version}, \"all\": \"new\"}}")).unwrap();
        assert!(matches!(open(folder.path()), SinkError::Schema { .. }));
    }
    fs::write(&path, "{\"hello\": \"world\"}").unwrap();
    assert!(matches!(open(folder.path()), SinkError::Foreign { .. }));
}

#[test]
fn another_rule_is_refused() {
    let (folder, _sink) = sink();
    for error in [
        FileSink::open(folder.path(), id(), Rule::HighWater).unwrap_err(),
        FileSink::create(folder.path(), id(), Rule::HighWater).unwrap_err(),
    ] {
        assert!(matches!(&error, SinkError::Rule { found, .. } if found == "sealed"), "{error:?}");
    }
}

#[test]
fn damaged_records_are_refused_and_named() {
    let (folder, sink) = sink();
    let one = Operation { id: operation("one"), outcome: Outcome::new("done").unwrap() };
    assert_eq!(sink.write(&token(1), Some(&one), "target", b"a").unwrap(), Verdict::Written);
    let fence = record(&folder, "fence.json");
    let text = fs::read_to_string(&fence).unwrap();
    let halves = [
        String::new(),
        text[..text.len() / 2].to_owned(),
        text.replace("\"epoch\": 1", "\"epoch\": 0"),
        text.replace("\"epoch\": 1", "\"epoch\": -1"),
        text.replace("\"epoch\": 1", "\"epoch\": 1.5"),
        text.replace("\"epoch\": 1", "\"epoch\": 9223372036854775808"),
        text.replace("\"resource\": \"r\"", "\"resource\": \"another\""),
    ];
    for damaged in halves {
        assert_ne!(damaged, text);
        fs::write(&fence, &damaged).unwrap();
        let error = sink.write(&token(1), None, "target", b"b").unwrap_err();
        assert!(matches!(error, SinkError::Corrupt { .. }), "{damaged}: {error:?}");
        assert!(error.to_string().contains("fence.json"), "it does not say which: {error}");
        let error = seal(&sink, &token(2)).unwrap_err();
        assert!(matches!(error, SinkError::Corrupt { .. }), "{damaged}: {error:?}");
        assert_eq!(fs::read_to_string(&fence).unwrap(), damaged, "the damaged record was changed");
    }
    fs::write(&fence, text).unwrap();
    assert_eq!(sink.read("target").unwrap().as_deref(), Some(&b"a"[..]));
    assert_eq!(sink.write(&token(1), Some(&one), "target", b"a").unwrap().name(), "replay");
}

#[test]
fn a_target_keeps_its_permissions() {
    let (folder, sink) = sink();
    assert_eq!(sink.write(&token(1), None, "target", b"a").unwrap(), Verdict::Written);
    let path = folder.path().join("target");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(sink.write(&token(1), None, "target", b"b").unwrap(), Verdict::Written);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn a_folder_that_may_only_be_read_is_told_so() {
    let (folder, sink) = sink();
    assert_eq!(sink.write(&token(1), None, "target", b"a").unwrap(), Verdict::Written);
    let set = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    set(0o555);
    // To root nothing is read-only, so the child is somebody else.
    let reader = Process::start_as("file_bad_input::reader", "read-only", folder.path(), |command| {
        if rustix::process::geteuid().is_root() { command.uid(65534).gid(65534) } else { command }
    });
    let said = reader.hear();
    set(0o755);
    let said = said.unwrap();
    assert!(said.contains("cannot be written") && said.contains("give this process the right"), "{said}");
    assert_eq!(reader.hear().as_deref(), Some("a"));
    assert_eq!(sink.read("target").unwrap().as_deref(), Some(&b"a"[..]));
}

/// The child of the test above. In the ordinary run it has no job.
#[test]
fn reader() {
    let Some((_, place)) = job() else { return };
    let sink = FileSink::open(&place, id(), Rule::Sealed).unwrap();
    let error = sink.write(&token(1), None, "target", b"b").unwrap_err();
    assert!(matches!(error, SinkError::NotWritable { .. }) && !error.is_transient(), "{error:?}");
    say(error);
    say(String::from_utf8(sink.read("target").unwrap().unwrap()).unwrap());
}
