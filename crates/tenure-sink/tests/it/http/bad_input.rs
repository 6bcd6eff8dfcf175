//! What a service is sent by whoever likes: each is answered clearly, and moves nothing.

use super::raw::{self, Reply};
use super::service::{SECRET, Service, later, row};
use crate::{id, operation, token};
use std::collections::BTreeSet;
use tenure_core::fence::{FenceRow, Forgetting, Rule};
use tenure_core::{Epoch, GrantId, OperationId, ResourceName, SinkId, StoreIdentity, Token};
use tenure_grant::{Signer, SigningKey, WallClock};
use tenure_sink::Sink as _;
use tenure_sink::conformance::answered;

/// A holder of epoch 3 that has written, and what it left.
struct Held {
    service: Service,
    token: Token,
    row: Option<FenceRow>,
}

impl Held {
    fn new() -> Self {
        let (service, token) = (Service::start(Rule::Sealed), token(3));
        service.seal(&token);
        assert_eq!(service.post("/shop", &token, None, &[], "mine").status, 200);
        let row = row(&service, &token.resource);
        Self { service, token, row }
    }

    /// It is refused so, nothing has moved, and the holder can still write.
    #[track_caller]
    fn refused(&self, reply: &Reply, status: u16, kind: &str, says: &str) {
        assert_eq!(reply.status, status, "{reply:?}");
        let problem = reply.problem();
        assert_eq!(problem.kind.name(), kind, "{reply:?}");
        assert!(problem.detail.contains(says), "{reply:?}");
        assert_eq!(row(&self.service, &self.token.resource), self.row, "the fence has moved");
        assert_eq!(self.service.value(&self.token.resource).as_deref(), Some("mine"));
        assert_eq!(self.service.post("/shop", &self.token, None, &[], "mine").status, 200);
    }

    fn shop(&self, signed: &str) -> Reply {
        raw::send(self.service.address, "POST", "/shop", &[("tenure-token", signed)], b"theirs")
    }

    fn seal(&self, signed: Option<&str>, token: &str, enrolled: &[&str]) -> Reply {
        let generation = self.row.as_ref().unwrap().generation.to_string();
        let body = serde_json::json!({ "token": token, "generation": generation, "enrolled": enrolled }).to_string();
        let headers: Vec<_> = signed.iter().map(|signed| ("tenure-token", *signed)).collect();
        raw::send(self.service.address, "POST", "/tenure/seal", &headers, body.as_bytes())
    }

    fn sign(&self, token: &Token, sinks: &[&str]) -> String {
        sign(&self.service, token, sinks)
    }
}

fn sign(service: &Service, token: &Token, sinks: &[&str]) -> String {
    let sinks: BTreeSet<_> = sinks.iter().map(|sink| SinkId::new(sink).unwrap()).collect();
    service.signer.sign(token, &sinks).unwrap().as_str().to_owned()
}

/// Signed grants that are not good, with what is said of them.
fn bad(service: &Service, token: &Token) -> Vec<(String, u16, &'static str, &'static str)> {
    let largest = Token { epoch: Epoch::new(Epoch::MAX_VALUE).unwrap(), ..token.clone() };
    let stranger = Signer::of_key(SigningKey::generate().unwrap(), StoreIdentity::new("prod").unwrap())
        .with_clock(WallClock::Manual(std::sync::Arc::new(super::service::NOW.into())));
    let forged = stranger.sign(&largest, &BTreeSet::from([id()])).unwrap().as_str().to_owned();
    let good = service.signed(token);
    // The good one's signature under another payload.
    let (_, signature) = good.rsplit_once('.').unwrap();
    let (message, _) = forged.rsplit_once('.').unwrap();
    let header = good.split('.').next().unwrap();
    let spliced = format!("{header}.{}.{signature}", message.split('.').nth(1).unwrap());
    vec![
        (forged, 401, "unverified", "not known here"),
        (spliced, 401, "unverified", "signature is wrong"),
        (good[..good.len() - 2].to_owned(), 401, "unverified", "cut short"),
        (good[..40].to_owned(), 401, "unverified", "parts instead of three"),
        (
            "r@9223372036854775807:00000000000000000000000000000001".to_owned(),
            401,
            "unverified",
            "parts instead of three",
        ),
        ("x".repeat(9_000), 401, "unverified", "9000 bytes"),
        (sign(service, &largest, &["mail"]), 403, "elsewhere", "not for the receiver \"sink\""),
    ]
}

#[test]
fn a_write_without_a_good_signature_is_answered_by_the_layer() {
    let held = Held::new();
    let none = raw::send(held.service.address, "POST", "/shop", &[], b"theirs");
    held.refused(&none, 428, "token-required", "Tenure-Token");
    for (signed, status, kind, says) in bad(&held.service, &held.token) {
        let reply = held.shop(&signed);
        held.refused(&reply, status, kind, says);
        assert_eq!(reply.header("www-authenticate").is_some(), status == 401);
        assert!(signed.len() < 30 || !reply.body.contains(&signed), "the answer holds what was sent");
    }
    let good = held.service.signed(&held.token);
    let twice = [("tenure-token", good.as_str()), ("Tenure-Token", good.as_str())];
    let reply = raw::send(held.service.address, "POST", "/shop", &twice, b"theirs");
    held.refused(&reply, 400, "malformed", "there twice");
}

#[test]
fn an_expired_signature_and_clocks_that_differ_are_told_apart() {
    let held = Held::new();
    let signed = held.service.signed(&held.token);
    for (at, says) in [(300, "expired 0 s ago"), (1_000, "expired 700 s ago"), (-61, "good only 1 s from now")] {
        later(&held.service, at);
        let reply = held.shop(&signed);
        later(&held.service, 0);
        held.refused(&reply, 401, "unverified", says);
    }
    for at in [-60, 299] {
        later(&held.service, at);
        assert_eq!(held.shop(&signed).status, 200);
    }
}

/// The clause that signatures are there for: who has no key does not raise a fence, at whatever stage he comes.
#[test]
fn a_forged_epoch_moves_no_fence_at_any_stage() {
    let held = Held::new();
    let largest = Token { epoch: Epoch::new(Epoch::MAX_VALUE).unwrap(), ..held.token.clone() };
    let shouted = largest.to_string();
    held.refused(&held.seal(None, &shouted, &["sink"]), 428, "token-required", "signed grants alone");
    for (signed, status, kind, says) in bad(&held.service, &held.token) {
        // The receiver's own words for a grant that is good, and for somebody else.
        let (status, kind) = if status == 403 { (401, "unverified") } else { (status, kind) };
        held.refused(&held.seal(Some(&signed), &shouted, &["sink"]), status, kind, says);
    }
    let good = held.sign(&held.token, &["sink"]);
    held.refused(&held.seal(Some(&good), &shouted, &["sink"]), 401, "unverified", "epoch is wrong");
    let other = Token { grant: GrantId::from_bits(99), ..held.token.clone() };
    held.refused(&held.seal(Some(&good), &other.to_string(), &["sink"]), 401, "unverified", "jti is wrong");
    let elsewhere = Token { resource: ResourceName::new("other").unwrap(), ..held.token };
    held.refused(&held.seal(Some(&good), &elsewhere.to_string(), &["sink"]), 401, "unverified", "is for \"r\"");
    let sealed_nothing = row(&held.service, &elsewhere.resource);
    assert_eq!(sealed_nothing, None);
    // No receiver is enrolled whom the holder did not name.
    held.refused(
        &held.seal(Some(&good), &held.token.to_string(), &["sink", "theirs"]),
        401,
        "unverified",
        "does not name it",
    );
}

/// A name, and what leads there.
type Stage = (&'static str, fn(&Service));

/// What has happened at the receiver when the forged grant comes.
const STAGES: [Stage; 7] = [
    ("before the first seal", |_| ()),
    ("sealed", |service| service.seal(&token(3))),
    ("written", |service| {
        service.seal(&token(3));
        assert_eq!(service.post("/shop", &token(3), None, &[], "mine").status, 200);
    }),
    ("inside of a transaction", |service| {
        service.seal(&token(3));
        assert_eq!(service.post("/hold", &token(3), None, &[], "").status, 200);
    }),
    ("superseded", |service| {
        service.seal(&token(3));
        service.seal(&token(4));
    }),
    ("reopened", |service| {
        service.seal(&token(3));
        answered(service.database().reopen()).unwrap();
    }),
    ("forgotten", |service| {
        service.seal(&token(3));
        let forgotten = answered(service.database().forget(&token(3).resource, token(3).epoch)).unwrap();
        assert!(matches!(forgotten, Forgetting::Forget { .. }));
    }),
];

#[test]
fn a_forged_grant_moves_nothing_whatever_has_happened_before() {
    for (stage, prepare) in STAGES {
        let service = Service::start(Rule::Sealed);
        prepare(&service);
        let resource = token(3).resource;
        let state = || (answered(service.database().describe(&resource)).unwrap(), service.value(&resource));
        let (before, largest) = (state(), token(Epoch::MAX_VALUE));
        let forged = bad(&service, &token(3)).into_iter().map(|(signed, ..)| Some(signed));
        for signed in forged.chain([None]) {
            let headers: Vec<_> = signed.iter().map(|signed| ("tenure-token", signed.as_str())).collect();
            let generation = before.0.generation.as_str();
            let body =
                serde_json::json!({ "token": largest.to_string(), "generation": generation, "enrolled": ["sink"] });
            for (path, body) in [("/tenure/seal", body.to_string()), ("/shop", "theirs".to_owned())] {
                let reply = raw::send(service.address, "POST", path, &headers, body.as_bytes());
                assert!((400..500).contains(&reply.status), "{stage}, {path}: {reply:?}");
                assert_eq!(state(), before, "{stage}, {path}: {reply:?}");
            }
        }
    }
}

#[test]
fn a_good_grant_of_another_resource_does_not_write_here() {
    let held = Held::new();
    let mine = held.service.signed(&held.token);
    let post = |path: &str| raw::send(held.service.address, "POST", path, &[("tenure-token", &mine)], b"mine");
    assert_eq!(post("/of/r").status, 200);
    held.refused(&post("/of/other"), 403, "elsewhere", "the request is for \"other\"");
    held.refused(&post("/of/%FF"), 403, "elsewhere", "the request is for \"%FF\"");
}

#[test]
fn epochs_and_names_that_cannot_be_are_refused_by_the_seal() {
    let held = Held::new();
    let good = held.sign(&held.token, &["sink"]);
    let grant = held.token.grant;
    let cases = [
        (format!("r@9223372036854775808:{grant}"), "an epoch is at most 9223372036854775807"),
        (format!("r@0:{grant}"), "an epoch is positive"),
        (format!("r@-1:{grant}"), "decimal integer"),
        (format!("r\u{0}@3:{grant}"), "control character"),
        ("r@3:7".to_owned(), "32 hexadecimal digits"),
        (String::new(), "there is no '@'"),
    ];
    for (token, says) in cases {
        held.refused(&held.seal(Some(&good), &token, &["sink"]), 400, "malformed", says);
    }
    held.refused(&held.seal(Some(&good), &held.token.to_string(), &["a\u{0}b"]), 400, "malformed", "control character");
    let post = |body: &str| {
        raw::send(held.service.address, "POST", "/tenure/seal", &[("tenure-token", &good)], body.as_bytes())
    };
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "{\"token\":1}",
        "{\"token\":\"r@3:0\",\"generation\":\"g\",\"enrolled\":[],\"more\":1}",
    ] {
        held.refused(&post(body), 400, "malformed", "");
    }
    held.refused(&post(&" ".repeat(300_000)), 413, "too-large", "at most");
}

/// Quotes and what no SQL string or JSON would like: the same resource, operation and value come back.
#[test]
fn names_with_quotes_are_kept_apart_and_nuls_are_refused() {
    let service = Service::start(Rule::Sealed);
    let names = ["it's \"quoted\"", "'; DROP TABLE shop; --", "a\\b", "ü 😀", "%00", "{}"];
    for (name, bits) in names.iter().zip(1..) {
        let token =
            Token { resource: ResourceName::new(name).unwrap(), epoch: Epoch::FIRST, grant: GrantId::from_bits(bits) };
        service.seal(&token);
        let operation = OperationId::new(format!("op {name}")).unwrap();
        assert_eq!(service.post("/shop", &token, Some(&operation), &[], name).status, 200);
        let again = service.post("/shop", &token, Some(&operation), &[], name);
        assert_eq!((again.status, again.header("tenure-replay")), (200, Some("true")));
        assert_eq!(again.body, format!("wrote {name}"));
        assert_eq!(service.value(&token.resource).as_deref(), Some(*name));
    }
    let held = Held::new();
    let good = held.service.signed(&held.token);
    for key in ["%\"a%00b\"", "%\"a%0ab\"", "\"open", "\"\""] {
        let headers = [("tenure-token", good.as_str()), ("idempotency-key", key)];
        let reply = raw::send(held.service.address, "POST", "/shop", &headers, b"theirs");
        held.refused(&reply, 400, "malformed", "Idempotency-Key");
    }
    let headers = [("tenure-token", good.as_str()), ("idempotency-key", "a"), ("idempotency-key", "b")];
    held.refused(&raw::send(held.service.address, "POST", "/shop", &headers, b"x"), 400, "malformed", "there twice");
    held.refused(
        &held.service.post("/lookup", &held.token, None, &[], ""),
        400,
        "operation-required",
        "Idempotency-Key",
    );
}

#[test]
fn the_same_operation_with_other_content_is_a_conflict() {
    let held = Held::new();
    let first = held.service.post("/shop", &held.token, Some(&operation("one")), &[], "mine");
    assert_eq!(first.status, 200);
    let reply = held.service.post("/shop", &held.token, Some(&operation("one")), &[], "theirs");
    held.refused(&reply, 409, "conflict", "other content");
    assert_eq!(reply.problem().current, Some(held.token.epoch));
}

#[test]
fn a_late_writer_is_told_which_epoch_is_registered() {
    let service = Service::start(Rule::Sealed);
    service.seal(&token(3));
    service.seal(&token(4));
    let reply = service.post("/shop", &token(3), None, &[], "late");
    let problem = reply.problem();
    assert_eq!((reply.status, problem.kind.name()), (409, "stale"));
    assert_eq!((problem.presented, problem.current), (Some(token(3).epoch), Some(token(4).epoch)));
    assert!(reply.body.contains("Stop this worker."), "{reply:?}");
    let reply = service.post("/shop", &token(5), None, &[], "early");
    assert_eq!((reply.status, reply.problem().kind.name()), (409, "unsealed"));
    assert_eq!(service.value(&token(3).resource), None);
}

#[test]
fn the_operators_routes_are_for_who_has_the_secret() {
    let held = Held::new();
    let good = held.service.signed(&held.token);
    let bearer = format!("Bearer {SECRET}");
    let cut_off = &bearer[..bearer.len() - 1];
    for path in ["/tenure/forget", "/tenure/reopen", "/tenure/rows"] {
        let body = r#"{"resource":"r","cut":9}"#;
        for headers in
            [&[][..], &[("authorization", cut_off)], &[("authorization", SECRET)], &[("tenure-token", &good)]]
        {
            let reply = raw::send(held.service.address, "POST", path, headers, body.as_bytes());
            held.refused(&reply, 401, "operator-only", "secret");
        }
    }
    let forget = |cut: u64| {
        let body = format!(r#"{{"resource":"r","cut":{cut}}}"#);
        raw::send(held.service.address, "POST", "/tenure/forget", &[("authorization", &bearer)], body.as_bytes())
    };
    held.refused(&forget(1 << 63), 400, "malformed", "an epoch is at most");
    let reply = forget(2);
    assert!(reply.status == 200 && reply.body.contains("\"above\""), "{reply:?}");
    let reply = forget(3);
    assert!(reply.status == 200 && reply.body.contains("\"forgotten\""), "{reply:?}");
    assert_eq!(row(&held.service, &held.token.resource), None);
}

#[test]
fn other_paths_and_methods_are_told_what_there_is() {
    let held = Held::new();
    let ask = |method: &str, path: &str| raw::send(held.service.address, method, path, &[], b"");
    held.refused(&ask("POST", "/tenure/unseal"), 404, "not-found", "describe, seal");
    held.refused(&ask("GET", "/tenure/seal"), 405, "method", "GET");
    held.refused(&ask("DELETE", "/tenure/"), 405, "method", "DELETE");
    let about = ask("GET", "/tenure/");
    assert_eq!(about.status, 200);
    assert!(about.body.contains("\"signed\":true") && about.body.contains("\"id\":\"sink\""), "{about:?}");
}
