//! A service without transactions: what was begun, and what came of it.

use super::raw;
use super::service::{Service, response, row};
use crate::{operation, token};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use axum::routing::any;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tenure_core::fence::Rule;
use tenure_sink::http::OnceLayer;
use tokio::sync::watch;

/// Tells that a request has come, and waits until it may go on.
type Hold = (watch::Sender<bool>, watch::Receiver<bool>);

/// A handler that counts how often it ran, and can be held.
#[derive(Clone, Default)]
struct Mailer {
    sent: Arc<AtomicUsize>,
    hold: Arc<Mutex<Option<Hold>>>,
}

impl Mailer {
    async fn handle(self, method: Method, headers: HeaderMap, body: Bytes) -> Response {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let hold = self.hold.lock().unwrap().take();
        if let Some((arrived, mut go_on)) = hold {
            arrived.send_replace(true);
            let _ = go_on.wait_for(|go_on| *go_on).await;
        }
        if headers.contains_key("x-breaks-off") {
            return Response::new(Body::new(BreaksOff::default()));
        }
        let status = headers.get("x-status").map_or(200, |status| status.to_str().unwrap().parse().unwrap());
        response(status, format!("{method}: sent {}", String::from_utf8_lossy(&body)))
    }

    /// The next request is held until the returned sender says so; the receiver tells when it has come.
    fn hold(&self) -> (watch::Receiver<bool>, watch::Sender<bool>) {
        let ((arrived, has_arrived), (release, released)) = (watch::channel(false), watch::channel(false));
        *self.hold.lock().unwrap() = Some((arrived, released));
        (has_arrived, release)
    }

    fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
}

/// A body that ends in its middle.
#[derive(Default)]
struct BreaksOff(bool);

impl http_body::Body for BreaksOff {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, std::io::Error>>> {
        let has_begun = std::mem::replace(&mut self.0, true);
        Poll::Ready(Some(match has_begun {
            false => Ok(http_body::Frame::data(Bytes::from_static(b"sent to the fir"))),
            true => Err(std::io::Error::other("the list of addresses is gone")),
        }))
    }
}

fn start() -> (Service, Mailer) {
    let mailer = Mailer::default();
    let service = Service::with(Rule::Sealed, |router, sink, tokens| {
        let handler = mailer.clone();
        let mail = any(move |method: Method, headers: HeaderMap, body: Bytes| handler.handle(method, headers, body));
        let mail = Router::new().route("/mail", mail).layer(OnceLayer::new(sink.clone())).layer(tokens);
        router.merge(mail)
    });
    service.seal(&token(1));
    (service, mailer)
}

fn arrived(mut hold: watch::Receiver<bool>) {
    tenure_sink::conformance::answered(hold.wait_for(|arrived| *arrived)).unwrap();
}

#[test]
fn an_operation_runs_once_and_its_response_comes_again() {
    let (service, mailer) = start();
    let post =
        |body: &str, more: &[(&str, &str)]| service.post("/mail", &token(1), Some(&operation("one")), more, body);
    let first = post("hello", &[]);
    assert_eq!((first.status, first.body.as_str(), first.header("tenure-replay")), (200, "POST: sent hello", None));
    for _ in 0..2 {
        let again = post("hello", &[]);
        assert_eq!((again.status, again.body.as_str()), (200, "POST: sent hello"));
        assert_eq!((again.header("tenure-replay"), again.header("tenure-epoch")), (Some("true"), Some("1")));
    }
    assert_eq!(mailer.sent(), 1);
    let other = post("other", &[]);
    assert_eq!((other.status, other.problem().kind.name()), (409, "conflict"));
    // The next holder asks for the same operation, and gets what the first one got.
    service.seal(&token(2));
    let next = service.post("/mail", &token(2), Some(&operation("one")), &[], "hello");
    assert_eq!((next.header("tenure-replay"), next.body.as_str()), (Some("true"), "POST: sent hello"));
    let late = post("hello", &[]);
    assert_eq!((late.status, late.problem().kind.name()), (409, "stale"));
    assert_eq!(mailer.sent(), 1);
}

/// Under HTTP/2, or asked by another of its names, the address holds the host as well, and a repetition was called a conflict.
#[test]
fn the_same_operation_may_be_asked_for_under_another_name_of_the_host() {
    let (service, mailer) = start();
    let post = |path: &str| service.post(path, &token(1), Some(&operation("one")), &[], "hello");
    assert_eq!(post("/mail?a=b").status, 200);
    let again = post("http://shop.internal/mail?a=b");
    assert_eq!((again.header("tenure-replay"), again.body.as_str()), (Some("true"), "POST: sent hello"));
    assert_eq!(post("/mail?a=c").problem().kind.name(), "conflict");
    assert_eq!(mailer.sent(), 1);
}

#[test]
fn a_refusal_is_kept_and_a_failure_is_unknown() {
    let (service, mailer) = start();
    let post = |name: &str, status: &str| {
        service.post("/mail", &token(1), Some(&operation(name)), &[("x-status", status)], "hello")
    };
    assert_eq!(post("refused", "422").status, 422);
    let again = post("refused", "422");
    assert_eq!((again.status, again.header("tenure-replay")), (422, Some("true")));
    // It does not know itself what it has done.
    assert_eq!(post("failed", "500").status, 500);
    for _ in 0..2 {
        let again = post("failed", "200");
        assert_eq!((again.status, again.problem().kind.name()), (409, "unknown"));
        assert!(again.body.contains("Do not repeat it"), "{again:?}");
    }
    assert_eq!(mailer.sent(), 2);
}

/// "Too many requests" was kept as what the operation had come to, so that the same operation never got through.
#[test]
fn what_was_not_done_for_now_may_be_asked_for_again() {
    let (service, mailer) = start();
    let post =
        |status: &str| service.post("/mail", &token(1), Some(&operation("busy")), &[("x-status", status)], "hello");
    for status in ["429", "425", "429"] {
        let reply = post(status);
        assert_eq!((reply.status.to_string().as_str(), reply.header("tenure-replay")), (status, None));
    }
    assert_eq!((post("200").status, mailer.sent()), (200, 4));
    let again = post("200");
    assert_eq!((again.status, again.header("tenure-replay"), mailer.sent()), (200, Some("true"), 4));
    // What was begun again is unknown like any other when nothing is heard of its end.
    let post =
        |status: &str| service.post("/mail", &token(1), Some(&operation("fails")), &[("x-status", status)], "hello");
    assert_eq!([post("429").status, post("503").status], [429, 503]);
    assert_eq!((post("200").problem().kind.name(), mailer.sent()), ("unknown", 6));
}

/// A handler that was given up by a time limit in front of it may have done all of its work.
#[test]
fn a_handler_that_was_given_up_leaves_an_unknown() {
    let (service, mailer) = start();
    let post =
        |status: &str| service.post("/mail", &token(1), Some(&operation("slow")), &[("x-status", status)], "hello");
    assert_eq!(post("408").status, 408);
    assert_eq!((post("200").problem().kind.name(), mailer.sent()), ("unknown", 1));
}

/// What a handler had begun to say was cut off, and kept as an empty answer with status 200.
#[test]
fn a_response_that_breaks_off_is_unknown() {
    let (service, mailer) = start();
    let post = || service.post("/mail", &token(1), Some(&operation("one")), &[("x-breaks-off", "1")], "hello");
    let first = post();
    assert_eq!((first.status, first.problem().kind.name()), (409, "unknown"));
    assert!(first.body.contains("the list of addresses is gone"), "{first:?}");
    assert_eq!((post().problem().kind.name(), mailer.sent()), ("unknown", 1));
}

#[test]
fn a_client_that_goes_away_meanwhile_leaves_an_unknown() {
    let (service, mailer) = start();
    let (has_arrived, release) = mailer.hold();
    let signed = service.signed(&token(1));
    let headers = [("tenure-token", signed.as_str()), ("idempotency-key", "one")];
    let stream = raw::begin(service.address, "POST", "/mail", &headers, b"hello");
    arrived(has_arrived);
    drop(stream);
    // The handler was dropped where it stood, or runs on: nobody is told.
    let again = service.post("/mail", &token(1), Some(&operation("one")), &[], "hello");
    assert_eq!((again.status, again.problem().kind.name()), (409, "unknown"));
    release.send_replace(true);
    assert_eq!(mailer.sent(), 1);
}

/// What the layer cannot prevent, and says: the effect lands after the takeover.
#[test]
fn a_takeover_while_the_handler_runs_is_noticed_and_not_prevented() {
    let (service, mailer) = start();
    let (has_arrived, release) = mailer.hold();
    let reply = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| service.post("/mail", &token(1), Some(&operation("one")), &[], "hello"));
        arrived(has_arrived);
        service.seal(&token(2));
        release.send_replace(true);
        waiting.join().unwrap()
    });
    assert_eq!((reply.status, reply.problem().kind.name()), (409, "unknown"));
    assert!(reply.body.contains("changed hands"), "{reply:?}");
    assert_eq!(mailer.sent(), 1, "it ran");
    // The new holder does not run it again either.
    let next = service.post("/mail", &token(2), Some(&operation("one")), &[], "hello");
    assert_eq!(next.problem().kind.name(), "unknown");
    assert_eq!(mailer.sent(), 1);
}

#[test]
fn nothing_is_begun_without_a_token_that_is_sealed_here() {
    let (service, mailer) = start();
    let unsealed = service.post("/mail", &token(9), Some(&operation("one")), &[], "hello");
    assert_eq!((unsealed.status, unsealed.problem().kind.name()), (409, "unsealed"));
    let without = service.post("/mail", &token(1), None, &[], "hello");
    assert_eq!((without.status, without.problem().kind.name()), (400, "operation-required"));
    let long = operation(&"x".repeat(512));
    assert_eq!(service.post("/mail", &token(1), Some(&long), &[], "hello").status, 400);
    let large = service.post("/mail", &token(1), Some(&operation("large")), &[], &"x".repeat(1_100_000));
    assert_eq!((large.status, mailer.sent()), (413, 0));
    assert!(row(&service, &token(1).resource).is_some());
}
