use super::{fresh, made, open, try_read};
use tenure_authority::StoreError;
use tenure_servers::{Certificates, Redis, eventually};

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    let cases = [
        ("redis://", "write HOST:PORT"),
        ("redis://host:port", "write HOST:PORT"),
        ("redis:host", "redis://HOST:PORT/DB"),
        ("redis://a,b/0", "redis+sentinel://"),
        ("redis://host/x", "no number of a database"),
        ("redis://host?name=a{b", "letters, digits"),
        ("redis://host?name=", "letters, digits"),
        ("redis://host?color=red", "it has create, max_ttl, name"),
        ("redis://host?max_ttl=48h", "give at most"),
        ("redis://host?timeout=0s", "at most 60s"),
        ("redis://host?replicas=some", "write replicas=1"),
        ("redis://host?tls_ca=/ca.pem", "write rediss://"),
        ("rediss://host?tls_ca=/not/there.pem", "/not/there.pem cannot be read"),
        ("redis+sentinel://a,b", "PRIMARY"),
        ("redis+sentinel://a:x/main", "write HOST:PORT"),
    ];
    for (url, right) in cases {
        let error = open(url).expect_err(url);
        assert!(matches!(error, StoreError::Address { .. }), "{url}: {error:?}");
        let message = error.to_string();
        assert!(message.contains(right), "{url}: {message}");
    }
}

/// It is named, and is not in any message, also when it holds what an address is made of.
#[test]
fn a_wrong_password_is_named_and_not_shown() {
    let server = Redis::options().requirepass("s3cret/?@").start();
    let port = server.port();
    for (user, right) in [("", "wants a password"), (":wr0ng@", "refuses"), ("somebody:wr0ng@", "refuses")] {
        let store = open(&fresh(&format!("redis://{user}127.0.0.1:{port}"))).expect("an address");
        let error = try_read(&store).expect_err(user);
        assert!(matches!(error, StoreError::Address { .. }) && !error.is_transient(), "{error:?}");
        let message = error.to_string();
        assert!(message.contains(right) && message.contains(&port.to_string()), "{message}");
        assert!(!format!("{message} {error:?} {store:?}").contains("wr0ng"), "{message} {store:?}");
    }
    let store = made(&format!("redis://:s3cret%2F%3F%40@127.0.0.1:{port}"));
    assert!(!format!("{store:?}").contains("s3cret"), "{store:?}");
    for forgot in ["redis://app:s3cret", "redis://:s3cret/0", "redis+sentinel://h,a:s3cret/p"] {
        let error = open(forgot).expect_err("no host");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    let error = open("redis+sentinel://h/p?sentinel_password=s3cret&x=y").expect_err("no such parameter");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
}

#[test]
fn what_is_not_there_is_named() {
    let server = Redis::shared();
    let nobody = open("redis://127.0.0.1:1/0").expect("an address");
    let error = try_read(&nobody).expect_err("nobody listens there");
    assert!(matches!(error, StoreError::Unavailable(_)) && error.to_string().contains("127.0.0.1:1"), "{error}");
    let missing = open(&format!("{}?name=not-there", server.url())).expect("an address");
    let error = try_read(&missing).expect_err("there is none");
    assert!(matches!(error, StoreError::Missing(_)) && error.to_string().contains("create=true"), "{error}");
    assert_eq!(server.cli(&["exists", "{not-there}:store"]), "0");
    let database = open(&format!("{}/999999?create=true", server.url())).expect("an address");
    let error = try_read(&database).expect_err("so many there are not");
    assert!(matches!(error, StoreError::Address { .. }) && error.to_string().contains("999999"), "{error}");
}

#[test]
fn another_max_ttl_than_the_store_s_is_refused() {
    let url = fresh(&Redis::shared().url());
    try_read(&open(&url).expect("an address")).expect("a new store");
    let other = open(&url.replace("max_ttl=2m", "max_ttl=3m")).expect("an address");
    let message = try_read(&other).expect_err("it is fixed").to_string();
    assert!(message.contains("120s") && message.contains("leave max_ttl out"), "{message}");
    try_read(&open(&url.replace("&max_ttl=2m", "")).expect("an address")).expect("the store's own");
}

#[test]
fn a_new_store_has_ten_minutes() {
    let url = fresh(&Redis::shared().url()).replace("&max_ttl=2m", "");
    let found = try_read(&open(&url).expect("an address")).expect("a new store");
    assert_eq!(found.view.authority.max_ttl.get(), std::time::Duration::from_mins(10));
}

#[test]
fn tls_is_spoken_with_whom_the_given_file_vouches_for() {
    let server = Redis::options().tls().start();
    let url = server.tls_url();
    made(&format!("{url}?tls_ca={}", server.ca().display()));
    let made = Certificates::make();
    for distrusted in [url.clone(), format!("{url}?tls_ca={}", made.ca().display())] {
        let store = open(&fresh(&distrusted)).expect("an address");
        let error = try_read(&store).expect_err("nobody vouches for it");
        assert!(matches!(error, StoreError::Unavailable(_)) && error.to_string().contains("tls_ca"), "{error}");
    }
}

/// Whoever finds no server finds it once it is there.
#[test]
fn a_server_that_comes_later_is_found() {
    let server = Redis::start();
    let store = made(&server.url());
    server.kill();
    let error = try_read(&store).expect_err("it is gone");
    assert!(error.is_transient(), "{error}");
    server.restart();
    eventually("the store is read again", || try_read(&store).ok());
}
