//! A receiver in PostgreSQL, as an operator meets it.

use crate::site::{Site, hold, made};
use serde_json::json;
use std::process::Command;
use tenure::blocking::wait_for;
use tenure_servers::Postgres;
use tenure_servers::postgres::psql;

const JOB: &str = "nightly";

#[test]
fn the_script_makes_a_receiver_that_workers_seal_and_operators_see() {
    let site = Site::new();
    let url = Postgres::shared().database();
    let printed = site.tenure(&["sql", "postgres"]).ended(0);
    let script = site.path("receiver.sql");
    std::fs::write(&script, &printed.out).unwrap();
    let made =
        Command::new("psql").args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", &url, "-f"]).arg(&script).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let lease = hold(&site.worker("alice"), JOB, &[&url]);
    let listed = site.tenure(&["sinks", JOB, "ls", "--sink", &url]).ended(0);
    listed.with(&["sealed", "has epoch 1, as the authority", "postgres://127.0.0.1:"]);
    let (epoch, grant) = (lease.token().epoch, lease.token().grant);
    let write = format!("SELECT FROM tenure.admit('{JOB}', {epoch}, '{grant}')");
    psql(&url, &write).unwrap();
    let id =
        site.tenure(&["sinks", JOB, "ls", "--json"]).ended(0).json()["receivers"][0]["id"].as_str().unwrap().to_owned();
    let reopen = ["sinks", JOB, "reopen", &id, "--reason", "a volume was put back", "--sink", &url];
    site.tenure(&reopen).ended(0).with(&["Reopened"]);
    let said = psql(&url, &write).unwrap_err();
    assert!(said.contains("unsealed"), "{said}");
    lease.release().unwrap();
    let remove = ["sinks", JOB, "remove", &id, "--reason", "moved", "--sink", &url, "--json"];
    assert_eq!(site.tenure(&remove).ended(0).json()["forgotten"], json!(true));
    let said = psql(&url, &write).unwrap_err();
    assert!(said.contains("stale"), "{said}");
}

#[test]
fn a_schema_that_would_need_quotes_is_refused_and_a_password_is_not_shown() {
    let site = Site::new();
    site.tenure(&["sql", "postgres", "--schema", "A b"]).ended(64).with(&["no name for its schema"]);
    let script = site.tenure(&["sql", "postgres", "--schema", "fences", "--rule", "high-water"]).ended(0);
    assert!(script.out.contains("CREATE SCHEMA IF NOT EXISTS fences;") && script.out.contains("('high-water')"));
    let url = "postgres://app:hunter2@127.0.0.1:1/shop";
    for words in [&["doctor", "--sink", url][..], &["sinks", JOB, "ls", "--sink", url], &["put", "--sink", url]] {
        let said = site.tenure(words);
        assert!(!format!("{said:?}").contains("hunter2"), "{words:?}: {said:?}");
    }
}

/// Both are found, whichever was made first.
#[test]
fn an_authority_and_a_receiver_live_in_one_schema() {
    let site = Site::new();
    for authority_first in [true, false] {
        let url = Postgres::shared().database();
        let authority = || site.tenure(&["ls", "--authority", &made(&url)]).ended(0);
        let receiver = || {
            let sink = tenure::sink::connect(&made(&url)).unwrap();
            wait_for(sink.describe(&JOB.parse().unwrap())).unwrap()
        };
        if authority_first {
            authority();
            receiver();
        } else {
            receiver();
            authority();
        }
        assert_eq!(psql(&url, "SELECT count(*) FROM tenure.sink_namespace, tenure.meta").as_deref(), Ok("1"));
        let worker = wait_for(tenure::Tenure::builder().owner("alice").connect(&url)).unwrap().into();
        hold(&worker, JOB, &[&url]).release().unwrap();
    }
}
