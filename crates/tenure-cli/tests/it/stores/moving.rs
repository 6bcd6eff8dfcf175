//! From store to store and back: nothing is lost, and epochs go on above.

use super::Kind;
use crate::site::{Site, made};
use serde_json::Value;
use std::time::Duration;

/// What an export holds of the resources and the history, without what belongs to one store or one moment.
fn content(export: &str) -> (Value, Vec<Value>, Vec<Value>) {
    let mut lines: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let header = lines.remove(0);
    let (mut rows, mut resources) = (Vec::new(), Vec::new());
    for mut line in lines {
        match line["kind"].as_str() {
            Some("row") => rows.push(line),
            _ => {
                // Since when it is held is reckoned anew in each store; nobody holds it after a move, nor is it sealed.
                line["since"] = Value::Null;
                if line["phase"] == "held" {
                    line["phase"] = "free".into();
                }
                for receiver in line["receivers"].as_object_mut().unwrap().values_mut() {
                    *receiver = Value::Null;
                }
                resources.push(line);
            }
        }
    }
    (header, rows, resources)
}

#[test]
fn a_store_moves_through_all_the_others_and_back() {
    let site = Site::new();
    let out = site.files("out");
    let worker = site.worker("alice");
    // So long nothing is granted after a move.
    let wish = |resource: &str| worker.wish(resource).ttl(Duration::from_secs(2));
    worker.acquire(wish("done")).unwrap().complete("7 files: \u{fc}, \"quoted\", \\").unwrap();
    worker.acquire(wish("retired")).unwrap().release().unwrap();
    site.tenure(&["retire", "retired"]).ended(0);
    let lease = worker.acquire(wish("held").sink(tenure::sink::connect(&out).unwrap())).unwrap();
    let old = lease.token().clone();
    let export = |url: &str| site.tenure(&["export", "--authority", url]).ended(0).out;
    let first = export(&site.authority());
    // The old authority is stopped, as an import wants it.
    drop(lease);
    drop(worker);
    let (header, rows, resources) = content(&first);
    assert!(!rows.is_empty() && resources.len() == 2, "{first}");

    let kinds = [Kind::Postgres, Kind::Redis, Kind::Etcd, Kind::Sqlite];
    let back = format!("sqlite:{}", site.path("back.db").display());
    let mut text = first;
    for (number, kind) in kinds.into_iter().enumerate() {
        let url = kind.fresh().unwrap_or_else(|| back.clone());
        let file = site.script("archive.jsonl", &text);
        site.tenure(&["import", &file, "--authority", &made(&url), "--dry-run"]).ended(0).with(&["would import"]);
        site.tenure(&["import", &file, "--authority", &made(&url)]).ended(0).with(&["imported"]);
        site.tenure(&["import", &file, "--authority", &url]).ended(65).with(&["Nothing was changed"]);
        text = export(&url);
        let (there, moved, there_resources) = content(&text);
        // Each move adds the row that tells of it.
        let taken = moved.len() - number - 1;
        assert_eq!(moved[..taken], rows, "{kind:?}: number for number, time for time");
        assert_eq!(moved.last().unwrap()["event"], "quarantined", "{kind:?}");
        assert_eq!(there_resources, resources, "{kind:?}");
        assert_eq!(there["floor"], header["floor"], "{kind:?}");
        assert_eq!(there["incarnation"], header["incarnation"].as_u64().unwrap() + number as u64 + 1, "{kind:?}");
        assert_ne!(there["store"], header["store"], "{kind:?}");
        // After the quarantine epochs go on above, and the receiver refuses what is older.
        if kind == Kind::Sqlite {
            let args = ["run", "--authority", &url, "--resource", "held", "--sink", &out, "--wait", "60s"];
            let said = site.tenure(&[&args[..], &["--", "sh", "-c", "echo $TENURE_EPOCH"]].concat()).ended(0);
            assert_eq!(said.out.trim().parse::<u64>().unwrap(), old.epoch.get() + 1);
            site.fed(&old, b"late", &["put", "--sink", &out]).ended(76);
        }
    }
}
