//! On a server that speaks S3: addresses, credentials, a proxy that loses answers, and writers that are killed.

use super::wire::{Gate, Trouble, Wire};
use super::{LONG, operation, sent, written};
use crate::process::{Process, job, say};
use crate::{id, token};
use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::prefix::PrefixStore;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::Rule;
use tenure_core::{Replayed, Verdict};
use tenure_servers::{Proxy, S3};
use tenure_sink::conformance::answered;
use tenure_sink::object::{Fate, ObjectSink};
use tenure_sink::{Lookup, Sink, SinkError, connect, shown};

/// The address of a sink on a server.
pub(super) fn url(server: &S3, prefix: &str, rule: Rule) -> String {
    let (bucket, endpoint) = (server.bucket(), server.endpoint());
    format!("s3://{bucket}/{prefix}?endpoint={endpoint}&region=us-east-1&rule={}&id={}", rule.name(), id())
}

/// The server's bucket, as whoever brings a store of their own has it.
pub(super) fn store(server: &S3) -> Arc<dyn ObjectStore> {
    at(&server.endpoint(), server)
}

fn at(endpoint: &str, server: &S3) -> Arc<dyn ObjectStore> {
    // It makes its connections by itself, and asks the process for a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let [(_, key), (_, secret)] = server.credentials();
    let built = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_bucket_name(server.bucket())
        .with_access_key_id(key)
        .with_secret_access_key(secret)
        .build();
    Arc::new(built.unwrap())
}

/// The same below a prefix that nobody else has.
pub(super) fn prefixed(server: &S3) -> Arc<dyn ObjectStore> {
    Arc::new(PrefixStore::new(store(server), server.prefix()))
}

fn create(server: &S3, prefix: &str) -> ObjectSink {
    let url = format!("{}&create=true", url(server, prefix, Rule::Sealed));
    ObjectSink::at_with(&url, server.credentials()).unwrap().with_wait(LONG)
}

fn value(sink: &ObjectSink) -> Option<String> {
    let content = answered(sink.read(&super::resource(), "value")).unwrap();
    content.map(|content| String::from_utf8(content.to_vec()).unwrap())
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    let cases = [
        ("s3://", "write s3://BUCKET/PREFIX"),
        ("s3:bucket", "there is no sink called"),
        ("s3://B", "no name of a bucket"),
        ("s3://a/x", "no name of a bucket"),
        ("s3://KEY:SECRET@bucket/x", "AWS_ACCESS_KEY_ID"),
        ("s3://bucket/x?endpoint=host:9000", "write endpoint=https://HOST:PORT"),
        ("s3://bucket/x?endpoint=http://a:SECRET@host", "AWS_ACCESS_KEY_ID"),
        ("s3://bucket/x?secret=SECRET", "it has id, rule, create, wait, endpoint, region, tls_ca"),
        ("s3://bucket/x?rule=open", "write sealed, high-water or held"),
        ("s3://bucket/x?wait=0s", "at most 1m"),
        ("s3://bucket/x?id=", "choose one with id=NAME"),
        ("s3://bucket/x?tls_ca=/not/there.pem", "/not/there.pem"),
    ];
    for (url, right) in cases {
        let error = connect(url).expect_err(url);
        assert!(matches!(error, SinkError::Address { .. }), "{url}: {error:?}");
        let message = format!("{error} {error:?}");
        assert!(message.contains(right), "{url}: {message}");
        assert!(!message.contains("SECRET"), "{url}: {message}");
    }
    for prefix in ["a//b", "../x", "a/./b"] {
        let error = ObjectSink::at_with(&format!("s3://bucket/{prefix}"), credentials("k", "s")).unwrap_err();
        assert!(matches!(error, SinkError::Address { .. }), "{prefix}: {error:?}");
    }
    assert_eq!(shown("s3://bucket/x?endpoint=http://h:1&token=SECRET"), "s3://bucket/x?endpoint=http://h:1");
}

fn credentials<'a>(key: &'a str, secret: &'a str) -> [(&'static str, &'a str); 2] {
    [("AWS_ACCESS_KEY_ID", key), ("AWS_SECRET_ACCESS_KEY", secret)]
}

#[test]
fn its_usual_id_opens_it_and_holds_no_secret() {
    let server = S3::shared();
    let (prefix, endpoint) = (server.prefix(), server.endpoint());
    let address = format!("s3://{}/{prefix}/a%20b?endpoint={endpoint}/&region=us-east-1", server.bucket());
    let made = ObjectSink::at_with(&format!("{address}&create=true"), server.credentials()).unwrap();
    assert_eq!(made.id().as_str(), format!("s3://{}/{prefix}/a b?endpoint={endpoint}", server.bucket()));
    let found = ObjectSink::at_with(made.id().as_str(), server.credentials()).unwrap();
    assert_eq!(found.id(), made.id());
    // Who names the endpoint in the environment means the same sink.
    let mut variables = server.credentials().map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    variables.push(("AWS_ENDPOINT_URL".to_owned(), endpoint));
    variables.push(("AWS_CONDITIONAL_PUT".to_owned(), "disabled".to_owned()));
    let short = format!("s3://{}/{prefix}/a%20b", server.bucket());
    let found = ObjectSink::at_with(&short, variables).unwrap();
    assert_eq!(found.id(), made.id());
    for said in [format!("{made:?}"), made.id().to_string()] {
        server.credentials().iter().for_each(|(_, secret)| assert!(!said.contains(secret), "{said}"));
    }
}

#[test]
fn what_is_wrong_with_the_server_or_the_credentials_is_named() {
    let server = S3::shared();
    let address = url(server, &server.prefix(), Rule::Sealed);
    let [(_, key), (_, secret)] = server.credentials();
    for wrong in [credentials(key, "wr0ng"), credentials("n0body", secret)] {
        let error = ObjectSink::at_with(&format!("{address}&create=true"), wrong).unwrap_err();
        let said = format!("{error} {error:?}");
        assert!(said.contains("docs/object-sink.md") || said.contains("credentials"), "{said}");
        for secret in ["wr0ng", secret, "n0body"] {
            assert!(!said.contains(secret), "{said}");
        }
    }
    let error = ObjectSink::at_with(&address, [("AWS_ACCESS_KEY_ID", key)]).unwrap_err();
    assert!(
        error.to_string().contains("AWS_SECRET_ACCESS_KEY") || error.to_string().contains("SecretAccessKey"),
        "{error}"
    );
    let missing = address.replace(server.bucket(), "no-such-bucket");
    let error = ObjectSink::at_with(&format!("{missing}&create=true"), server.credentials()).unwrap_err();
    assert!(error.to_string().contains("no bucket of this name"), "{error}");
    let error = ObjectSink::at_with(&address, server.credentials()).unwrap_err();
    assert!(matches!(error, SinkError::Missing { .. }), "{error:?}");
    let nobody = address.replace(&server.endpoint(), "http://127.0.0.1:1");
    let error = ObjectSink::at_with(&nobody, server.credentials()).unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }) && error.to_string().contains("127.0.0.1:1"), "{error:?}");
}

/// The answer to the one put that decides is lost on the way; the write finds out by itself that it stands.
#[test]
fn a_lost_answer_is_looked_for() {
    let server = S3::shared();
    let prefix = server.prefix();
    create(server, &prefix);
    let proxy = Proxy::to(server.addr().port());
    let through = proxy.url(&url(server, &prefix, Rule::Sealed));
    let sink = ObjectSink::at_with(&through, server.credentials()).unwrap().with_wait(LONG);
    assert!(matches!(crate::seal(&sink, &token(1)), Ok(tenure_core::fence::Sealing::Seal(_))));
    let order = operation("order-17", "paid");
    proxy.drop_answer_to(b"order-17");
    assert_eq!(sent(sink.write(&token(1)).put("value", "paid").once(&order)).unwrap(), written());
    assert_eq!(proxy.lost(), 1);
    // Without an operation it is found as well: by the nonce.
    proxy.drop_answer_to(b"a-bare-name");
    assert_eq!(sent(sink.write(&token(1)).put("a-bare-name", "paid")).unwrap(), written());
    assert_eq!(proxy.lost(), 2);
    let (_, manifest) = manifest(server, &prefix);
    assert_eq!(manifest["operations"].as_array().unwrap().len(), 1);
    assert_eq!(manifest["names"].as_object().unwrap().len(), 2);
}

/// Nobody answers from the put on: that is unknown, and ends with a look-up. Before it, it is an error.
#[test]
fn a_connection_that_breaks_for_good_is_unknown() {
    let server = S3::shared();
    let prefix = server.prefix();
    let direct = create(server, &prefix);
    let proxy = Proxy::to(server.addr().port());
    let through = format!("{}&wait=1s", proxy.url(&url(server, &prefix, Rule::Sealed)));
    let sink = ObjectSink::at_with(&through, server.credentials()).unwrap();
    let _ = crate::seal(&direct, &token(1)).unwrap();
    let order = operation("order-18", "paid");
    proxy.hold_answers();
    let fate = sent(sink.write(&token(1)).remove("none").once(&order));
    assert!(matches!(&fate, Err(tenure_sink::ApplyError::Sink(error)) if error.is_transient()), "{fate:?}");
    proxy.heal();
    assert_eq!(sent(sink.write(&token(1)).put("value", "first")).unwrap(), written());
    // It remembers the manifest now, and asks nothing before the put.
    proxy.hold_answers();
    let fate = sent(sink.write(&token(1)).remove("value").once(&order)).unwrap();
    assert!(matches!(&fate, Fate::Unknown { .. }), "{fate:?}");
    let _ = crate::seal(&direct, &token(2)).unwrap();
    let found = answered(direct.lookup(&token(2), &order.id)).unwrap().unwrap();
    assert!(matches!(&found, Lookup::Found(found) if found.epoch == token(1).epoch), "{found:?}");
    assert_eq!(value(&direct), None);
}

#[test]
fn a_server_that_is_stopped_costs_the_bound_and_one_that_comes_back_has_all() {
    let server = S3::start();
    let sink = create(&server, "shop").with_wait(Duration::from_millis(500));
    let patient = sink.clone().with_wait(LONG);
    let _ = crate::seal(&patient, &token(1)).unwrap();
    assert_eq!(sent(patient.write(&token(1)).put("value", "first")).unwrap(), written());
    server.pause();
    let error = crate::seal(&sink, &token(2)).unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }) && error.to_string().contains("in time"), "{error:?}");
    server.resume();
    server.restart();
    assert_eq!(value(&patient).as_deref(), Some("first"));
    assert_eq!(answered(patient.describe(&super::resource())).unwrap().row.map(|row| row.epoch), Some(token(1).epoch));
    assert_eq!(sent(patient.write(&token(1)).put("value", "second")).unwrap(), written());
}

fn manifest(server: &S3, prefix: &str) -> (object_store::path::Path, serde_json::Value) {
    let shop = super::Shop {
        store: Arc::new(PrefixStore::new(store(server), prefix)),
        sink: ObjectSink::at_with(&url(server, prefix, Rule::Sealed), server.credentials()).unwrap(),
    };
    let mut all = shop.keys_below("manifests");
    let (key, body) = all.remove(0);
    (key, serde_json::from_slice(&body).unwrap())
}

const ENTRY: &str = "object::s3::child";

/// What the children do. In the ordinary run there is no job.
#[test]
fn child() {
    let Some((job, place)) = job() else { return };
    let (endpoint, prefix) = (std::env::var("TEST_ENDPOINT").unwrap(), place.display().to_string());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let built = AmazonS3Builder::from_env().with_endpoint(endpoint).with_allow_http(true).with_bucket_name("tests");
    let wire = Wire::to(Arc::new(built.build().unwrap()));
    let sink = ObjectSink::open(wire.clone(), &prefix, id(), Rule::Sealed).unwrap().with_wait(LONG);
    let gate = Gate::closed();
    let trouble = match job.as_str() {
        "before-the-swap" => Trouble::Gate(Arc::clone(&gate)),
        "after-the-swap" => Trouble::LoseAnswer,
        other => panic!("no such job: {other}"),
    };
    wire.plan("manifests", trouble);
    wire.hold_reads(Arc::clone(&gate));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            gate.wait();
            say("there");
        });
        let _ = sent(sink.write(&token(1)).put("value", "paid").once(&operation("order-19", "paid")));
    });
}

/// Killed between the data and the manifest, and between the manifest and its answer: one effect in the end, and what lies there
/// without a name is removed.
#[test]
fn a_writer_that_is_killed_leaves_all_of_it_or_nothing() {
    let server = S3::shared();
    for (job, stood) in [("before-the-swap", false), ("after-the-swap", true)] {
        let prefix = server.prefix();
        let sink = create(server, &prefix);
        let _ = crate::seal(&sink, &token(1)).unwrap();
        let mut writer = Process::start_as(ENTRY, job, Path::new(&prefix), |command| {
            command.env("TEST_ENDPOINT", server.endpoint()).envs(server.credentials())
        });
        assert_eq!(writer.hear().as_deref(), Some("there"));
        writer.kill();
        assert_eq!(value(&sink).as_deref(), stood.then_some("paid"), "{job}");
        let _ = crate::seal(&sink, &token(2)).unwrap();
        let order = operation("order-19", "paid");
        let looked = answered(sink.lookup(&token(2), &order.id)).unwrap().unwrap();
        assert_eq!(matches!(looked, Lookup::Found(_)), stood, "{job}: {looked:?}");
        let expected = if stood {
            Fate::Judged(Verdict::Replay(Replayed { epoch: token(1).epoch, outcome: order.outcome.clone() }))
        } else {
            written()
        };
        assert_eq!(sent(sink.write(&token(2)).put("value", "paid").once(&order)).unwrap(), expected);
        assert_eq!(value(&sink).as_deref(), Some("paid"));
        let collected = answered(sink.collect(&token(2))).unwrap().unwrap();
        assert_eq!((collected.removed, collected.kept), (u64::from(!stood), 1), "{job}");
    }
}
