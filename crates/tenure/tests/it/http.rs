//! A client that shows its lease to a service behind HTTP.

use crate::receivers::id;
use crate::stage::{RESOURCE, Stage, TTL};
use axum::extract::{Extension, State};
use axum::http::Response;
use axum::response::IntoResponse as _;
use axum::routing::post;
use axum::{Router, body::Bytes};
use reqwest::redirect::Policy;
use reqwest_middleware::ClientWithMiddleware;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tenure::core::Replayed;
use tenure::core::fence::Rule;
use tenure::grant::{KeyFolder, Verifier};
use tenure::http::{NotDone, Sent, ShowLease, sent};
use tenure::sink::http::{HttpSink, Kind, Routes, TokenLayer, answer, answer_error};
use tenure::sink::{ApplyError, SinkError, SqliteFence, SqliteSink, digest_of};
use tenure::{Lease, OperationId, Outcome, Tenure, Token, Verdict};

/// A shop whose orders stand in SQLite, with the fence in the transaction of each.
struct Shop {
    stage: Stage,
    folder: TempDir,
    address: SocketAddr,
    orders: Arc<Orders>,
}

struct Orders {
    path: std::path::PathBuf,
    asked: AtomicUsize,
}

impl Shop {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.sqlite");
        let sink = SqliteSink::create(&path, id("shop"), Rule::Sealed).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE orders (content TEXT)").unwrap();
        let verifier = Verifier::of_folder(KeyFolder::new(folder.path().join("keys")));
        let orders = Arc::new(Orders { path, asked: AtomicUsize::new(0) });
        let tokens = TokenLayer::new(verifier.clone(), id("shop")).wants_operation();
        let router = Router::new()
            .route("/orders", post(order))
            .route("/cut-off", post(cut_off))
            .route("/broken", post(broken))
            .route("/lost", post(lost))
            .route("/moved", post(moved))
            .route("/picky", post(picky))
            .route("/newer", post(newer))
            .layer(tokens)
            .with_state(Arc::clone(&orders))
            .nest_service("/tenure", Routes::new(Arc::new(sink), verifier));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { stage: Stage::new(), folder, address, orders }
    }

    /// A holder whose receiver is the shop, over HTTP.
    async fn lease(&self, name: &str) -> Lease {
        let keys = self.folder.path().join("keys");
        let worker = Tenure::builder().owner(name).clock(self.stage.clock()).keys(keys);
        let worker = worker.over(self.stage.store()).await.unwrap();
        let url = format!("http://{}/tenure", self.address);
        let sink = tokio::task::spawn_blocking(move || HttpSink::open(&url)).await.unwrap().unwrap();
        worker.acquire(RESOURCE).sink(Arc::new(sink)).wait(Duration::ZERO).await.unwrap()
    }

    fn client(&self, lease: &Lease, policy: Policy) -> ClientWithMiddleware {
        let show = ShowLease::new(lease.checkpoint(), &format!("http://{}/anything", self.address)).unwrap();
        reqwest_middleware::ClientBuilder::new(plain(policy)).with(show).build()
    }

    async fn order(&self, lease: &Lease, operation: &str, content: &str) -> Sent {
        self.send(lease, "/orders", Some(operation), content).await
    }

    async fn send(&self, lease: &Lease, path: &str, operation: Option<&str>, content: &str) -> Sent {
        let client = self.client(lease, Policy::none());
        let mut request = client.post(format!("http://{}{path}", self.address)).body(content.to_owned());
        if let Some(operation) = operation {
            request = request.with_extension(OperationId::new(operation).unwrap());
        }
        sent(request.send().await).await
    }

    fn orders(&self) -> Vec<String> {
        let connection = rusqlite::Connection::open(&self.orders.path).unwrap();
        let mut all = connection.prepare("SELECT content FROM orders").unwrap();
        all.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn asked(&self) -> usize {
        self.orders.asked.load(Ordering::SeqCst)
    }
}

/// The provider is given explicitly: this workspace's client brings none along.
fn plain(policy: Policy) -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let client = reqwest::Client::builder().no_proxy().redirect(policy);
    client.tls_backend_preconfigured(tls).build().unwrap()
}

async fn order(
    State(orders): State<Arc<Orders>>,
    Extension(token): Extension<Token>,
    Extension(operation): Extension<OperationId>,
    body: Bytes,
) -> Response<String> {
    orders.asked.fetch_add(1, Ordering::SeqCst);
    let work = move || {
        let mut connection = rusqlite::Connection::open(&orders.path).unwrap();
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        let applied = SqliteFence::new(Rule::Sealed).apply(&tx, &token, &operation, &digest_of(&body), |tx| {
            let content = String::from_utf8_lossy(&body);
            tx.execute("INSERT INTO orders VALUES (?1)", [&*content])?;
            Ok::<_, rusqlite::Error>(Outcome::new(format!("ordered {content}")).unwrap())
        });
        match applied {
            Ok(verdict) => {
                tx.commit().unwrap();
                answer(&verdict, &token).unwrap_or_else(|| Response::new("ordered".to_owned()))
            }
            Err(ApplyError::Sink(error)) => answer_error(&error),
            Err(ApplyError::Effect(error)) => panic!("{error}"),
        }
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Does it, and breaks the connection off.
async fn cut_off(
    orders: State<Arc<Orders>>,
    token: Extension<Token>,
    operation: Extension<OperationId>,
    body: Bytes,
) -> Response<String> {
    order(orders, token, operation, body).await;
    panic!("the server ends here, as it should in this test")
}

/// Does it, and its own store does not tell it so.
async fn lost(
    orders: State<Arc<Orders>>,
    token: Extension<Token>,
    operation: Extension<OperationId>,
    body: Bytes,
) -> Response<String> {
    order(orders, token, operation, body).await;
    answer_error(&SinkError::Unreachable { place: "shop".to_owned(), why: "the connection broke".to_owned() })
}

/// Does it, and sends the client on.
async fn moved(
    orders: State<Arc<Orders>>,
    token: Extension<Token>,
    operation: Extension<OperationId>,
    body: Bytes,
) -> axum::response::Redirect {
    let order = order(orders, token, operation, body).await;
    axum::response::Redirect::to(&format!("/orders?{}", order.status().as_u16()))
}

/// Does nothing, and says so in its own words.
async fn picky() -> axum::response::Response {
    problem("https://shop.example/too-late", 422)
}

/// As a newer program may answer.
async fn newer() -> axum::response::Response {
    problem("urn:tenure:problem:newer", 409)
}

fn problem(kind: &str, status: u16) -> axum::response::Response {
    let body = format!(r#"{{"type":"{kind}","title":"x","status":{status},"detail":"x"}}"#);
    let kind = [(http::header::CONTENT_TYPE, "application/problem+json")];
    (http::StatusCode::from_u16(status).unwrap(), kind, body).into_response()
}

/// Does it, and says that it failed.
async fn broken(
    orders: State<Arc<Orders>>,
    token: Extension<Token>,
    operation: Extension<OperationId>,
    body: Bytes,
) -> Response<String> {
    let mut response = order(orders, token, operation, body).await.map(|_| "oh".to_owned());
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_the_same_at_both_ends() {
    let shop = Shop::open().await;
    let lease = shop.lease("a").await;
    match shop.order(&lease, "one", "tea").await {
        Sent::Taken(response) => assert_eq!(response.text().await.unwrap(), "ordered"),
        other => panic!("{other:?}"),
    }
    let replayed = Replayed { epoch: lease.epoch(), outcome: Outcome::new("ordered tea").unwrap() };
    match shop.order(&lease, "one", "tea").await {
        Sent::Verdict(verdict) => assert_eq!(verdict, Verdict::Replay(replayed)),
        other => panic!("{other:?}"),
    }
    match shop.order(&lease, "one", "milk").await {
        Sent::Verdict(verdict) => {
            assert_eq!(verdict, Verdict::Conflict { current: lease.epoch() });
            // One of content, which the holder's own look tells from a loss.
            lease.heed(&id("shop"), &verdict).await.unwrap();
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(shop.orders(), ["tea"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_holder_is_refused_and_a_lost_one_sends_nothing() {
    let shop = Shop::open().await;
    let old = shop.lease("a").await;
    // Taken away, and it has not heard of it yet.
    shop.stage.revoke(old.token()).await;
    let new = shop.lease("b").await;
    match shop.order(&old, "late", "tea").await {
        Sent::Verdict(verdict) => {
            assert_eq!(verdict, Verdict::Stale { presented: old.epoch(), current: new.epoch() });
            old.heed(&id("shop"), &verdict).await.unwrap_err();
        }
        other => panic!("{other:?}"),
    }
    let asked = shop.asked();
    match shop.order(&old, "later", "tea").await {
        Sent::NotDone(NotDone::Lost(lost)) => assert_eq!(&lost.token, old.token()),
        other => panic!("{other:?}"),
    }
    assert_eq!((shop.asked(), shop.orders().len()), (asked, 0), "it was sent all the same");
    shop.stage.advance(TTL);
    assert!(matches!(shop.order(&new, "late", "tea").await, Sent::NotDone(NotDone::Lost(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_answered_is_unknown_and_settled_by_the_same_operation() {
    let shop = Shop::open().await;
    let lease = shop.lease("a").await;
    for (path, operation) in [("/cut-off", "one"), ("/broken", "two"), ("/lost", "three")] {
        let sent = shop.send(&lease, path, Some(operation), operation).await;
        assert!(matches!(sent, Sent::Unknown { .. }), "{path}: {sent:?}");
        // It has taken effect, as the same operation again finds.
        match shop.order(&lease, operation, operation).await {
            Sent::Verdict(Verdict::Replay(replayed)) => {
                assert_eq!(replayed.outcome.as_str(), format!("ordered {operation}"))
            }
            other => panic!("{path}: {other:?}"),
        }
    }
    assert_eq!(shop.orders(), ["one", "two", "three"]);
}

/// A client that followed redirects took the page at their end for the service's answer.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_answered_elsewhere_is_unknown() {
    let shop = Shop::open().await;
    let lease = shop.lease("a").await;
    let request = shop.client(&lease, Policy::default()).post(format!("http://{}/moved", shop.address)).body("tea");
    let moved = sent(request.with_extension(OperationId::new("one").unwrap()).send().await).await;
    match moved {
        Sent::Unknown { why } => assert!(why.contains("redirect(Policy::none())"), "{why}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(shop.orders(), ["tea"]);
    // A fragment is not sent, and is no other place.
    let here = shop.client(&lease, Policy::default()).post(format!("http://{}/picky?a=b#here", shop.address));
    let here = sent(here.with_extension(OperationId::new("two").unwrap()).send().await).await;
    assert!(matches!(&here, Sent::Taken(response) if response.status() == 422), "{here:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_services_own_problem_is_its_own_answer() {
    let shop = Shop::open().await;
    let lease = shop.lease("a").await;
    match shop.send(&lease, "/picky", Some("one"), "tea").await {
        Sent::Taken(response) => {
            assert_eq!((response.status().as_u16(), response.url().path()), (422, "/picky"));
            assert!(response.text().await.unwrap().contains("shop.example"));
        }
        other => panic!("{other:?}"),
    }
    let newer = shop.send(&lease, "/newer", Some("one"), "tea").await;
    assert!(matches!(newer, Sent::Unknown { .. }), "{newer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_certainly_not_done_is_told_from_that() {
    let shop = Shop::open().await;
    let lease = shop.lease("a").await;
    match shop.send(&lease, "/orders", None, "tea").await {
        Sent::NotDone(NotDone::Refused { problem }) => assert_eq!(problem.kind, Kind::OperationRequired),
        other => panic!("{other:?}"),
    }
    // Nobody is at that port any more.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let show = ShowLease::new(lease.checkpoint(), &format!("http://{gone}")).unwrap();
    let client = reqwest_middleware::ClientBuilder::new(plain(Policy::none())).with(show).build();
    let not_sent = sent(client.post(format!("http://{gone}/orders")).send().await).await;
    assert!(matches!(&not_sent, Sent::NotDone(why @ NotDone::NotSent { .. }) if why.is_transient()), "{not_sent:?}");
    // The lease is shown to one service alone.
    let elsewhere = sent(client.post(format!("http://{}/orders", shop.address)).send().await).await;
    match elsewhere {
        Sent::NotDone(why @ NotDone::Elsewhere { .. }) => assert!(why.to_string().contains("nothing was sent")),
        other => panic!("{other:?}"),
    }
    assert_eq!((shop.asked(), shop.orders().len()), (0, 0));
    assert!(ShowLease::new(lease.checkpoint(), "shop").is_err());
    assert!(!format!("{client:?}").contains("eyJ"), "a signed grant is shown");
}
