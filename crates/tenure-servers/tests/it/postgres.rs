use std::time::Duration;

use tenure_servers::postgres::psql;
use tenure_servers::{PgBouncer, Postgres, within};

#[test]
fn a_shared_server_gives_each_test_an_empty_database() {
    let (one, two) = (Postgres::shared().database(), Postgres::shared().database());
    assert_ne!(one, two);
    psql(&one, "create table t (n int)").unwrap();
    assert!(psql(&two, "select * from t").unwrap_err().contains("does not exist"));
}

#[test]
fn what_was_committed_outlives_a_pause_a_stop_and_a_kill() {
    let server = Postgres::options().unsynced().conf("max_connections = 20").synchronous_commit("on").start();
    assert_eq!(server.psql("show max_connections"), "20");
    server.psql("create table t (n int)");
    server.pause();
    let asked = std::thread::scope(|scope| {
        let asked = scope.spawn(|| psql(&server.url(), "insert into t values (1) returning n"));
        assert!(within(Duration::from_millis(200), || asked.is_finished().then_some(())).is_none());
        server.resume();
        asked.join().unwrap()
    });
    assert_eq!(asked.unwrap(), "1");
    server.restart();
    server.psql("insert into t values (2)");
    server.kill();
    assert!(psql(&server.url(), "select 1").is_err());
    server.restart();
    assert_eq!(server.psql("select sum(n) from t"), "3");
}

#[test]
fn a_standby_streams_and_is_promoted_without_what_was_kept_from_it() {
    let primary = Postgres::options().unsynced().start();
    primary.psql("create table t (n int)");
    let standby = primary.standby();
    primary.psql("insert into t values (1)");
    primary.wait_for(&standby);
    standby.pause_replay();
    primary.psql("insert into t values (2)");
    assert_eq!(standby.psql("select count(*) from t"), "1");
    standby.resume_replay();
    primary.wait_for(&standby);
    assert_eq!(standby.psql("select count(*) from t"), "2");
    standby.cut_link();
    primary.psql("insert into t values (3)");
    primary.kill();
    standby.promote();
    assert_eq!(standby.psql("insert into t values (4); select sum(n) from t"), "7");
    // `pg_control_checkpoint()` would still say 1: it tells of the last checkpoint, and promotion does not wait for one.
    assert_eq!(standby.psql("select left(pg_walfile_name(pg_current_wal_lsn()), 8)"), "00000002");
}

#[test]
fn a_snapshot_that_is_put_back_loses_what_came_after() {
    let server = Postgres::options().unsynced().start();
    server.psql("create table t (n int); insert into t values (1)");
    let snapshot = server.snapshot();
    server.psql("insert into t values (2)");
    server.restore(&snapshot);
    assert_eq!(server.psql("select sum(n) from t"), "1");
}

#[test]
fn two_servers_have_different_identifiers() {
    let identifier = |server: &Postgres| server.psql("select system_identifier from pg_control_system()");
    let (one, two) = (Postgres::options().unsynced().start(), Postgres::options().unsynced().start());
    assert_ne!(identifier(&one), identifier(&two));
}

#[test]
fn tls_is_vouched_for_by_the_authority_and_by_no_other() {
    let server = Postgres::options().unsynced().tls().start();
    let url = |ca: &std::path::Path| format!("{}?sslmode=verify-full&sslrootcert={}", server.url(), ca.display());
    let used = psql(&url(&server.ca()), "select ssl from pg_stat_ssl where pid = pg_backend_pid()");
    assert_eq!(used.unwrap(), "t");
    let other = tenure_servers::Certificates::make();
    assert!(psql(&url(&other.ca()), "select 1").unwrap_err().contains("certificate verify failed"));
}

#[test]
fn a_pooler_leads_to_every_database_of_its_server() {
    let server = Postgres::shared();
    let pooler = PgBouncer::with_pool(server, 2);
    let database = server.database();
    psql(&database, "create table t (n int)").unwrap();
    assert_eq!(psql(&pooler.url_of(&database), "insert into t values (1) returning n").unwrap(), "1");
    pooler.restart();
    assert_eq!(psql(&pooler.url_of(&database), "select count(*) from t").unwrap(), "1");
}

#[test]
fn one_with_vectors_is_asked_for_and_has_standbys_too() {
    let server = Postgres::options().vectors().unsynced().start();
    assert_eq!(server.psql("create extension vector; select '[1,0]'::vector <=> '[0,1]'::vector"), "1");
    let standby = server.standby();
    server.wait_for(&standby);
    assert_eq!(standby.psql("select extname from pg_extension where extname = 'vector'"), "vector");
}
