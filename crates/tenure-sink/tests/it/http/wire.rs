//! A receiver that does not answer as it should.

use super::service::Service;
use crate::token;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use tenure_core::fence::Rule;
use tenure_core::{Generation, SinkId};
use tenure_servers::Certificates;
use tenure_sink::conformance::answered;
use tenure_sink::http::{HttpSink, Problem};
use tenure_sink::{Sink, SinkError};

/// Answers one connection after the other with what it is given, and then no more.
fn speaking(answers: Vec<String>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            read_head(&mut stream);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// Reads the head of a request, which is all that matters here. `false` when none came.
fn read_head(stream: &mut impl std::io::Read) -> bool {
    let (mut read, mut piece) = (Vec::new(), [0; 4096]);
    while !read.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(count) => read.extend_from_slice(&piece[..count]),
        }
    }
    true
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

fn about() -> String {
    http("200 OK", "", r#"{"tenure_sink":1,"id":"sink","rule":"sealed","signed":true}"#)
}

#[test]
fn who_is_no_receiver_is_told_apart() {
    let open = |answer: String| HttpSink::open(&format!("http://{}/x", speaking(vec![answer]))).unwrap_err();
    let cases = [
        (http("404 Not Found", "", "nothing"), "is not there"),
        (http("200 OK", "", "<html>"), "is not a sink"),
        (http("200 OK", "", r#"{"tenure_sink":2,"id":"s","rule":"sealed","signed":true}"#), "schema version 2"),
        (http("200 OK", "", r#"{"tenure_sink":1,"id":"","rule":"sealed","signed":true}"#), "is not a sink"),
        (http("200 OK", "", r#"{"tenure_sink":1,"id":"s","rule":"open","signed":true}"#), "is not a sink"),
        (http("302 Found", "location: http://127.0.0.1:1/\r\n", ""), "status 302"),
        (http("401 Unauthorized", "", "log in"), "status 401"),
        (http("503 Service Unavailable", "", "starting"), "cannot be reached"),
        ("nonsense\r\n\r\n".to_owned(), "cannot be reached"),
        (String::new(), "cannot be reached"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{".to_owned(), "cannot be reached"),
    ];
    for (answer, says) in cases {
        let error = open(answer.clone());
        assert!(error.to_string().contains(says), "{answer:?}: {error}");
    }
}

#[test]
fn an_answer_that_does_not_come_is_not_known_and_may_be_asked_for_again() {
    let generation = Generation::new("g").unwrap();
    let none = BTreeSet::<SinkId>::new();
    // Its own store has not answered it.
    let lost = SinkError::Unreachable { place: "shop".to_owned(), why: "the connection broke".to_owned() };
    let lost = Problem::of_error(&lost).into_response();
    let lost = http(lost.status().as_str(), "", lost.body());
    for answer in [String::new(), http("502 Bad Gateway", "", ""), "HTTP/1.1 200 OK\r\n".to_owned(), lost] {
        let address = speaking(vec![about(), answer]);
        let sink = HttpSink::open(&format!("http://{address}/x")).unwrap();
        let error = answered(sink.seal_signed("a.b.c", &token(1), &generation, &none)).unwrap_err();
        assert!(matches!(error, SinkError::Unreachable { .. }) && error.is_transient(), "{error}");
        assert!(!error.to_string().contains("a.b.c"), "{error}");
    }
    // Nobody is there.
    let sink = {
        let address = speaking(vec![about()]);
        HttpSink::open(&format!("http://{address}/x")).unwrap()
    };
    let error = answered(sink.describe(&token(1).resource)).unwrap_err();
    assert!(error.is_transient(), "{error}");
}

/// A receiver that gave fewer rows at once than were asked for was taken to have no more of them, and a restored authority
/// learnt only of those.
#[test]
fn a_receiver_that_gives_few_rows_at_once_is_asked_until_it_has_no_more() {
    let row = |name: &str| {
        let grant = "0".repeat(32);
        format!(
            r#"{{"resource":"{name}","epoch":1,"grant":"{grant}","generation":"g","seal_no":1,"enrolled":["sink"]}}"#
        )
    };
    let page = |rows: &[&str], more: &str| {
        let rows = rows.iter().map(|name| row(name)).collect::<Vec<_>>().join(",");
        http("200 OK", "", &format!(r#"{{"rows":[{rows}],"floor":null{more}}}"#))
    };
    let list = |pages: Vec<String>, limit: usize| {
        let address = speaking([vec![about()], pages].concat());
        let sink = HttpSink::open(&format!("http://{address}/x")).unwrap();
        let listed = answered(sink.rows(None, limit))?;
        Ok::<_, SinkError>(listed.rows.iter().map(|(resource, _)| resource.to_string()).collect::<Vec<_>>())
    };
    let (more, no_more) = (r#","more":true"#, r#","more":false"#);
    let pages = || vec![page(&["a", "b"], more), page(&["c", "d"], more), page(&["e"], no_more)];
    assert_eq!(list(pages(), 10).unwrap(), ["a", "b", "c", "d", "e"]);
    assert_eq!(list(pages(), 3).unwrap(), ["a", "b", "c"]);
    // A program of before does not say it.
    assert_eq!(list(vec![page(&["a", "b"], "")], 10).unwrap(), ["a", "b"]);
    assert_eq!(list(vec![page(&["a", "b"], ""), page(&["c"], "")], 2).unwrap(), ["a", "b"]);
    // One that would be asked for ever.
    let error = list(vec![page(&[], more)], 10).unwrap_err();
    assert!(matches!(error, SinkError::Foreign { .. }) && error.to_string().contains("gives none"), "{error}");
}

/// A server that accepts and says nothing, as a stopped process does.
#[test]
fn a_silent_receiver_is_given_up_after_the_time_to_wait() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/x?wait=200ms", listener.local_addr().unwrap());
    let error = HttpSink::open(&url).unwrap_err();
    assert!(error.to_string().contains("does not answer in time"), "{error}");
}

/// The same as [`speaking`], behind a certificate of these.
fn speaking_tls(certificates: &Certificates, answers: Vec<String>) -> SocketAddr {
    let chain = CertificateDer::pem_file_iter(certificates.certificate()).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(certificates.key()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((stream, _)) = listener.accept() else { return };
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            // A client that trusts nobody here does not even ask.
            if read_head(&mut stream) {
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    address
}

#[test]
fn an_encrypted_receiver_is_asked_only_when_its_certificate_is_trusted() {
    let certificates = Certificates::make();
    let address = speaking_tls(&certificates, vec![about(), about(), about()]);
    let trusting = |ca: &str| HttpSink::open(&format!("https://{address}/x{ca}"));
    let error = trusting("").unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let other = Certificates::make();
    let error = trusting(&format!("?tls_ca={}", other.ca().display())).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    let sink = trusting(&format!("?tls_ca={}", certificates.ca().display())).unwrap();
    assert_eq!(sink.id().as_str(), "sink");
}

#[test]
fn a_refused_seal_and_a_missing_secret_say_what_to_do() {
    let service = Service::start(Rule::Sealed);
    let sink = HttpSink::open(&format!("http://{}/tenure/", service.address)).unwrap();
    let generation = answered(sink.describe(&token(1).resource)).unwrap().generation;
    let error = answered(sink.seal(&token(1), &generation, &BTreeSet::new())).unwrap_err();
    assert!(matches!(error, SinkError::Unverified { .. }) && !error.is_transient(), "{error}");
    let error = answered(sink.reopen()).unwrap_err().to_string();
    assert!(error.contains("?secret=FILE"), "{error}");
    assert!(!format!("{:?}", service.sink()).contains("secret of the tests"));
}

#[test]
fn a_place_is_checked_when_it_is_opened() {
    let cases = [
        ("http://", "write http://HOST:PORT/PATH"),
        ("http:///x", "write http://HOST:PORT/PATH"),
        ("http://127.0.0.1:1/x?wait=5", "250ms, 5s, 2m, 1h"),
        ("http://127.0.0.1:1/x?rule=sealed", "it has wait, tls_ca, secret"),
        ("http://127.0.0.1:1/x?secret=nowhere", "secret nowhere"),
        ("https://127.0.0.1:1/x?tls_ca=nowhere.pem", "tls_ca nowhere.pem holds no certificates"),
        ("http://user:hidden@127.0.0.1:1/x", "leave it out"),
    ];
    for (url, says) in cases {
        let error = tenure_sink::connect(url).unwrap_err();
        assert!(matches!(error, SinkError::Address { .. }), "{url}: {error:?}");
        let message = error.to_string();
        assert!(message.contains(says) && !message.contains("hidden"), "{url}: {message}");
    }
    // Without its second slash, which is where the search for a password began.
    let error = HttpSink::open("http:/user:hidden@127.0.0.1:1/x").unwrap_err().to_string();
    assert!(error.contains("write http://HOST:PORT/PATH") && !error.contains("hidden"), "{error}");
    let error = tenure_sink::connect("http://127.0.0.1:1/x").unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }), "{error:?}");
}
