//! A server that may have forgotten a seal: promoted, put back, restored from a dump.

use super::database::Database;
use crate::{id, seal, token};
use std::process::Command;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Generation, Verdict};
use tenure_servers::Postgres;
use tenure_sink::conformance::{SinkUnderTest, answered};
use tenure_sink::{Sink, SinkError};

fn generation(database: &Database) -> Generation {
    answered(database.sink.describe(&token(1).resource)).unwrap().generation
}

/// The newest seal had not arrived at the standby. Without the timeline in the generation its fence would let the old holder
/// in again.
#[test]
fn a_promoted_standby_admits_nothing_until_it_is_sealed() {
    let server = Postgres::options().unsynced().start();
    let primary = Database::at(server.url(), Rule::Sealed);
    assert!(matches!(seal(&primary.sink, &token(1)), Ok(Sealing::Seal(_))));
    let standby = server.standby();
    server.wait_for(&standby);
    let follower = Database::at_standby(standby.url());
    let error = answered(follower.sink.describe(&token(1).resource)).unwrap_err();
    assert!(error.is_transient() && error.to_string().contains("standby"), "{error}");
    standby.cut_link();
    assert!(matches!(seal(&primary.sink, &token(2)), Ok(Sealing::Seal(_))));
    let before = generation(&primary);
    server.kill();
    standby.promote();
    assert_ne!(generation(&follower), before);
    assert_eq!(follower.write(&token(1), None, "late").unwrap(), Verdict::Unsealed);
    assert_eq!(follower.write(&token(2), None, "early").unwrap(), Verdict::Unsealed);
    assert_eq!(
        answered(follower.sink.seal(&token(2), &before, &std::collections::BTreeSet::new())).unwrap(),
        Sealing::WrongGeneration { current: generation(&follower) }
    );
    assert!(matches!(seal(&follower.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(follower.write(&token(1), None, "late").unwrap().name(), "stale");
    assert_eq!(follower.write(&token(2), None, "new").unwrap(), Verdict::Written);
}

/// An operation whose commit nobody heard of is looked up at the promoted server, which may not have it: the look-up waits
/// for the seal there.
#[test]
fn a_lookup_at_a_promoted_standby_comes_after_its_seal() {
    let server = Postgres::options().unsynced().start();
    let primary = Database::at(server.url(), Rule::Sealed);
    assert!(matches!(seal(&primary.sink, &token(1)), Ok(Sealing::Seal(_))));
    let standby = server.standby();
    server.wait_for(&standby);
    standby.cut_link();
    let operation = crate::operation("one");
    assert_eq!(primary.write(&token(1), Some(&operation), "lost").unwrap(), Verdict::Written);
    server.kill();
    standby.promote();
    let follower = Database::at_standby(standby.url());
    assert_eq!(follower.lookup(&token(1), &operation).unwrap(), Err(Verdict::Unsealed));
    assert!(matches!(seal(&follower.sink, &token(1)), Ok(Sealing::Seal(_))));
    assert_eq!(follower.lookup(&token(1), &operation).unwrap(), Ok(tenure_sink::Lookup::Absent));
    assert_eq!(follower.write(&token(1), Some(&operation), "again").unwrap(), Verdict::Written);
}

/// A restart is no failover: nothing is forgotten.
#[test]
fn a_restart_forgets_nothing() {
    let server = Postgres::options().unsynced().start();
    let database = Database::at(server.url(), Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let before = generation(&database);
    server.kill();
    server.restart();
    let after = database.anew();
    assert_eq!(generation(&after), before);
    // The first check finds out that it is the same server, and from then on nothing needs to be read for it.
    let known = || {
        let sql = "SELECT started = pg_postmaster_start_time(), seal_no FROM tenure.sink_fence";
        tenure_servers::postgres::psql(&after.url, sql).unwrap()
    };
    assert_eq!(known(), "f|1");
    assert_eq!(after.write(&token(1), None, "goes on").unwrap(), Verdict::Written);
    assert_eq!(known(), "t|1");
    assert_eq!(after.write(&token(2), None, "early").unwrap(), Verdict::Unsealed);
}

/// With `synchronous_commit=off` a seal was answered before it was on the disk. The server died and came back in the same
/// generation, with the row of before: the old holder was let in again, after a takeover that was announced. A forgetting and a
/// reopening were lost in the same way.
#[test]
fn what_was_answered_outlives_a_crash_also_where_commits_do_not_wait() {
    // Whoever does not wait for the log leaves it in memory, as long as nobody else writes it.
    let server = Postgres::options()
        .unsynced()
        .synchronous_commit("off")
        .conf("wal_writer_delay = 10s")
        .conf("autovacuum = off");
    let server = server.start();
    let database = Database::at(server.url(), Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let crashed = |work: &dyn Fn(&Database)| {
        let database = database.anew();
        generation(&database);
        server.psql("checkpoint");
        work(&database);
        server.kill();
        server.restart();
    };
    crashed(&|database| assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_)))));
    assert_eq!(database.anew().write(&token(1), None, "late").unwrap().name(), "stale", "the seal is lost");
    let before = generation(&database.anew());
    crashed(&|database| drop(answered(database.sink.reopen()).unwrap()));
    assert_ne!(generation(&database.anew()), before, "the reopening is lost");
    crashed(&|database| drop(answered(database.sink.forget(&token(2).resource, token(2).epoch)).unwrap()));
    let described = answered(database.anew().sink.describe(&token(2).resource)).unwrap();
    assert_eq!((described.floor, described.row), (Some(token(2).epoch), None), "the forgetting is lost");
}

/// What the server cannot notice, an operator says.
#[test]
fn a_volume_that_was_put_back_needs_a_reopening() {
    let server = Postgres::options().unsynced().start();
    let database = Database::at(server.url(), Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let snapshot = server.snapshot();
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
    server.restore(&snapshot);
    let database = database.anew();
    // The old holder would be let in: this is what the guarantee leaves out.
    assert_eq!(database.write(&token(1), None, "late").unwrap(), Verdict::Written);
    answered(database.sink.reopen()).unwrap();
    assert_eq!(database.write(&token(1), None, "later").unwrap(), Verdict::Unsealed);
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(database.write(&token(1), None, "later").unwrap().name(), "stale");
}

/// A copy of the database in the same cluster has the tables' own numbers. In the place of the original it let the holder in again
/// that was there before the takeover.
#[test]
fn a_copy_that_took_the_database_s_place_admits_nothing_until_it_is_sealed() {
    let server = Postgres::shared();
    let database = Database::create(Rule::Sealed);
    let name = database.url.rsplit('/').next().unwrap();
    let alone = |sql: &str| {
        let sessions =
            format!("SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = '{name}'");
        server.psql(&sessions);
        server.psql(sql);
    };
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let before = generation(&database);
    alone(&format!("CREATE DATABASE {name}_copy TEMPLATE {name}"));
    let original = database.anew();
    assert!(matches!(seal(&original.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(original.write(&token(1), None, "late").unwrap().name(), "stale");
    alone(&format!("DROP DATABASE {name}"));
    server.psql(&format!("ALTER DATABASE {name}_copy RENAME TO {name}"));
    let copy = database.anew();
    assert_ne!(generation(&copy), before);
    assert_eq!(copy.write(&token(1), None, "late").unwrap(), Verdict::Unsealed);
    assert!(matches!(seal(&copy.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(copy.write(&token(1), None, "late").unwrap().name(), "stale");
}

/// A dump carries the fence's rows, of a generation that is not the new tables'.
#[test]
fn a_dump_that_was_put_back_admits_nothing_until_it_is_sealed() {
    let database = Database::create(Rule::Sealed);
    database.run("SELECT tenure.protect('shop', 'resource')");
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    assert_eq!(database.write(&token(1), None, "a").unwrap(), Verdict::Written);
    let dump = Command::new("pg_dump").args(["-d", &database.url]).output().unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let target = Postgres::shared().database();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &dump.stdout).unwrap();
    let load =
        Command::new("psql").args(["-Xq", "-v", "ON_ERROR_STOP=1", "-d", &target, "-f"]).arg(file.path()).output();
    let load = load.unwrap();
    assert!(load.status.success(), "{}", String::from_utf8_lossy(&load.stderr));
    let copy = Database::at(target, Rule::Sealed);
    assert_ne!(generation(&copy), generation(&database));
    assert_eq!(copy.write(&token(1), None, "late").unwrap(), Verdict::Unsealed);
    assert!(matches!(seal(&copy.sink, &token(2)), Ok(Sealing::Seal(_))));
    assert_eq!(copy.write(&token(2), None, "b").unwrap(), Verdict::Written);
    // And its tables are protected as they were.
    let said = tenure_servers::postgres::psql(&copy.url, "UPDATE shop SET value = 'x'").unwrap_err();
    assert!(said.contains("is protected"), "{said}");
}

/// The rule is for the sink's whole life, and a newer program's sink is left alone.
#[test]
fn another_rule_or_another_version_is_refused() {
    let database = Database::create(Rule::Sealed);
    let open = |rule| tenure_sink::PostgresSink::open(&database.url, id(), rule).unwrap();
    let error = answered(open(Rule::HighWater).ready()).unwrap_err();
    assert!(matches!(error, SinkError::Rule { .. }), "{error}");
    database.run("INSERT INTO tenure.sink_migration VALUES (99, 'of the future')");
    let error = answered(open(Rule::Sealed).ready()).unwrap_err();
    assert!(matches!(error, SinkError::Schema { found: 99, known: 1, .. }), "{error}");
}

/// Where a crash of the machine takes a seal back, the generation stays.
#[test]
fn settings_with_which_a_seal_may_be_lost_are_told() {
    let server = Postgres::options().unsynced().conf("full_page_writes = off").start();
    let database = Database::at(server.url(), Rule::Sealed);
    let told = || answered(database.sink.warnings()).unwrap();
    let said = told();
    assert!(
        said.len() == 2 && said[0].starts_with("fsync=off") && said[1].starts_with("full_page_writes=off"),
        "{said:?}"
    );
    for setting in ["fsync", "full_page_writes"] {
        server.psql(&format!("alter system set {setting} = on"));
    }
    server.psql("select pg_reload_conf()");
    tenure_servers::eventually("the settings are in force", || told().is_empty().then_some(()));
}
