//! The services without a server around them.

use super::service::NOW;
use crate::id;
use axum::body::Body;
use axum::http::Request;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use tempfile::TempDir;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, GrantId, ResourceName, SinkId, StoreIdentity, Token};
use tenure_grant::{KeyFolder, PublicKeys, Signer, SigningKey, Verifier, WallClock};
use tenure_sink::conformance::answered;
use tenure_sink::http::{KeySet, Kind, Problem, Routes};
use tenure_sink::{Answer, Description, Rows, Sink, SinkError, SqliteSink};
use tower_service::Service as _;

struct Alone {
    _folder: TempDir,
    sink: SqliteSink,
    routes: Routes,
    signer: Signer,
}

impl Alone {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sink = SqliteSink::create(folder.path().join("shop.sqlite"), id(), Rule::Sealed).unwrap();
        let clock = || WallClock::Manual(Arc::new(NOW.into()));
        let key = SigningKey::generate().unwrap();
        let verifier = Verifier::new(PublicKeys::new([key.public().clone()])).with_clock(clock());
        let signer = Signer::of_key(key, StoreIdentity::new("prod").unwrap()).with_clock(clock());
        Self { _folder: folder, routes: Routes::new(Arc::new(sink.clone()), verifier).operator("secret"), sink, signer }
    }

    fn post(&self, path: &str, headers: &[(&str, &[u8])], body: Vec<u8>) -> (u16, String) {
        post(&self.routes, path, headers, body)
    }
}

fn post(routes: &Routes, path: &str, headers: &[(&str, &[u8])], body: Vec<u8>) -> (u16, String) {
    let mut request = Request::builder().method("POST").uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = answered(routes.clone().call(request.body(Body::from(body)).unwrap())).unwrap();
    (response.status().as_u16(), response.into_body())
}

/// A value that a header can carry.
fn header() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(b'\t'), 0x20..=0x7e_u8, 0x80..=0xff_u8], 0..200),
        "[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,80}\\.[A-Za-z0-9_-]{0,90}".prop_map(String::into_bytes),
    ]
}

/// A body that looks more or less like one.
fn body() -> impl Strategy<Value = Vec<u8>> {
    let text = || prop_oneof!["\\PC{0,20}", Just("r@9:00000000000000000000000000000009".to_owned())];
    let seal = (text(), text(), prop::collection::vec(text(), 0..3)).prop_map(|(token, generation, enrolled)| {
        serde_json::json!({ "token": token, "generation": generation, "enrolled": enrolled }).to_string().into_bytes()
    });
    let forget = (text(), any::<u64>())
        .prop_map(|(resource, cut)| serde_json::json!({ "resource": resource, "cut": cut }).to_string().into_bytes());
    prop_oneof![any::<Vec<u8>>(), seal, forget]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Without a key and without the secret: whatever is sent is refused as the sender's fault, and nothing moves.
    #[test]
    fn whatever_is_sent_to_the_routes_moves_nothing(
        path in prop_oneof![Just("/seal"), Just("/forget"), Just("/reopen"), Just("/rows"), Just("/other")],
        token in header(),
        secret in header(),
        body in body(),
    ) {
        let alone = Alone::new();
        let resource = ResourceName::new("r").unwrap();
        let before = answered(alone.sink.describe(&resource)).unwrap();
        let (status, said) = alone.post(path, &[("tenure-token", &token), ("authorization", &secret)], body);
        prop_assert!((400..500).contains(&status), "{status}: {said}");
        prop_assert!(Problem::parse(said.as_bytes()).is_some(), "{said}");
        prop_assert_eq!(answered(alone.sink.describe(&resource)).unwrap(), before);
    }

    /// With a good grant of one token: no other one is sealed by it, whatever stands in the body.
    #[test]
    fn a_good_grant_seals_nothing_but_its_own_token(epoch in 1..=Epoch::MAX_VALUE, grant in any::<u128>(), name in "[a-z]{1,3}") {
        let alone = Alone::new();
        let mine = Token { resource: ResourceName::new("r").unwrap(), epoch: Epoch::new(7).unwrap(), grant: GrantId::from_bits(7) };
        let signed = alone.signer.sign(&mine, &BTreeSet::from([id()])).unwrap();
        let theirs = Token {
            resource: ResourceName::new(&name).unwrap(),
            epoch: Epoch::new(epoch).unwrap(),
            grant: GrantId::from_bits(grant),
        };
        let there = answered(alone.sink.describe(&theirs.resource)).unwrap();
        let body = serde_json::json!({ "token": theirs.to_string(), "generation": there.generation.as_str(), "enrolled": [] });
        let (status, said) = alone.post("/seal", &[("tenure-token", signed.as_str().as_bytes())], body.to_string().into_bytes());
        prop_assert_eq!(status == 200, theirs == mine, "{}", said);
        prop_assert_eq!(answered(alone.sink.describe(&theirs.resource)).unwrap().row.is_some(), theirs == mine);
    }
}

/// A sink whose store carries out what it is asked, and then does not answer.
#[derive(Debug)]
struct Deaf(SqliteSink);

impl Deaf {
    fn lose<T>(done: Result<T, SinkError>) -> Result<T, SinkError> {
        done?;
        Err(SinkError::Unreachable { place: "shop".to_owned(), why: "the connection broke".to_owned() })
    }
}

impl Sink for Deaf {
    fn id(&self) -> &SinkId {
        self.0.id()
    }

    fn rule(&self) -> Rule {
        self.0.rule()
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        self.0.describe(resource)
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        Box::pin(async move { Self::lose(self.0.seal(token, generation, enrolled).await) })
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        Box::pin(async move { Self::lose(self.0.forget(resource, cut).await) })
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        self.0.rows(after, limit)
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        Box::pin(async move { Self::lose(self.0.reopen().await) })
    }
}

/// The answer of the receiver's own store was lost, and the operator was told: busy, and nothing was changed.
#[test]
fn what_the_receivers_own_store_has_not_answered_is_not_called_undone() {
    let alone = Alone::new();
    let resource = ResourceName::new("r").unwrap();
    let generation = || answered(alone.sink.describe(&resource)).unwrap().generation;
    let before = generation();
    let routes =
        Routes::new(Arc::new(Deaf(alone.sink.clone())), Verifier::new(PublicKeys::default())).operator("secret");
    let (status, said) = post(&routes, "/reopen", &[("authorization", b"Bearer secret")], Vec::new());
    let problem = Problem::parse(said.as_bytes()).unwrap();
    assert_eq!((status, problem.kind), (504, Kind::Unreachable), "{said}");
    assert!(problem.detail.contains("not known"), "{said}");
    assert_ne!(generation(), before, "it was carried out");
}

#[test]
fn a_page_says_whether_there_are_more() {
    let alone = Alone::new();
    for name in ["a", "b", "c"] {
        let token =
            Token { resource: ResourceName::new(name).unwrap(), epoch: Epoch::FIRST, grant: GrantId::from_bits(7) };
        assert!(matches!(crate::seal(&alone.sink, &token), Ok(Sealing::Seal(_))));
    }
    let page = |after: Option<&str>, limit: usize| {
        let body = serde_json::json!({ "after": after, "limit": limit }).to_string();
        let (status, body) = alone.post("/rows", &[("authorization", b"Bearer secret")], body.into_bytes());
        let answer: serde_json::Value = serde_json::from_str(&body).unwrap();
        (status, answer["rows"].as_array().unwrap().len(), answer["more"].as_bool())
    };
    assert_eq!(page(None, 2), (200, 2, Some(true)));
    assert_eq!(page(Some("b"), 2), (200, 1, Some(false)));
    assert_eq!(page(None, 10), (200, 3, Some(false)));
}

#[test]
fn a_path_that_wants_another_method_says_which() {
    let alone = Alone::new();
    let ask = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
        let response = answered(alone.routes.clone().call(request)).unwrap();
        (response.status().as_u16(), response.headers().get("allow").map(|allow| allow.to_str().unwrap().to_owned()))
    };
    assert_eq!(ask("POST", "/"), (405, Some("GET".to_owned())));
    for path in ["/describe", "/seal", "/forget", "/reopen", "/rows"] {
        assert_eq!(ask("GET", path), (405, Some("POST".to_owned())));
    }
    assert_eq!(ask("GET", "/other"), (404, None));
}

/// A secret that was read from a file with the end of its line opened nothing.
#[test]
fn an_operators_secret_may_come_with_the_end_of_its_line() {
    let alone = Alone::new();
    let reopen = |secret: &str, shown: &[u8]| {
        let routes = Routes::new(Arc::new(alone.sink.clone()), Verifier::new(PublicKeys::default())).operator(secret);
        post(&routes, "/reopen", &[("authorization", shown)], Vec::new()).0
    };
    assert_eq!(reopen("secret\n", b"Bearer secret"), 200);
    assert_eq!(reopen(" \n", b"Bearer "), 401);
    assert_eq!(reopen("", b"Bearer "), 401);
}

#[test]
fn the_public_keys_are_served_and_nothing_else_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFolder::new(folder.path().join("keys"));
    let ask = |method: &str| {
        let request = Request::builder().method(method).uri("/").body(Body::empty()).unwrap();
        answered(KeySet::new(keys.clone()).call(request)).unwrap()
    };
    let none = ask("GET");
    assert_eq!(none.status(), 500);
    assert!(none.body().contains("tenure keys make") && !keys.path().exists(), "{}", none.body());
    keys.make().unwrap();
    let response = ask("GET");
    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].as_bytes()),
        (200, &b"application/jwk-set+json"[..])
    );
    assert_eq!(PublicKeys::parse(response.body().as_bytes()).unwrap(), keys.public_keys().unwrap());
    keys.rotate().unwrap();
    assert_eq!(PublicKeys::parse(ask("GET").body().as_bytes()).unwrap(), keys.public_keys().unwrap());
    let refused = ask("POST");
    assert_eq!((refused.status().as_u16(), refused.headers()["allow"].as_bytes()), (405, &b"GET, HEAD"[..]));
    assert!(!refused.body().contains("Use POST") && refused.body().contains("with GET"), "{}", refused.body());
}
