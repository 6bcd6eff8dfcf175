//! The signed grant and the operation of a request, verified, for the handler to use in its transaction.

use super::key::parse_key;
use super::problem::{Kind, Problem};
use super::{IDEMPOTENCY_KEY, TENURE_EPOCH, TENURE_REPLAY, TENURE_TOKEN};
use crate::SinkError;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Response};
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tenure_core::{OperationId, ResourceName, SinkId, Token, Verdict};
use tenure_grant::Verifier;
use tower_layer::Layer;
use tower_service::Service;

/// Puts the request's [`Token`], its [`Claims`](tenure_grant::Claims) and its [`OperationId`] into its extensions, or answers
/// that they are missing or not good.
///
/// # What is not guaranteed
///
/// The token was granted, and may be long over. Hand it to the fence in the transaction of the write, and write only what
/// belongs to the token's own resource: take the resource from the token and not from the path, or have them compared
/// ([`resource`](Self::resource)).
///
/// The signed grant itself is taken out of the headers, so that no log of the service has it. A proxy in front may.
#[derive(Clone)]
pub struct TokenLayer {
    verifier: Verifier,
    sink: SinkId,
    wants_operation: bool,
    resource: Option<ResourceOf>,
}

type ResourceOf = Arc<dyn Fn(&Parts) -> Option<ResourceName> + Send + Sync>;

impl TokenLayer {
    /// For the routes of this receiver: a grant must have been signed for it.
    #[must_use]
    pub fn new(verifier: Verifier, sink: SinkId) -> Self {
        Self { verifier, sink, wants_operation: false, resource: None }
    }

    /// Answers a request without an operation with 400. Wanted wherever a request may be repeated, that is, everywhere but
    /// where repeating it does no harm.
    #[must_use]
    pub const fn wants_operation(mut self) -> Self {
        self.wants_operation = true;
        self
    }

    /// Compares the grant's resource with that of the request, and answers another one with 403. `None` from the function is
    /// a request that has none, and is answered with 400.
    #[must_use]
    pub fn resource(mut self, of: impl Fn(&Parts) -> Option<ResourceName> + Send + Sync + 'static) -> Self {
        self.resource = Some(Arc::new(of));
        self
    }

    fn check(&self, parts: &mut Parts) -> Result<(), Problem> {
        let Some(signed) = only(parts, &TENURE_TOKEN)? else {
            return Err(Problem::new(
                Kind::TokenRequired,
                "this route writes only for a holder, and the request has no Tenure-Token",
            ));
        };
        let signed =
            signed.to_str().map_err(|_| Problem::new(Kind::Unverified, "Tenure-Token holds other bytes than ASCII"))?;
        let claims = self.verifier.verify_for(signed.trim(), &self.sink).map_err(|error| {
            let kind = match () {
                () if error.is_receivers() => Kind::Failed,
                () if error.is_elsewhere() => Kind::Elsewhere,
                () => Kind::Unverified,
            };
            Problem::new(kind, error.to_string())
        })?;
        if let Some(of) = &self.resource {
            match of(parts) {
                None => return Err(Problem::new(Kind::Malformed, "the request names no resource")),
                Some(wanted) if wanted != claims.token.resource => {
                    let granted = claims.token.resource.as_str();
                    let detail =
                        format!("the signed grant is for {granted:?}, and the request is for {:?}", wanted.as_str());
                    return Err(Problem::new(Kind::Elsewhere, detail));
                }
                Some(_) => {}
            }
        }
        let operation = match only(parts, &IDEMPOTENCY_KEY)? {
            Some(value) => {
                Some(parse_key(value).map_err(|why| Problem::new(Kind::Malformed, format!("Idempotency-Key: {why}")))?)
            }
            None if self.wants_operation => {
                return Err(Problem::new(Kind::OperationRequired, "the request has no Idempotency-Key"));
            }
            None => None,
        };
        parts.headers.remove(&TENURE_TOKEN);
        parts.extensions.insert(claims.token.clone());
        parts.extensions.insert(claims);
        if let Some(operation) = operation {
            parts.extensions.insert::<OperationId>(operation);
        }
        Ok(())
    }
}

/// A header that may be there once: of two, a proxy and a service may each take another.
fn only<'a>(parts: &'a Parts, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut all = parts.headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(Problem::new(Kind::Malformed, format!("the header {name} is there twice"))),
    }
}

impl fmt::Debug for TokenLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenLayer").field("sink", &self.sink).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for TokenLayer {
    type Service = TokenService<S>;
    fn layer(&self, inner: S) -> TokenService<S> {
        TokenService { inner, layer: self.clone() }
    }
}

/// A service behind a [`TokenLayer`].
#[derive(Clone, Debug)]
pub struct TokenService<S> {
    inner: S,
    layer: TokenLayer,
}

impl<S, In, Out> Service<Request<In>> for TokenService<S>
where
    S: Service<Request<In>, Response = Response<Out>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    Out: From<String> + Send + 'static,
{
    type Response = Response<Out>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Out>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        match self.layer.check(&mut parts) {
            Ok(()) => Box::pin(self.inner.call(Request::from_parts(parts, body))),
            Err(problem) => Box::pin(ready(Ok(problem.into_response().map(Out::from)))),
        }
    }
}

/// The response to a verdict: `None` for [`Verdict::Written`], whose response is the service's own.
#[must_use]
pub fn answer(verdict: &Verdict, token: &Token) -> Option<Response<String>> {
    let Verdict::Replay(replayed) = verdict else {
        return Problem::of_verdict(verdict, token).map(Problem::into_response);
    };
    let mut response = Response::new(replayed.outcome.to_string());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(TENURE_REPLAY, HeaderValue::from_static("true"));
    headers.insert(TENURE_EPOCH, HeaderValue::from(replayed.epoch.get()));
    Some(response)
}

/// The response to a fence that could not judge. Whether anything was written is said by the problem's kind: after
/// [`Kind::Unreachable`] and [`Kind::Failed`] nobody knows.
#[must_use]
pub fn answer_error(error: &SinkError) -> Response<String> {
    Problem::of_error(error).into_response()
}
