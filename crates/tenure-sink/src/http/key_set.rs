//! The public keys, for whoever verifies.

use super::problem::{Kind, Problem};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use tenure_grant::KeyFolder;
use tower_service::Service;

/// Serves the public halves of an authority's keys as a JSON Web Key Set: a tower service for a path of its own, such as
/// `/.well-known/jwks.json`.
///
/// A receiver must have them again before the next rotation, and believes what it gets: serve them over TLS.
#[derive(Clone, Debug)]
pub struct KeySet {
    folder: KeyFolder,
}

impl KeySet {
    /// The keys of this folder, read anew for each request.
    #[must_use]
    pub const fn new(folder: KeyFolder) -> Self {
        Self { folder }
    }

    fn answer(&self, method: &Method) -> Result<Response<String>, Problem> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Err(Problem::new(
                Kind::Method,
                format!("{method} is not for public keys, which are read with GET"),
            ));
        }
        let keys = self.folder.public_keys().map_err(|error| Problem::new(Kind::Failed, error.to_string()))?;
        let mut response = Response::new(keys.to_json());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/jwk-set+json"));
        // As long as a signature lives: a key that was taken out should not be known for much longer.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
        Ok(response)
    }
}

impl<B> Service<Request<B>> for KeySet {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(self.answer(request.method()).unwrap_or_else(Problem::into_response)))
    }
}
