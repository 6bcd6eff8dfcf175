//! Addresses that lead nowhere, and what is said of them.

use super::{error, looked, made, store};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tenure_authority::{AuthorityError, StoreError};
use tenure_servers::Postgres;
use tenure_servers::postgres::psql;

/// The words of an address that is at fault itself.
fn wrong(url: &str) -> String {
    match error(url) {
        error @ StoreError::Address { .. } => error.to_string(),
        other => unreachable!("{url}: {other:?}"),
    }
}

#[test]
fn an_address_that_makes_no_sense_says_what_would_be_right() {
    for (url, says) in [
        ("postgres://u@h/d?creat=true", "no parameter \"creat\""),
        ("postgres://u@h/d?create=yes", "neither true nor false"),
        ("postgres://u@h/d?create", "write create=…"),
        ("postgres://u@h/d?max_ttl=10", "2m"),
        ("postgres://u@h/d?max_ttl=48h", "at most 86400s"),
        ("postgres://u@h/d?schema=a%20b", "no name for its schema"),
        ("postgres://u@h/d?schema=pg_x", "no name for its schema"),
        ("postgres://u@h/d?schema=T", "no name for its schema"),
        ("postgres://u@h/d?sslmode=verify-ca", "always checked"),
        ("postgres://u@h/d?sslmode=on", "take disable, prefer or verify-full"),
        ("postgres://u@h/d?tls_ca=/not/there.pem", "/not/there.pem cannot be read"),
        ("postgres://u@h/d?tls_ca=/dev/null", "there is none in it"),
        ("postgres://u@h/d?tls_ca=/dev/null&sslmode=disable", "leave one of them out"),
        ("postgres:///d", "names no host"),
        ("postgres://u:secret@h:port/d", "write postgres://USER"),
    ] {
        let said = wrong(url);
        assert!(said.contains(says), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn a_place_that_is_not_there_is_named() {
    let server = Postgres::shared();
    let database = server.database();
    let said = wrong(&format!("postgres://postgres@127.0.0.1:{}/nothing", server.port()));
    assert!(said.contains("\"nothing\"") && said.contains("CREATE DATABASE nothing"), "{said}");
    let unreached = error("postgres://u:secret@host.invalid/d");
    assert!(matches!(unreached, StoreError::Unavailable(_)), "{unreached:?}");
    assert!(unreached.to_string().contains("host.invalid") && !unreached.to_string().contains("secret"));
    let refused = error("postgres://u:secret@127.0.0.1:1/d");
    assert!(refused.is_transient() && refused.to_string().contains("refused"), "{refused}");
    // A wrong address makes nothing.
    for url in [database.clone(), format!("{database}?schema=other")] {
        let missing = error(&url);
        assert!(matches!(missing, StoreError::Missing(_)), "{missing:?}");
        assert!(missing.to_string().contains("create=true"), "{missing}");
    }
    assert_eq!(
        psql(&database, "select count(*) from pg_namespace where nspname in ('tenure', 'other')"),
        Ok("0".into())
    );
}

#[test]
fn a_password_is_checked_and_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = folder.path().join("hba.conf");
    let text = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(&rules, text).expect("a file");
    for path in [folder.path(), &rules] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    let server = Postgres::options().conf(&format!("hba_file = '{}'", rules.display())).start();
    server.psql("create role app login password 'right'");
    let database = server.database();
    made(&database);
    let with = |user: &str| database.replace("postgres@", user);
    for (user, says) in [("app:wrong-one@", "check the user and the password"), ("app@", "needs a password")] {
        let said = wrong(&with(user));
        assert!(said.contains(says) && !said.contains("wrong-one"), "{said}");
    }
    let store = store(&with("app:right@"));
    assert!(!format!("{store:?}").contains("right"), "{store:?}");
    // It may connect, but use nothing: it is said what to grant, and that helps.
    let error = looked(&store).expect_err("no rights");
    assert!(matches!(error, StoreError::NotWritable(_)), "{error:?}");
    let said = error.to_string();
    let (from, to) = (said.find("GRANT").expect("advice"), said.rfind(')').expect("advice"));
    psql(&database, &said[from..to]).expect("the advice is SQL");
    looked(&store).expect("the rights are there");
    let worker = crate::world::Worker::open(store, 1, false);
    worker.acquire("r", crate::world::grant(1));
}

#[test]
fn what_is_not_a_store_is_left_alone() {
    let database = Postgres::shared().database();
    psql(&database, "create schema tenure; create table tenure.notes (x int)").expect("SQL");
    psql(&database, "create schema other; create table other.migration (x int); create table other.meta (x int)")
        .expect("SQL");
    for schema in ["tenure", "other"] {
        for create in [false, true] {
            let foreign = error(&format!("{database}?schema={schema}&create={create}"));
            assert!(matches!(foreign, StoreError::Foreign(_)), "{foreign:?}");
        }
    }
    assert_eq!(
        psql(&database, "select count(*) from pg_class where relnamespace = 'tenure'::regnamespace"),
        Ok("1".into())
    );
}

#[test]
fn another_max_ttl_than_the_store_s_is_refused() {
    let database = Postgres::shared().database();
    let max_ttl = looked(&made(&database)).expect("a read").view.authority.max_ttl;
    assert_eq!(max_ttl.get(), Duration::from_mins(10), "a quarantine lasts as long");
    let said = wrong(&format!("{database}?max_ttl=1h"));
    assert!(said.contains("600s") && said.contains("leave max_ttl out"), "{said}");
    looked(&store(&format!("{database}?max_ttl=10m"))).expect("the same one");
}

/// A database whose transactions see what was there when they began would judge by old records.
#[test]
fn another_isolation_than_read_committed_is_refused_with_advice() {
    let database = Postgres::shared().database();
    made(&database);
    let name = database.rsplit('/').next().expect("a name");
    for level in ["repeatable read", "serializable"] {
        psql(&database, &format!("alter database {name} set default_transaction_isolation = '{level}'")).expect("SQL");
        let store = store(&database);
        let authority = tenure_authority::Authority::new(store);
        let retire =
            tenure_core::decide::Request::Hello { seen: tenure_core::record::Seen { incarnation: 9, number: 9 } };
        let answer = tenure_authority::conformance::block_on(authority.execute(&retire));
        let Err(AuthorityError::Store(error @ StoreError::Address { .. })) = answer else { panic!("{answer:?}") };
        assert!(error.to_string().contains(level) && error.to_string().contains("ALTER ROLE postgres"), "{error}");
    }
}
