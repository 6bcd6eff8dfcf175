//! A refusal over HTTP: a problem document (RFC 9457).

use crate::SinkError;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tenure_core::{Ending, Epoch, Over, Token, Verdict};

/// What stands in front of each kind's name.
const URN: &str = "urn:tenure:problem:";

/// When to come again after what passes by itself.
const RETRY_SECONDS: u64 = 1;

/// What is wrong, for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A newer token is registered: this holder has lost.
    Stale,
    /// The same operation, or the same epoch, with other content.
    Conflict,
    /// The token is not registered here: bind and seal it.
    Unsealed,
    /// The authority beside the receiver says that the grant is over: this holder has lost.
    Over,
    /// There is no signed grant.
    TokenRequired,
    /// The signed grant is not good.
    Unverified,
    /// The signed grant is good, and for something else.
    Elsewhere,
    /// There is no operation, and this route wants one.
    OperationRequired,
    /// The request makes no sense.
    Malformed,
    /// The request is too large.
    TooLarge,
    /// Nobody knows whether the operation took effect.
    Unknown,
    /// Another transaction is in the way.
    Busy,
    /// The receiver's own store did not answer: it may have been done.
    Unreachable,
    /// The receiver is never sealed.
    NeverSealed,
    /// The operator's secret is missing or wrong.
    OperatorOnly,
    /// There is nothing at this path.
    NotFound,
    /// The path wants another method.
    Method,
    /// The receiver could not do it.
    Failed,
}

impl Kind {
    const ALL: [Self; 18] = [
        Self::Stale,
        Self::Conflict,
        Self::Unsealed,
        Self::Over,
        Self::TokenRequired,
        Self::Unverified,
        Self::Elsewhere,
        Self::OperationRequired,
        Self::Malformed,
        Self::TooLarge,
        Self::Unknown,
        Self::Busy,
        Self::Unreachable,
        Self::NeverSealed,
        Self::OperatorOnly,
        Self::NotFound,
        Self::Method,
        Self::Failed,
    ];

    /// Its name, the end of the problem's `type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Its status.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.row().1
    }

    /// Name, status, title, and what to do next.
    const fn row(self) -> (&'static str, StatusCode, &'static str, &'static str) {
        match self {
            Self::Stale => ("stale", StatusCode::CONFLICT, "A newer holder writes here", "Stop this worker."),
            Self::Conflict => (
                "conflict",
                StatusCode::CONFLICT,
                "Other content stands here",
                "Do not repeat it: the operation's id, or the epoch, was used for something else.",
            ),
            Self::Unsealed => (
                "unsealed",
                StatusCode::CONFLICT,
                "The token is not registered here",
                "Seal this receiver again (Lease::heed), then repeat the request.",
            ),
            Self::Over => ("over", StatusCode::CONFLICT, "The holder's grant is over", "Stop this worker."),
            Self::TokenRequired => (
                "token-required",
                StatusCode::PRECONDITION_REQUIRED,
                "A signed grant is wanted",
                "Send the lease's signed grant in Tenure-Token.",
            ),
            Self::Unverified => (
                "unverified",
                StatusCode::UNAUTHORIZED,
                "The signed grant is not good",
                "Sign anew and repeat the request; if that does not help, compare keys and clocks.",
            ),
            Self::Elsewhere => (
                "elsewhere",
                StatusCode::FORBIDDEN,
                "The signed grant is for something else",
                "Show the grant of this resource, acquired with this receiver.",
            ),
            Self::OperationRequired => (
                "operation-required",
                StatusCode::BAD_REQUEST,
                "An operation's id is wanted",
                "Send Idempotency-Key, the same one at each repetition.",
            ),
            Self::Malformed => ("malformed", StatusCode::BAD_REQUEST, "The request makes no sense", "Correct it."),
            Self::TooLarge => ("too-large", StatusCode::PAYLOAD_TOO_LARGE, "The request is too large", "Shorten it."),
            Self::Unknown => (
                "unknown",
                StatusCode::CONFLICT,
                "Nobody knows whether it took effect",
                "Do not repeat it. Look whether the effect is there.",
            ),
            Self::Busy => (
                "busy",
                StatusCode::SERVICE_UNAVAILABLE,
                "Another transaction is in the way",
                "Repeat the request after the time in Retry-After.",
            ),
            Self::Unreachable => (
                "unreachable",
                StatusCode::GATEWAY_TIMEOUT,
                "The receiver's store does not answer",
                "It may have taken effect: repeat it with the same Idempotency-Key, or look.",
            ),
            Self::NeverSealed => {
                ("never-sealed", StatusCode::UNPROCESSABLE_ENTITY, "This receiver is never sealed", "Do not enrol it.")
            }
            Self::OperatorOnly => (
                "operator-only",
                StatusCode::UNAUTHORIZED,
                "This is for an operator",
                "Send the operator's secret as Authorization: Bearer.",
            ),
            Self::NotFound => ("not-found", StatusCode::NOT_FOUND, "There is nothing here", "Correct the path."),
            Self::Method => {
                ("method", StatusCode::METHOD_NOT_ALLOWED, "Not with this method", "Use the method that detail names.")
            }
            Self::Failed => (
                "failed",
                StatusCode::INTERNAL_SERVER_ERROR,
                "The receiver could not do it",
                "Look at the receiver; repeat the request once the cause is removed.",
            ),
        }
    }
}

/// A refusal, as it is sent and as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, for a program.
    pub kind: Kind,
    /// What is wrong, for a person.
    pub detail: String,
    /// Of which resource.
    pub resource: Option<String>,
    /// The epoch that was shown.
    pub presented: Option<Epoch>,
    /// The epoch that is registered, or under which the other content stands, or of the authority's newest grant.
    pub current: Option<Epoch>,
    /// Why the grant is over, where it is.
    pub ending: Option<Ending>,
    /// How long it was waited for what is in the way.
    pub waited: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    title: String,
    status: u16,
    detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    presented_epoch: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current_epoch: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ending: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
}

#[derive(Deserialize)]
struct Typed {
    #[serde(rename = "type")]
    kind: String,
}

impl Problem {
    /// A problem of this kind.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), resource: None, presented: None, current: None, ending: None, waited: None }
    }

    /// A verdict that is a refusal; `None` for one under which the effect stands.
    #[must_use]
    pub fn of_verdict(verdict: &Verdict, token: &Token) -> Option<Self> {
        let (kind, current, ending) = match verdict {
            Verdict::Written | Verdict::Replay(_) => return None,
            Verdict::Stale { current, .. } => (Kind::Stale, Some(*current), None),
            Verdict::Conflict { current } => (Kind::Conflict, Some(*current), None),
            Verdict::Unsealed => (Kind::Unsealed, None, None),
            Verdict::Over(over) => (Kind::Over, over.current, Some(over.why)),
        };
        Some(Self {
            resource: Some(token.resource.to_string()),
            presented: Some(token.epoch),
            current,
            ending,
            ..Self::new(kind, verdict.to_string())
        })
    }

    /// What a sink could not do. Its message is passed on, since it says what to do.
    #[must_use]
    pub fn of_error(error: &SinkError) -> Self {
        let kind = match error {
            SinkError::Busy { waited, .. } | SinkError::HeldBy { waited, .. } => {
                return Self { waited: Some(*waited), ..Self::new(Kind::Busy, error.to_string()) };
            }
            // Its message says that nobody knows whether it was carried out.
            SinkError::Unreachable { .. } => Kind::Unreachable,
            error if error.is_transient() => Kind::Busy,
            SinkError::Unverified { .. } => Kind::Unverified,
            SinkError::NeverSealed { .. } => Kind::NeverSealed,
            _ => Kind::Failed,
        };
        Self::new(kind, error.to_string())
    }

    /// The verdict that it tells of; `None` when it is about something else. Whose the newest grant is, and since when one is
    /// over, stands in `detail` alone.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        match self.kind {
            Kind::Stale => Some(Verdict::Stale { presented: self.presented?, current: self.current? }),
            Kind::Conflict => Some(Verdict::Conflict { current: self.current? }),
            Kind::Unsealed => Some(Verdict::Unsealed),
            Kind::Over => Some(Verdict::Over(Over {
                presented: self.presented?,
                current: self.current,
                why: self.ending?,
                holder: None,
                ago: None,
            })),
            _ => None,
        }
    }

    /// Whether a body is a problem of ours, also of a kind that only a newer program knows.
    #[must_use]
    pub fn is_ours(body: &[u8]) -> bool {
        serde_json::from_slice::<Typed>(body).is_ok_and(|typed| typed.kind.starts_with(URN))
    }

    /// Reads a response's body; `None` when it is no problem of ours, or of a kind that is not known here.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Self> {
        let document: Document = serde_json::from_slice(body).ok()?;
        let name = document.kind.strip_prefix(URN)?;
        let epoch = |number: Option<u64>| number.and_then(|number| Epoch::new(number).ok());
        Some(Self {
            kind: Kind::ALL.into_iter().find(|kind| kind.name() == name)?,
            detail: document.detail,
            resource: document.resource,
            presented: epoch(document.presented_epoch),
            current: epoch(document.current_epoch),
            ending: document.ending.as_deref().and_then(Ending::from_name),
            waited: document.waited_ms.map(Duration::from_millis),
        })
    }

    /// The response.
    #[must_use]
    pub fn into_response(self) -> Response<String> {
        let (name, status, title, next) = self.kind.row();
        let document = Document {
            kind: format!("{URN}{name}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.detail,
            next: Some(next.to_owned()),
            resource: self.resource,
            presented_epoch: self.presented.map(Epoch::get),
            current_epoch: self.current.map(Epoch::get),
            ending: self.ending.map(|ending| ending.name().to_owned()),
            waited_ms: self.waited.map(|waited| u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)),
        };
        // Texts and numbers: there is no value that JSON lacks.
        let mut response = Response::new(serde_json::to_string(&document).unwrap_or_default());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self.kind {
            Kind::Busy => drop(headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS))),
            Kind::Unverified => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Tenure-Token"))),
            Kind::OperatorOnly => drop(headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))),
            _ => {}
        }
        response
    }
}

/// The answer to a method that the path does not have. Which ones it has stands in `Allow`, as every 405 must say.
#[cfg(feature = "http")]
pub(super) fn wrong_method(detail: String, allow: &'static str) -> Response<String> {
    let mut response = Problem::new(Kind::Method, detail).into_response();
    response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static(allow));
    response
}

#[cfg(test)]
mod tests;
