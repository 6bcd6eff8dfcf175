//! What a store's refusal means.

use crate::SinkError;
use object_store::Error as StoreError;
use std::error::Error;

/// Where a machine, a container and a pod of the cloud ask for their own credentials. A store may well be at another address
/// that begins like these, and what it does not answer may be done.
const OWN: [&str; 3] = ["//169.254.169.254/latest/", "//169.254.170.2/", "//169.254.170.23/"];

/// Why a request has no answer, or not the one that was hoped for.
#[derive(Debug)]
pub(super) enum Fault {
    /// There is no such object.
    Gone,
    /// The condition did not hold, or somebody else's put was in the middle.
    Lost,
    /// Nothing was sent.
    NotSent(SinkError),
    /// The store refuses, whoever asks when.
    Refused(SinkError),
    /// It was done, or not, or will be.
    Unsure(String),
}

impl Fault {
    pub(super) fn of(error: &StoreError, place: &str) -> Self {
        let failed =
            |why: String| Self::Refused(SinkError::Failed { place: place.to_owned(), doing: "asking the store", why });
        match error {
            StoreError::NotFound { .. } if text(error).contains("NoSuchBucket") => {
                failed("there is no bucket of this name: make it first".to_owned())
            }
            StoreError::NotFound { .. } => Self::Gone,
            StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
                Self::Lost
            }
            StoreError::NotImplemented { .. } | StoreError::NotSupported { .. } => failed(error.to_string()),
            StoreError::PermissionDenied { .. } => failed(format!(
                "the store refuses it ({}): look at the credentials, and at the rights that docs/object-sink.md lists",
                said(error)
            )),
            StoreError::Unauthenticated { .. } => {
                failed(format!("the store knows no such credentials ({})", said(error)))
            }
            StoreError::InvalidPath { .. } | StoreError::UnknownConfigurationKey { .. } => failed(error.to_string()),
            other => Self::of_other(other, place, failed),
        }
    }

    fn of_other(error: &StoreError, place: &str, failed: impl Fn(String) -> Self) -> Self {
        let whole = text(error);
        if OWN.iter().any(|address| whole.contains(address)) {
            return failed(
                "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role is given"
                    .to_owned(),
            );
        }
        if whole.contains("Missing credentials")
            || whole.contains("Missing AccessKeyId")
            || whole.contains("Missing SecretAccessKey")
        {
            return failed(said(error));
        }
        match status(&whole) {
            // Too many requests, or a server that did not finish.
            Some(408 | 409 | 429 | 500..) => Self::Unsure(said(error)),
            Some(_) => failed(said(error)),
            None if is_connect(error) => {
                Self::NotSent(SinkError::Unreachable { place: place.to_owned(), why: said(error) })
            }
            None => Self::Unsure(said(error)),
        }
    }

    /// For what may be asked again, whatever was done.
    pub(super) fn into_error(self, place: &str) -> SinkError {
        let unreachable = |why| SinkError::Unreachable { place: place.to_owned(), why };
        match self {
            Self::NotSent(error) | Self::Refused(error) => error,
            Self::Unsure(why) => unreachable(why),
            Self::Gone => unreachable("an object is gone that was there just now".to_owned()),
            Self::Lost => unreachable("somebody else's write came in between".to_owned()),
        }
    }
}

/// It and all that lies below it.
fn text(error: &StoreError) -> String {
    let mut whole = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        whole.push('\n');
        whole.push_str(&error.to_string());
        below = error.source();
    }
    whole
}

/// Whether there was no connection to send anything on.
#[cfg(feature = "s3")]
fn is_connect(error: &StoreError) -> bool {
    use object_store::client::{HttpError, HttpErrorKind};
    let mut below: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = below {
        if error.downcast_ref::<HttpError>().is_some_and(|http| http.kind() == HttpErrorKind::Connect) {
            return true;
        }
        below = error.source();
    }
    false
}

#[cfg(not(feature = "s3"))]
fn is_connect(_error: &StoreError) -> bool {
    false
}

fn status(whole: &str) -> Option<u16> {
    let (_, rest) = whole.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

/// What a person should read of it. Answers of S3 also repeat what was signed, which is left out.
fn said(error: &StoreError) -> String {
    let whole = text(error);
    let between = |mark: &str| {
        let (_, rest) = whole.split_once(&format!("<{mark}>"))?;
        rest.split_once("</").map(|(inside, _)| inside.to_owned())
    };
    let said = match (between("Code"), between("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => whole.lines().last().unwrap_or_default().to_owned(),
    };
    said.chars().take(300).collect()
}

#[cfg(test)]
mod tests;
