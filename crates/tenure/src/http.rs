//! Writes to a receiver behind HTTP: each request shows the lease, and its answer is a verdict again.
//!
//! # What is not guaranteed
//!
//! * **Not** that a request is not sent twice. Whoever sends it again must send the same [`OperationId`]; then it takes effect
//!   once, if the service has a fence that keeps records.
//! * **Not** that a lost lease takes back what is on its way. It may still arrive; the receiver's fence decides about it.
//! * **Not** that a redirect is safe. The signed grant is a password for some minutes, and `reqwest` carries it to wherever a
//!   redirect points: build the client with `redirect(Policy::none())`. What was answered elsewhere is [`Sent::Unknown`].
//! * **Not** that [`NotDone`] speaks of an operation. It speaks of this one request: what was sent before under the same
//!   [`OperationId`], by the program or by a client that repeats by itself, may have taken effect.
//!
//! ```no_run
//! # async fn example(lease: tenure::Lease, client: reqwest::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use tenure::http::{Sent, ShowLease, sent};
//!
//! let show = ShowLease::new(lease.checkpoint(), "https://shop.internal")?;
//! let client = reqwest_middleware::ClientBuilder::new(client).with(show).build();
//! let request = client.post("https://shop.internal/orders").with_extension(tenure::OperationId::new("order-7")?);
//! match sent(request.body("two of them").send().await).await {
//!     Sent::Taken(response) => println!("{}", response.text().await?),
//!     Sent::Verdict(verdict) => lease.heed(&"shop".parse()?, &verdict).await?,
//!     Sent::NotDone(why) => println!("nothing was done: {why}"),
//!     Sent::Unknown { why } => println!("look before it is sent again: {why}"),
//! }
//! # Ok(())
//! # }
//! ```

use crate::checkpoint::Checkpoint;
use crate::error::{Lost, SigningError};
use http::{Extensions, HeaderValue, StatusCode};
use reqwest::{Request, Response, ResponseBuilderExt as _, Url};
use reqwest_middleware::{Error, Middleware, Next, Result};
use std::fmt;
use std::pin::Pin;
use tenure_core::{Epoch, OperationId, Outcome, Replayed, Verdict};
use tenure_sink::http::{IDEMPOTENCY_KEY, Kind, Problem, TENURE_EPOCH, TENURE_REPLAY, TENURE_TOKEN, written_key};

/// The longest answer of a fence: the outcome of a replay, and some more.
const BYTES_MAX: usize = 1024 * 1024;

/// Shows a lease at each request: a middleware for `reqwest-middleware`.
///
/// It signs anew each time, adds `Tenure-Token`, and `Idempotency-Key` from the request's [`OperationId`] extension. Once the
/// lease is lost it sends nothing more. It shows the lease to one service, and refuses to send anything elsewhere.
pub struct ShowLease {
    checkpoint: Checkpoint,
    origin: Url,
}

/// The address is none of a service.
#[derive(Debug, thiserror::Error)]
#[error("{address:?} is no service to show a lease to: write http://HOST:PORT or https://HOST:PORT")]
pub struct OriginError {
    /// What was given.
    pub address: String,
}

impl ShowLease {
    /// To the service at this address, of which only scheme, host and port count.
    ///
    /// # Errors
    /// [`OriginError`] when it is no such address.
    pub fn new(checkpoint: Checkpoint, service: &str) -> std::result::Result<Self, OriginError> {
        let origin = Url::parse(service).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let origin = origin.ok_or_else(|| OriginError { address: service.to_owned() })?;
        Ok(Self { checkpoint, origin })
    }

    fn show(&self, request: &mut Request, extensions: &Extensions) -> std::result::Result<(), NotDone> {
        if request.url().origin() != self.origin.origin() {
            return Err(NotDone::Elsewhere {
                wanted: self.origin.origin().ascii_serialization(),
                found: request.url().origin().ascii_serialization(),
            });
        }
        let signed = self.checkpoint.signed().map_err(|error| match error {
            SigningError::Lost(lost) => NotDone::Lost(lost),
            error => NotDone::Unsigned(error),
        })?;
        let headers = request.headers_mut();
        // Signed texts are ASCII.
        if let Ok(mut value) = HeaderValue::from_str(signed.as_str()) {
            value.set_sensitive(true);
            headers.insert(TENURE_TOKEN, value);
        }
        if let Some(operation) = extensions.get::<OperationId>() {
            headers.insert(IDEMPOTENCY_KEY, written_key(operation));
        }
        Ok(())
    }
}

impl fmt::Debug for ShowLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.checkpoint.token();
        f.debug_struct("ShowLease").field("token", token).field("origin", &self.origin.origin()).finish()
    }
}

impl Middleware for ShowLease {
    fn handle<'life0, 'life1, 'life2, 'async_trait>(
        &'life0 self,
        mut request: Request,
        extensions: &'life1 mut Extensions,
        next: Next<'life2>,
    ) -> Pin<Box<dyn Future<Output = Result<Response>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        'life2: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            self.show(&mut request, extensions).map_err(Error::middleware)?;
            let asked = request.url().clone();
            let response = next.run(request, extensions).await?;
            if is_elsewhere(&asked, response.url()) {
                return Err(Error::middleware(Redirected { to: response.url().origin().ascii_serialization() }));
            }
            Ok(response)
        })
    }
}

/// Whether a redirect was followed: then the answer is to another request, and may be another service's.
fn is_elsewhere(asked: &Url, answered: &Url) -> bool {
    // A fragment is not sent.
    let sent = |url: &Url| (url.origin(), url.path().to_owned(), url.query().map(str::to_owned));
    sent(asked) != sent(answered)
}

#[derive(Debug, thiserror::Error)]
#[error(
    "it was redirected, and {to} has answered, which does not say whether it took effect; build the client with \
     redirect(Policy::none())"
)]
struct Redirected {
    to: String,
}

/// What is known after a request.
#[derive(Debug)]
#[must_use = "only `Taken` and a replay mean that it stands"]
pub enum Sent {
    /// The service's own response, of whatever status below 500.
    Taken(Response),
    /// The service's fence has answered: a replay, or a refusal. Hand it to [`Lease::heed`](crate::Lease::heed).
    Verdict(Verdict),
    /// This request certainly took no effect. One that was sent before with the same [`OperationId`] may have.
    NotDone(NotDone),
    /// Nobody knows whether it took effect: no answer came, or one that proves nothing. It is never a failure. Look first, or
    /// send it again with the same [`OperationId`] to a service that keeps records.
    Unknown {
        /// What is known of it.
        why: String,
    },
}

/// Why a request certainly took no effect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotDone {
    /// The lease is lost; nothing was sent.
    #[error(transparent)]
    Lost(Lost),
    /// The grant cannot be signed; nothing was sent.
    #[error(transparent)]
    Unsigned(SigningError),
    /// The request is for another service; nothing was sent.
    #[error("this client shows its lease to {wanted} alone, and the request is for {found}: nothing was sent")]
    Elsewhere {
        /// Where it is shown.
        wanted: String,
        /// Where the request would have gone.
        found: String,
    },
    /// No connection came about; nothing was sent, if the client follows no redirects.
    #[error("no connection came about: {why}")]
    NotSent {
        /// What went wrong.
        why: String,
    },
    /// The service refused it before anything was done.
    #[error("the service refused it ({}): {}", problem.kind.name(), problem.detail)]
    Refused {
        /// What it says.
        problem: Problem,
    },
}

impl NotDone {
    /// Whether the same request may pass by being sent again, without anybody doing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        match self {
            Self::NotSent { .. } => true,
            Self::Refused { problem } => matches!(problem.kind, Kind::Busy),
            _ => false,
        }
    }
}

/// Reads what became of a request.
pub async fn sent(result: Result<Response>) -> Sent {
    match result {
        Ok(response) => read(response).await,
        Err(Error::Middleware(error)) => match error.downcast::<NotDone>() {
            Ok(not_done) => Sent::NotDone(not_done),
            Err(other) => Sent::Unknown { why: other.to_string() },
        },
        Err(Error::Reqwest(error)) if error.is_connect() || error.is_builder() => {
            Sent::NotDone(NotDone::NotSent { why: innermost(&error) })
        }
        Err(Error::Reqwest(error)) => Sent::Unknown { why: innermost(&error) },
    }
}

async fn read(response: Response) -> Sent {
    let status = response.status();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if status.is_success() && header(TENURE_REPLAY) == Some("true") {
        let epoch = header(TENURE_EPOCH).and_then(|epoch| epoch.parse::<Epoch>().ok());
        return replayed(epoch, body(response).await);
    }
    let is_problem =
        header(http::header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("application/problem+json"));
    if !is_problem {
        return if status.is_server_error() { nothing_known(status) } else { Sent::Taken(response) };
    }
    let (url, head) = (response.url().clone(), response.headers().clone());
    let Ok(body) = body(response).await else { return nothing_known(status) };
    match Problem::parse(&body) {
        Some(problem) => refused(problem, status),
        None if status.is_server_error() || Problem::is_ours(&body) => nothing_known(status),
        // The service speaks the same language of its own matters.
        None => {
            let mut again = http::Response::builder().status(status).url(url);
            if let Some(headers) = again.headers_mut() {
                *headers = head;
            }
            again.body(body).map_or_else(|_| nothing_known(status), |response| Sent::Taken(response.into()))
        }
    }
}

/// A replay whose outcome cannot be read stands all the same; but what it ended with is not known.
fn replayed(epoch: Option<Epoch>, body: std::result::Result<Vec<u8>, String>) -> Sent {
    let outcome = body.and_then(|body| String::from_utf8(body).map_err(|error| error.to_string()));
    let outcome = outcome.and_then(|outcome| Outcome::new(outcome).map_err(|error| error.to_string()));
    match (epoch, outcome) {
        (Some(epoch), Ok(outcome)) => Sent::Verdict(Verdict::Replay(Replayed { epoch, outcome })),
        (None, _) => Sent::Unknown { why: "it was applied before, and under which epoch is not said".to_owned() },
        (_, Err(why)) => Sent::Unknown { why: format!("it was applied before, and its outcome cannot be read: {why}") },
    }
}

fn refused(problem: Problem, status: StatusCode) -> Sent {
    if let Some(verdict) = problem.verdict() {
        return Sent::Verdict(verdict);
    }
    match problem.kind {
        // The fence could not judge, or nobody knows what came of it.
        Kind::Unknown | Kind::Unreachable | Kind::Failed => Sent::Unknown { why: problem.detail },
        // A verdict without its epochs.
        Kind::Stale | Kind::Conflict | Kind::Unsealed => nothing_known(status),
        _ => Sent::NotDone(NotDone::Refused { problem }),
    }
}

fn nothing_known(status: StatusCode) -> Sent {
    Sent::Unknown { why: format!("it was answered with status {status}, which does not say whether it took effect") }
}

async fn body(mut response: Response) -> std::result::Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| innermost(&error))? {
        if body.len() + piece.len() > BYTES_MAX {
            return Err("it is too long".to_owned());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// What really went wrong: the outer errors only say that a request failed.
fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer came in time".to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
