//! The doors that have no Rust: psql, a Python program, and a script that makes the sink.

use super::database::Database;
use crate::{id, seal, token};
use std::process::Command;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{ResourceName, Verdict};
use tenure_servers::postgres::psql;
use tenure_servers::{PgBouncer, Postgres};
use tenure_sink::PostgresSink;
use tenure_sink::conformance::{SinkUnderTest, answered};

/// Debian's, which has the driver that its packages bring.
const PYTHON: &str = "/usr/bin/python3";

const WORKER: &str = include_str!("worker.py");

fn python(url: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(PYTHON).args(["-c", WORKER, url]).args(arguments).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(said(&output.stderr)) }
}

#[test]
fn the_script_makes_the_sink_that_a_program_opens() {
    let url = Postgres::shared().database();
    let script = tenure_sink::postgres::script("tenure", Rule::HighWater).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let run = || {
        let done =
            Command::new("psql").args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", &url, "-f"]).arg(file.path()).output();
        done.unwrap()
    };
    let first = run();
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    answered(PostgresSink::open(&url, id(), Rule::HighWater).unwrap().ready()).unwrap();
    // A second time it fails as a whole, and changes nothing.
    assert!(!run().status.success());
    assert_eq!(psql(&url, "SELECT count(*) FROM tenure.sink_migration").as_deref(), Ok("1"));
}

#[test]
fn psql_sees_a_late_writer_refused() {
    let database = Database::create(Rule::Sealed);
    for epoch in [1, 2] {
        assert!(matches!(seal(&database.sink, &token(epoch)), Ok(Sealing::Seal(_))));
    }
    let write = |epoch: u64, value: &str| {
        let grant = token(epoch).grant;
        let sql = format!(
            "BEGIN; SELECT FROM tenure.admit('r', {epoch}, '{grant}'); INSERT INTO shop VALUES ('r', '{value}'); COMMIT"
        );
        psql(&database.url, &sql)
    };
    let said = write(1, "late").unwrap_err();
    for part in ["stale: epoch 1 of 'r' was shown, epoch 2 is registered", "DETAIL:", "HINT:"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(database.value(&token(1).resource), None);
    write(2, "new").unwrap();
    assert_eq!(database.value(&token(1).resource).as_deref(), Some("new"));
    let said = write(3, "early").unwrap_err();
    assert!(said.contains("unsealed") && said.contains("It is no loss"), "{said}");
}

/// The check as a part of the statement that writes: it takes no call of its own.
#[test]
fn a_statement_that_checks_by_itself_is_refused_as_a_whole() {
    let database = Database::create(Rule::Sealed);
    database.run("CREATE TABLE item (id int, n int); INSERT INTO item SELECT g, 0 FROM generate_series(1, 3) g");
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let update = |epoch: u64| {
        let check = format!("(SELECT tenure.admit('r', {epoch}, '{}')) > 0", token(epoch).grant);
        psql(&database.url, &format!("UPDATE item SET n = n + 1 WHERE {check}"))
    };
    update(1).unwrap();
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
    let said = update(1).unwrap_err();
    assert!(said.contains("stale: epoch 1 of 'r' was shown, epoch 2 is registered"), "{said}");
    assert_eq!(psql(&database.url, "SELECT string_agg(n::text, ' ') FROM item").as_deref(), Ok("1 1 1"));
    update(2).unwrap();
}

/// Two processes advance one run of an agent; the first is held up inside its step, and its late result is refused.
#[test]
fn a_python_worker_that_was_overtaken_is_refused() {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let (one, two) = (token(1).grant.to_string(), token(2).grant.to_string());
    assert_eq!(python(&database.url, &["r", "1", &one, "step-1", "first"]).as_deref(), Ok("written first"));
    assert_eq!(python(&database.url, &["r", "1", &one, "step-1", "first"]).as_deref(), Ok("replay first"));
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
    let said = python(&database.url, &["r", "1", &one, "step-2", "late"]).unwrap_err();
    assert!(said.starts_with("TN101") && said.contains("epoch 2 is registered"), "{said}");
    assert_eq!(python(&database.url, &["r", "2", &two, "step-1", "first"]).as_deref(), Ok("replay first"));
    let said = python(&database.url, &["r", "2", &two, "step-1", "other"]).unwrap_err();
    assert!(said.starts_with("TN103"), "{said}");
    assert_eq!(python(&database.url, &["r", "2", &two, "step-2", "second"]).as_deref(), Ok("written second"));
    assert_eq!(database.value(&ResourceName::new("r").unwrap()).as_deref(), Some("second"));
}

/// A connection that the pooler had given to somebody else carries nothing over.
#[test]
fn nothing_is_carried_over_by_a_pooler() {
    let bouncer = PgBouncer::with_pool(Postgres::shared(), 1);
    let database = Database::at(Postgres::shared().database(), Rule::Sealed);
    database.run("SELECT tenure.protect('shop', 'resource')");
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let url = bouncer.url_of(&database.url);
    let grant = token(1).grant;
    for value in ["a", "b"] {
        let write = format!(
            "BEGIN; SELECT FROM tenure.admit('r', 1, '{grant}'); \
             INSERT INTO shop VALUES ('r', '{value}') ON CONFLICT (resource) DO UPDATE SET value = excluded.value; COMMIT"
        );
        psql(&url, &write).unwrap();
        // The same connection of the server, and another transaction.
        let said = psql(&url, "UPDATE shop SET value = 'stray'").unwrap_err();
        assert!(said.contains("is protected"), "{said}");
    }
    assert_eq!(database.write(&token(1), None, "c").unwrap(), Verdict::Written);
}

/// Whoever finds it enrolled can open it, as the user that it is.
#[test]
fn the_id_of_a_sink_is_an_address_that_opens_it() {
    let database = Database::create(Rule::Sealed);
    let sink = tenure_sink::connect(&format!("{}?wait=2s", database.url)).unwrap();
    assert!(matches!(seal(&*sink, &token(1)), Ok(Sealing::Seal(_))));
    let again = tenure_sink::connect(&sink.id().as_str().replace("//", "//postgres@")).unwrap();
    assert_eq!(again.id(), sink.id());
    assert!(matches!(seal(&*again, &token(2)), Ok(Sealing::Seal(_))));
}
