use super::connect;
use crate::{Clock, StoreError};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

fn clock() -> Clock {
    Clock::Manual(Arc::new(AtomicU64::new(1)))
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    let cases = [
        ("", "write sqlite:PATH"),
        ("tenure.db", "write sqlite:PATH"),
        ("/var/lib/tenure.db", "write sqlite:PATH"),
        ("mysql://localhost/x", "write sqlite:PATH"),
        ("memory:somewhere", "write memory:"),
        ("memory:?create=true", "no parameter \"create\"; it has max_ttl"),
        ("memory:?max_ttl=0s", "give at least"),
        ("memory:?max_ttl=48h", "give at most"),
        ("memory:?max_ttl=soon", "250ms, 5s, 2m, 1h, 1d"),
        ("memory:?max_ttl", "write max_ttl="),
        ("memory:?max_ttl=1h&max_ttl=2h", "write it once"),
        ("memory:%4", "write %25"),
    ];
    for (url, right) in cases {
        let error = connect(url, clock()).expect_err(url);
        assert!(matches!(error, StoreError::Address { .. }), "{url}: {error:?}");
        assert!(!error.is_transient(), "{url}");
        let message = error.to_string();
        assert!(message.contains(right), "{url}: {message}");
        assert!(message.contains(&format!("{url:?}")), "{url}: {message}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn a_file_s_address_is_checked_as_well() {
    let cases = [
        ("sqlite:", "write sqlite:PATH"),
        ("sqlite://host/x.db", "sqlite:///ABSOLUTE/PATH"),
        ("sqlite:x.db?create=yes", "neither true nor false"),
        ("sqlite:x.db?mode=ro", "no parameter \"mode\"; it has create, max_ttl, busy_timeout"),
        ("sqlite:x.db?busy_timeout=1h", "at most 60s"),
        ("sqlite:x.db?busy_timeout=5", "250ms, 5s, 2m, 1h, 1d"),
    ];
    for (url, right) in cases {
        let message = connect(url, clock()).expect_err(url).to_string();
        assert!(message.contains(right), "{url}: {message}");
    }
    assert!(!std::path::Path::new("x.db").exists());
}

#[cfg(feature = "sqlite")]
#[test]
fn a_path_may_hold_question_marks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("what?.db");
    let url = format!("sqlite://{}?create=true", path.display().to_string().replace('?', "%3F"));
    connect(&url, clock()).expect("the store is made");
    assert!(path.exists());
}

/// A command gets its authority's address in its environment, and may go to another folder before it asks.
#[test]
fn a_shared_address_is_absolute_and_makes_nothing() {
    let here = std::env::current_dir().unwrap();
    let shared = |url| super::shared(url);
    assert_eq!(shared("sqlite:a.db?create=true"), format!("sqlite:{}", here.join("a.db").display()));
    assert_eq!(shared("sqlite:/x/a.db?create=true&max_ttl=1h"), "sqlite:/x/a.db?max_ttl=1h");
    assert_eq!(shared("sqlite:///x/a%3F%25.db"), "sqlite:///x/a%3F%25.db");
    assert_eq!(shared("memory:"), "memory:");
    assert_eq!(shared("no address"), "no address");
}

#[test]
fn what_is_shown_holds_no_password() {
    for (url, expected) in [
        ("postgres://alice:s3cret@db:5432/jobs?sslmode=require", "postgres://alice@db:5432/jobs?sslmode=require"),
        ("postgres://alice@db/jobs?password=s3cret&create=true", "postgres://alice@db/jobs?create=true"),
        ("postgres://alice:s3?cret@db/jobs?create=true", "postgres://alice@db/jobs?create=true"),
        ("postgres://alice:s3/cr@et@db/jobs", "postgres://alice@db/jobs"),
        ("postgres://alice@db/jobs?pasword=s3cret", "postgres://alice@db/jobs"),
        ("redis://:s3cret@host/3", "redis://@host/3"),
        ("redis+sentinel://u:a@s3cret@h1,h2/main?sentinel_password=s3cret", "redis+sentinel://u@h1,h2/main"),
        ("etcds://root:s3cret@e1,e2?name=x", "etcds://root@e1,e2?name=x"),
        ("etcd://e1:2379,e2:2379", "etcd://e1:2379,e2:2379"),
        // The host was forgotten.
        ("redis://alice:s3cret", "redis://alice"),
        ("postgres://alice:s3cret/jobs", "postgres://alice"),
        // What is no address is shown all the same, to be corrected.
        ("postgres:alice:s3cret@db", "postgres@db"),
        ("mysql://root:s3cret@db/x", "mysql://root@db/x"),
        ("alice:s3cret@db", "alice@db"),
        ("sqlite:/srv/a:b@c.db?create=true", "sqlite:/srv/a:b@c.db?create=true"),
    ] {
        assert_eq!(super::shown(url), expected);
    }
}
