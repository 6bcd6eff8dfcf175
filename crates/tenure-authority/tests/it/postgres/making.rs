//! The schema: made, looked at, brought up to date.

use super::{error, looked, made, store};
use tenure_authority::StoreError;
use tenure_authority::conformance::block_on;
use tenure_authority::store::postgres::{Migrated, migrate, migrations};
use tenure_servers::Postgres;
use tenure_servers::postgres::psql;

#[test]
fn processes_that_make_it_together_make_one() {
    let database = Postgres::shared().database();
    let url = format!("{database}?create=true");
    let identities: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
        let making: Vec<_> = (0..8).map(|_| scope.spawn(|| looked(&store(&url)).expect("a store"))).collect();
        making.into_iter().map(|made| made.join().expect("no panic").view.authority.identity).collect()
    });
    assert_eq!(identities.len(), 1);
    let identity = identities.first().expect("one").as_str().to_owned();
    let numbers = "select system_identifier, d.oid, 'tenure.meta'::regclass::oid from pg_control_system(), pg_database d \
                   where datname = current_database()";
    let numbers = psql(&database, numbers).expect("SQL");
    assert_eq!(identity, format!("postgres:{}:1", numbers.replace('|', ":")));
    assert_eq!(psql(&database, "select count(*) from tenure.migration"), Ok("1".into()));
}

#[test]
fn a_store_of_another_version_is_left_alone() {
    let database = Postgres::shared().database();
    made(&database);
    for (number, advice) in [(0, "tenure migrate"), (2, "update this program")] {
        psql(&database, &format!("update tenure.migration set number = {number}")).expect("SQL");
        let error = error(&database);
        assert!(matches!(error, StoreError::Schema { found, known: 1, .. } if found == number), "{error:?}");
        assert!(error.to_string().contains(advice), "{error}");
    }
    assert!(matches!(block_on(migrate(&database)), Err(StoreError::Schema { found: 2, .. })));
    assert_eq!(psql(&database, "select number from tenure.migration"), Ok("2".into()));
}

#[test]
fn migrating_makes_what_is_missing_and_says_so() {
    let database = Postgres::shared().database();
    let url = format!("{database}?schema=jobs");
    assert!(matches!(block_on(migrate(&url)), Err(StoreError::Missing(_))));
    let creating = format!("{url}&create=true");
    assert_eq!(block_on(migrate(&creating)).expect("made"), Migrated { from: 0, to: 1 });
    assert_eq!(block_on(migrate(&url)).expect("nothing to do"), Migrated { from: 1, to: 1 });
    looked(&store(&url)).expect("the store");
}

/// What a person reads before they run it is what is run.
#[test]
fn the_sql_that_is_shown_makes_the_tables() {
    let database = Postgres::shared().database();
    let all = migrations("shown");
    assert_eq!(all.iter().map(|migration| migration.number).collect::<Vec<_>>(), [1]);
    let sql: String = all.iter().map(|migration| migration.sql.as_str()).collect();
    assert!(!sql.contains('{'), "everything is filled in");
    psql(&database, &format!("begin; create schema shown; {sql}; commit")).expect("SQL");
    assert_eq!(psql(&database, "select count(*) from shown.lease"), Ok("0".into()));
}

/// The owner of the database makes the schema for a role that may not.
#[test]
fn who_may_not_make_a_schema_is_told_what_to_grant() {
    let server = Postgres::shared();
    server.psql("do $$ begin create role maker login; exception when duplicate_object then null; end $$");
    let database = server.database();
    let url = format!("{}?create=true", database.replace("postgres@", "maker@"));
    let refused = error(&url);
    assert!(matches!(refused, StoreError::NotWritable(_)), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains("GRANT CREATE ON DATABASE") && said.contains("AUTHORIZATION maker"), "{said}");
    psql(&database, "create schema tenure authorization maker").expect("SQL");
    looked(&store(&url)).expect("a schema of its own");
}

#[test]
fn another_encoding_than_utf8_is_refused() {
    let server = Postgres::shared();
    server.psql("create database latin encoding 'LATIN1' template template0");
    let refused = error(&format!("postgres://postgres@127.0.0.1:{}/latin?create=true", server.port()));
    assert!(refused.to_string().contains("LATIN1") && refused.to_string().contains("UTF8"), "{refused}");
}

/// Settings that weaken the store are told by name.
#[test]
fn weak_settings_are_told() {
    let server = Postgres::options().synchronous_commit("off").conf("full_page_writes = off").start();
    let store = made(&server.database());
    let said = block_on(store.warnings()).expect("the warnings").join("\n");
    for word in ["synchronous_commit=off", "full_page_writes=off", "idle_in_transaction_session_timeout"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    server.psql("alter system set full_page_writes = on");
    server.psql("alter system set synchronous_commit = on");
    server.psql("alter system set idle_in_transaction_session_timeout = '1min'");
    server.psql("select pg_reload_conf()");
    tenure_servers::eventually("the settings are in force", || {
        block_on(store.warnings()).is_ok_and(|left| left.is_empty()).then_some(())
    });
}

/// Without the right to see how a standby is followed, each one looked as if nobody waited for it.
#[test]
fn a_standby_is_told_of_only_by_those_who_see_how_it_follows() {
    let server = Postgres::start();
    let database = server.database();
    made(&database);
    let _standby = server.standby();
    let grants = "create role app login; grant usage on schema tenure to app; grant select on all tables in schema tenure to app";
    psql(&database, grants).expect("SQL");
    let told = |url: &str| {
        let said = block_on(store(url).warnings()).expect("the warnings").join("\n");
        said.contains("a standby follows without being waited for")
    };
    assert!(told(&database));
    assert!(!told(&database.replace("postgres@", "app@")));
}
