//! The public keys, for whoever verifies.

use super::problem::{Kind, Problem, wrong_method};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use tenure_grant::{KeyError, KeyFolder, Verifier};
use tower_service::Service;

/// Serves the public halves of an authority's keys as a JSON Web Key Set: a tower service for a path of its own, such as
/// `/.well-known/jwks.json`.
///
/// A receiver must have them again before the next rotation, and believes what it gets: serve them over TLS.
#[derive(Clone, Debug)]
pub struct KeySet {
    folder: KeyFolder,
    /// Reads the keys, and reads them again when they have changed. It holds no private half.
    known: Verifier,
}

impl KeySet {
    /// The keys of this folder, read anew when they have changed.
    #[must_use]
    pub fn new(folder: KeyFolder) -> Self {
        Self { known: Verifier::of_folder(folder.clone()), folder }
    }

    fn answer(&self, method: &Method) -> Result<Response<String>, Problem> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            return Ok(wrong_method(format!("{method} is not for public keys, which are read with GET"), "GET, HEAD"));
        }
        let keys = self.known.public_keys().map_err(|error| Problem::new(Kind::Failed, error.to_string()))?;
        if keys.iter().next().is_none() {
            // A receiver that was given none would take every holder for a stranger.
            let none = KeyError::NoKeys { path: self.folder.path().to_path_buf() };
            return Err(Problem::new(Kind::Failed, none.to_string()));
        }
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
