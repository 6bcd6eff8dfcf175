//! The routes by which holders seal a sink, and an operator repairs it.

use super::TENURE_TOKEN;
use super::problem::{Kind, Problem, wrong_method};
use super::wire::{
    self, About, Describe, Described, Forget, ForgetAnswer, List, Listed, ROWS_MAX, Reopened, Seal, SealAnswer,
};
use crate::{SignedOnly, Sink, SinkError};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt as _, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tenure_core::{ResourceName, Token};
use tenure_grant::Verifier;
use tower_service::Service;

/// The longest request.
const BYTES_MAX: usize = 256 * 1024;

/// Lets holders seal a sink over HTTP, and only with signed grants. A tower service, to be put under a path of its own:
///
/// | request | who | what |
/// |---|---|---|
/// | `GET /` | anybody | which sink it is |
/// | `POST /describe` | anybody | how it stands to a resource |
/// | `POST /seal` | who has a signed grant | registers the grant's token |
/// | `POST /forget`, `/reopen`, `/rows` | who has the operator's secret | as [`Sink`] has them |
///
/// # What is not guaranteed
///
/// Whoever can reach the routes can read which epoch of a resource is registered. Put them where the workers are, and nobody
/// else.
///
/// Without [`operator`](Self::operator) the operator's routes are closed for everybody.
#[derive(Clone)]
pub struct Routes(Arc<Inner>);

struct Inner {
    sink: SignedOnly<Arc<dyn Sink>>,
    /// The digest of the operator's secret: comparing it tells nothing about the secret by the time that it takes.
    operator: Option<[u8; 32]>,
}

impl Routes {
    /// To this sink, for grants that the verifier accepts.
    #[must_use]
    pub fn new(sink: Arc<dyn Sink>, verifier: Verifier) -> Self {
        Self(Arc::new(Inner { sink: SignedOnly::new(sink, verifier), operator: None }))
    }

    /// Opens the operator's routes for who sends this secret as `Authorization: Bearer`. Take 128 random bits or more. White
    /// space around it does not count, so that a file with the secret alone may end its line; an empty one opens nothing.
    #[must_use]
    pub fn operator(self, secret: &str) -> Self {
        let secret = secret.trim();
        let operator = (!secret.is_empty()).then(|| digest(secret.as_bytes()));
        let sink = SignedOnly::new(Arc::clone(self.0.sink.get_ref()), self.0.sink.verifier().clone());
        Self(Arc::new(Inner { sink, operator }))
    }
}

fn digest(secret: &[u8]) -> [u8; 32] {
    Sha256::digest(secret).into()
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").field("sink", self.0.sink.id()).finish_non_exhaustive()
    }
}

impl Inner {
    async fn answer<B>(&self, request: Request<B>) -> Result<Response<String>, Problem>
    where
        B: Body,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().trim_matches('/');
        let is_operators = matches!(path, "forget" | "reopen" | "rows");
        match (&parts.method, path) {
            (&Method::GET, "") => return self.about(),
            (&Method::POST, "describe" | "seal" | "forget" | "reopen" | "rows") => {}
            (_, "" | "describe" | "seal" | "forget" | "reopen" | "rows") => {
                let right = if path.is_empty() { "GET" } else { "POST" };
                return Ok(wrong_method(format!("{} is not for this path: use {right}", parts.method), right));
            }
            _ => return Err(Problem::new(Kind::NotFound, "a sink has describe, seal, forget, reopen and rows")),
        }
        if is_operators {
            self.check_operator(&parts.headers)?;
        }
        let body = read(body).await?;
        match path {
            "describe" => self.describe(&body).await,
            "seal" => self.seal(&parts.headers, &body).await,
            "forget" => self.forget(&body).await,
            "rows" => self.rows(&body).await,
            _ => self.reopen().await,
        }
    }

    fn about(&self) -> Result<Response<String>, Problem> {
        json(&About {
            tenure_sink: wire::VERSION,
            id: self.sink.id().to_string(),
            rule: self.sink.rule().name().to_owned(),
            signed: self.sink.asks_signature(),
        })
    }

    async fn describe(&self, body: &[u8]) -> Result<Response<String>, Problem> {
        let Describe { resource } = parse(body)?;
        let there = self.sink.describe(&named(&resource)?).await.map_err(failed)?;
        json(&Described::from(&there))
    }

    async fn seal(&self, headers: &HeaderMap, body: &[u8]) -> Result<Response<String>, Problem> {
        let Seal { token, generation, enrolled } = parse(body)?;
        let token: Token = token.parse().map_err(|error| malformed(&error))?;
        let generation = wire::generation(&generation).map_err(|why| malformed(&why))?;
        let enrolled = wire::sinks(&enrolled).map_err(|why| malformed(&why))?;
        let mut all = headers.get_all(&TENURE_TOKEN).iter();
        let sealed = match (all.next(), all.next()) {
            (None, _) if self.sink.asks_signature() => {
                return Err(Problem::new(Kind::TokenRequired, "this receiver seals signed grants alone"));
            }
            (None, _) => self.sink.seal(&token, &generation, &enrolled).await,
            (Some(signed), None) => {
                let signed = signed
                    .to_str()
                    .map_err(|_| Problem::new(Kind::Unverified, "Tenure-Token holds other bytes than ASCII"))?;
                self.sink.seal_signed(signed.trim(), &token, &generation, &enrolled).await
            }
            (Some(_), Some(_)) => return Err(malformed(&"Tenure-Token is there twice")),
        };
        json(&SealAnswer::from(&sealed.map_err(failed)?))
    }

    async fn forget(&self, body: &[u8]) -> Result<Response<String>, Problem> {
        let Forget { resource, cut } = parse(body)?;
        let cut = wire::epoch(cut).map_err(|why| malformed(&why))?;
        let forgotten = self.sink.forget(&named(&resource)?, cut).await.map_err(failed)?;
        json(&ForgetAnswer::from(&forgotten))
    }

    async fn rows(&self, body: &[u8]) -> Result<Response<String>, Problem> {
        let List { after, limit } = parse(body)?;
        let after = after.as_deref().map(named).transpose()?;
        let limit = limit.clamp(1, ROWS_MAX);
        let listed = self.sink.rows(after.as_ref(), limit).await.map_err(failed)?;
        json(&Listed::page(&listed, limit))
    }

    async fn reopen(&self) -> Result<Response<String>, Problem> {
        let generation = self.sink.reopen().await.map_err(failed)?;
        json(&Reopened { generation: generation.to_string() })
    }

    fn check_operator(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let shown = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let Some(wanted) = &self.operator else {
            return Err(Problem::new(
                Kind::OperatorOnly,
                "this receiver was given no operator's secret, so nobody may do this here",
            ));
        };
        match shown {
            Some(shown) if digest(shown) == *wanted => Ok(()),
            Some(_) => Err(Problem::new(Kind::OperatorOnly, "the operator's secret is another one")),
            None => Err(Problem::new(Kind::OperatorOnly, "the request has no operator's secret")),
        }
    }
}

async fn read<B>(body: B) -> Result<Vec<u8>, Problem>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match Limited::new(body, BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes().into()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Problem::new(Kind::TooLarge, format!("a request has at most {BYTES_MAX} bytes")))
        }
        Err(error) => Err(malformed(&format_args!("its body broke off: {error}"))),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| malformed(&error))
}

fn named(resource: &str) -> Result<ResourceName, Problem> {
    ResourceName::new(resource).map_err(|error| malformed(&error))
}

fn malformed(why: &dyn fmt::Display) -> Problem {
    Problem::new(Kind::Malformed, why.to_string())
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` wants")]
fn failed(error: SinkError) -> Problem {
    Problem::of_error(&error)
}

fn json(value: &impl Serialize) -> Result<Response<String>, Problem> {
    let text = serde_json::to_string(value).map_err(|error| Problem::new(Kind::Failed, error.to_string()))?;
    let mut response = Response::new(text);
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

impl<B> Service<Request<B>> for Routes
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { Ok(inner.answer(request).await.unwrap_or_else(Problem::into_response)) })
    }
}
