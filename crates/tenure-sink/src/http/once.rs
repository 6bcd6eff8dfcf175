//! For services that have no transaction of their own: what was begun is written down, and so is what came of it.

use super::TENURE_EPOCH;
use super::TENURE_REPLAY;
use super::problem::{Kind, Problem};
use crate::{Answer, Lookup, SinkError, digest_of};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Limited};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tenure_core::{Digest, Epoch, OperationId, Outcome, TEXT_BYTES_MAX, Token, Verdict};
use tower_layer::Layer;
use tower_service::Service;

/// The longest body of a request, which is read whole: its digest tells a repetition from another request.
const BYTES_MAX: usize = 1024 * 1024;

/// In front of an operation's id, for the record that it was begun for the `n`th time.
fn begun(n: u64) -> String {
    if n == 0 { "begun:".to_owned() } else { format!("begun-{n}:") }
}

/// The same, for the record that nothing was done then.
fn undone(n: u64) -> String {
    format!("undone-{n}:")
}

/// What a status says of the work.
enum Ended {
    /// It is over, whether it was done or refused.
    Over,
    /// Nothing was done, and it may be asked for again.
    Undone,
    /// The handler does not know itself what it has done.
    Unknown,
}

impl Ended {
    fn with(status: StatusCode) -> Self {
        match status {
            StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS => Self::Undone,
            StatusCode::REQUEST_TIMEOUT => Self::Unknown,
            status if status.is_server_error() => Self::Unknown,
            _ => Self::Over,
        }
    }
}

/// Where it is written down: a fence with its records.
pub trait Journal: Send + Sync + 'static {
    /// Checks the token and records the operation with its outcome, at most once, in one durable step.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was recorded, or it is not known.
    fn record<'a>(
        &'a self,
        token: &'a Token,
        operation: &'a OperationId,
        digest: &'a Digest,
        outcome: &'a Outcome,
    ) -> Answer<'a, Result<Verdict, SinkError>>;

    /// Checks the token and looks the operation up.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out.
    fn lookup<'a>(
        &'a self,
        token: &'a Token,
        operation: &'a OperationId,
    ) -> Answer<'a, Result<Result<Lookup, Verdict>, SinkError>>;
}

/// Runs a handler at most once for each operation. It stands behind [`TokenLayer`](super::TokenLayer).
///
/// # What is not guaranteed
///
/// **This is check-then-act.** The token is judged before the handler runs and again after it, and not while it runs: an effect
/// that is under way when a takeover is announced lands after it. That is noticed, and answered as `unknown`; it is not
/// prevented. Where the effect has a transaction, put the fence into it and leave this layer out.
///
/// # What is
///
/// * An operation whose token is stale, or not sealed here, is not begun.
/// * An operation is begun once. That it was begun is durable before the handler runs.
/// * One that has ended is answered with its first response again, under `Tenure-Replay: true`, whoever asks: status,
///   `Content-Type`, and the body when it is a text of at most 8 KiB. A longer one, and other headers, are not kept.
/// * One that was begun, and of which no outcome is known, is answered as `unknown` and never run again by itself: after a
///   crash, after a client that went away while it ran, after a response with a status of 408, or of 500 or above, or that broke
///   off, and when the takeover came first.
///
/// A handler that has done nothing says so with a status of 400 to 499. It is kept as the outcome, but for 425 and 429, after
/// which the operation may be begun again; each such time leaves two records in the journal.
#[derive(Clone)]
pub struct OnceLayer {
    journal: Arc<dyn Journal>,
}

impl OnceLayer {
    /// With this journal.
    #[must_use]
    pub fn new(journal: impl Journal) -> Self {
        Self { journal: Arc::new(journal) }
    }
}

impl fmt::Debug for OnceLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLayer").finish_non_exhaustive()
    }
}

impl<S> Layer<S> for OnceLayer {
    type Service = OnceService<S>;
    fn layer(&self, inner: S) -> OnceService<S> {
        OnceService { inner, layer: self.clone() }
    }
}

/// A service behind a [`OnceLayer`].
#[derive(Clone, Debug)]
pub struct OnceService<S> {
    inner: S,
    layer: OnceLayer,
}

/// A response, as its outcome keeps it.
#[derive(Serialize, Deserialize)]
struct Kept {
    status: u16,
    kind: Option<String>,
    /// `None` when it was too long to be kept, or no text.
    body: Option<String>,
}

/// One request's operation, and the two records of it.
struct Once {
    journal: Arc<dyn Journal>,
    token: Token,
    operation: OperationId,
    digest: Digest,
    /// How often it was begun before, and nothing was done.
    times: u64,
}

impl Once {
    /// `None` when it was begun just now; otherwise the response.
    async fn begin(&mut self) -> Result<Option<Response<String>>, Problem> {
        while !self.note(&begun(self.times)).await? {
            let undone = self.marked(&undone(self.times))?;
            match self.journal.lookup(&self.token, &undone).await.map_err(failed)? {
                Ok(Lookup::Found(_)) => self.times += 1,
                Ok(Lookup::Absent) => return self.ended().await.map(Some),
                Err(verdict) => return Err(refused(&verdict, &self.token)),
            }
        }
        Ok(None)
    }

    /// Writes down, under the operation's id with this in front, that something has happened. `false` when it stands already.
    async fn note(&self, mark: &str) -> Result<bool, Problem> {
        let nothing = Outcome::new("").map_err(|error| Problem::new(Kind::Failed, error.to_string()))?;
        let mark = self.marked(mark)?;
        match self.journal.record(&self.token, &mark, &self.digest, &nothing).await.map_err(failed)? {
            Verdict::Written => Ok(true),
            Verdict::Replay(_) => Ok(false),
            verdict => Err(refused(&verdict, &self.token)),
        }
    }

    fn marked(&self, mark: &str) -> Result<OperationId, Problem> {
        OperationId::new(format!("{mark}{}", self.operation))
            .map_err(|error| Problem::new(Kind::Malformed, format!("Idempotency-Key: {error}")))
    }

    /// The response of the time before.
    async fn ended(&self) -> Result<Response<String>, Problem> {
        match self.journal.lookup(&self.token, &self.operation).await.map_err(failed)? {
            Ok(Lookup::Found(found)) => Kept::replay(&found.outcome, found.epoch),
            Ok(Lookup::Absent) => Err(self.unknown("it was begun before, and nothing is known of its end")),
            Err(verdict) => Err(refused(&verdict, &self.token)),
        }
    }

    /// Keeps the response that the handler gave.
    async fn end(&self, kept: &Kept) -> Result<(), Problem> {
        let outcome = serde_json::to_string(kept).map_err(|error| self.unknown(&error.to_string()))?;
        let outcome = Outcome::new(outcome).map_err(|error| self.unknown(&error.to_string()))?;
        match self.journal.record(&self.token, &self.operation, &self.digest, &outcome).await {
            Ok(Verdict::Written) => Ok(()),
            Ok(verdict) => {
                Err(self.unknown(&format!("it was carried out while the resource changed hands ({verdict})")))
            }
            Err(error) => Err(self.unknown(&format!("it was carried out, and that could not be recorded: {error}"))),
        }
    }

    fn unknown(&self, why: &str) -> Problem {
        Problem {
            resource: Some(self.token.resource.to_string()),
            presented: Some(self.token.epoch),
            ..Problem::new(
                Kind::Unknown,
                format!("nobody knows whether the operation {:?} took effect: {why}", self.operation.as_str()),
            )
        }
    }
}

impl Kept {
    /// Reads a response whole. One that breaks off does not say what was done.
    async fn of<B>(response: Response<B>) -> Result<(Self, Response<Bytes>), Box<dyn Error + Send + Sync>>
    where
        B: Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(Into::<Box<dyn Error + Send + Sync>>::into)?.to_bytes();
        // Written as JSON a text may become six times as long.
        let text = std::str::from_utf8(&bytes).ok().filter(|text| text.len() <= TEXT_BYTES_MAX / 8);
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
        let kept = Self { status: parts.status.as_u16(), kind, body: text.map(str::to_owned) };
        Ok((kept, Response::from_parts(parts, bytes)))
    }

    fn replay(outcome: &Outcome, epoch: Epoch) -> Result<Response<String>, Problem> {
        let unreadable = || Problem::new(Kind::Failed, "the operation's outcome was recorded by something else");
        let kept: Self = serde_json::from_str(outcome.as_str()).map_err(|_| unreadable())?;
        let mut response = Response::new(kept.body.unwrap_or_default());
        *response.status_mut() = StatusCode::from_u16(kept.status).map_err(|_| unreadable())?;
        let headers = response.headers_mut();
        if let Some(kind) = kept.kind.and_then(|kind| HeaderValue::from_str(&kind).ok()) {
            headers.insert(CONTENT_TYPE, kind);
        }
        headers.insert(TENURE_REPLAY, HeaderValue::from_static("true"));
        headers.insert(TENURE_EPOCH, HeaderValue::from(epoch.get()));
        Ok(response)
    }
}

fn refused(verdict: &Verdict, token: &Token) -> Problem {
    Problem::of_verdict(verdict, token).unwrap_or_else(|| Problem::new(Kind::Failed, verdict.to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` wants")]
fn failed(error: SinkError) -> Problem {
    Problem::of_error(&error)
}

/// What is to be done, and the same request with its body read.
async fn taken<In>(journal: Arc<dyn Journal>, request: Request<In>) -> Result<(Once, Request<Bytes>), Problem>
where
    In: Body,
    In::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (parts, body) = request.into_parts();
    let missing =
        |what: &str| Problem::new(Kind::Failed, format!("the request has no {what}: put a TokenLayer in front"));
    let token = parts.extensions.get::<Token>().cloned().ok_or_else(|| missing("token"))?;
    let Some(operation) = parts.extensions.get::<OperationId>().cloned() else {
        return Err(Problem::new(Kind::OperationRequired, "the request has no Idempotency-Key"));
    };
    let body = match Limited::new(body, BYTES_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(Problem::new(Kind::TooLarge, format!("a request has at most {BYTES_MAX} bytes here")));
        }
        Err(error) => return Err(Problem::new(Kind::Malformed, format!("its body broke off: {error}"))),
    };
    // Not the host, which is part of the address under HTTP/2 and has more names than one.
    let target = parts.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut content = format!("{} {target}\n", parts.method).into_bytes();
    content.extend_from_slice(&body);
    let once = Once { journal, token, operation, digest: digest_of(&content), times: 0 };
    Ok((once, Request::from_parts(parts, body)))
}

impl<S, In, Out> Service<Request<In>> for OnceService<S>
where
    S: Service<Request<In>, Response = Response<Out>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    In: Body + From<Bytes> + Send + 'static,
    In::Data: Send,
    In::Error: Into<Box<dyn Error + Send + Sync>>,
    Out: Body + From<Bytes> + From<String> + Send + 'static,
    Out::Data: Send,
    Out::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<Out>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Out>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        // The one that was found ready is the one to call; its clone takes its place.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let journal = Arc::clone(&self.layer.journal);
        Box::pin(async move {
            let (mut once, request) = match taken(journal, request).await {
                Ok(taken) => taken,
                Err(problem) => return Ok(problem.into_response().map(Out::from)),
            };
            match once.begin().await {
                Ok(None) => {}
                Ok(Some(response)) => return Ok(response.map(Out::from)),
                Err(problem) => return Ok(problem.into_response().map(Out::from)),
            }
            let response = inner.call(request.map(In::from)).await?;
            let (kept, response) = match Kept::of(response).await {
                Ok(whole) => whole,
                Err(error) => {
                    let problem = once.unknown(&format!("its response broke off ({error})"));
                    return Ok(problem.into_response().map(Out::from));
                }
            };
            let noted = match Ended::with(response.status()) {
                Ended::Unknown => Ok(()),
                Ended::Undone => once.note(&undone(once.times)).await.map(drop),
                Ended::Over => once.end(&kept).await,
            };
            Ok(match noted {
                Ok(()) => response.map(Out::from),
                Err(problem) => problem.into_response().map(Out::from),
            })
        })
    }
}

#[cfg(feature = "sqlite")]
impl Journal for crate::SqliteSink {
    fn record<'a>(
        &'a self,
        token: &'a Token,
        operation: &'a OperationId,
        digest: &'a Digest,
        outcome: &'a Outcome,
    ) -> Answer<'a, Result<Verdict, SinkError>> {
        self.record(token, operation, digest, outcome)
    }

    fn lookup<'a>(
        &'a self,
        token: &'a Token,
        operation: &'a OperationId,
    ) -> Answer<'a, Result<Result<Lookup, Verdict>, SinkError>> {
        self.look_up(token, operation)
    }
}
