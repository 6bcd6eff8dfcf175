//! What stands between a writer and the document, and where the document is.

#[cfg(feature = "s3")]
mod bucket;
mod files;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod sqlite;

use super::DemoError;
use super::worker::RESOURCE;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use tenure::core::fence::Rule;
use tenure::sink::Sink;
use tenure::{Outcome, SinkId, Token, Verdict};

/// What stands between a writer and the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Nothing.
    None,
    /// A fence that remembers the highest epoch that it has seen.
    HighWater,
    /// A fence that is told of a takeover before it is announced.
    Sealed,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::HighWater => "high-water",
            Self::Sealed => "sealed",
        }
    }

    const fn rule(self) -> Option<Rule> {
        match self {
            Self::None => None,
            Self::HighWater => Some(Rule::HighWater),
            Self::Sealed => Some(Rule::Sealed),
        }
    }
}

/// The receiver of one scene.
#[derive(Debug)]
pub(super) struct Receiver {
    kind: Kind,
    place: Box<dyn Place>,
}

/// The document as it stands at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    resource: String,
    epoch: i64,
    pub(super) value: String,
}

/// Where the document of one scene is.
trait Place: std::fmt::Debug {
    /// Makes the room for the document, and under a rule the fence beside it.
    fn create(&self, rule: Option<Rule>) -> Result<(), DemoError>;

    /// The sealing side of the fence.
    fn sink(&self, rule: Rule) -> Result<Arc<dyn Sink>, DemoError>;

    /// One write, in one step, under a narrow rule: one value per epoch. Without a rule nobody is asked.
    fn write(&self, rule: Option<Rule>, token: &Token, value: &str) -> Result<Verdict, DemoError>;

    /// The document's epoch and value; `None` when nobody wrote it.
    fn document(&self, rule: Option<Rule>, resource: &str) -> Result<Option<(i64, String)>, DemoError>;

    /// Removes what was made outside of the demo's own folder.
    fn clear(&self, _rule: Option<Rule>) -> Result<(), DemoError> {
        Ok(())
    }
}

impl Receiver {
    /// The receiver at an address that a [`Shelf`](super::shelf::Shelf) has made.
    pub(super) fn at(address: &str, kind: Kind) -> Result<Self, DemoError> {
        let place: Box<dyn Place> = match address.split_once(':') {
            Some(("sqlite", path)) => Box::new(sqlite::Database::at(path)),
            Some(("file", path)) => Box::new(files::Folder::at(path)),
            #[cfg(feature = "postgres")]
            Some(("postgres" | "postgresql", _)) => Box::new(postgres::Schema::at(address)?),
            #[cfg(feature = "redis")]
            Some(("redis" | "rediss" | "redis+sentinel" | "rediss+sentinel", _)) => {
                Box::new(redis::Server::at(address)?)
            }
            #[cfg(feature = "s3")]
            Some(("s3", _)) => Box::new(bucket::Prefix::at(address)?),
            _ => {
                return Err(DemoError::NoSink { why: format!("there is no demo at {}", tenure::sink::shown(address)) });
            }
        };
        Ok(Self { kind, place })
    }

    pub(super) fn create(&self) -> Result<(), DemoError> {
        self.place.create(self.kind.rule())
    }

    /// What a worker hands to its wish, so that a takeover is sealed here.
    pub(super) fn sink(&self) -> Result<Option<Arc<dyn Sink>>, DemoError> {
        self.kind.rule().map(|rule| self.place.sink(rule)).transpose()
    }

    /// The name of the verdict.
    pub(super) fn write(&self, token: &Token, value: &str) -> Result<&'static str, DemoError> {
        Ok(self.place.write(self.kind.rule(), token, value)?.name())
    }

    /// The document's row; its epoch is counted from `base`.
    pub(super) fn row(&self, dir: &Path, resource: &str, base: u64) -> Result<Row, DemoError> {
        let Some((epoch, value)) = self.place.document(self.kind.rule(), resource)? else {
            return Err(DemoError::NoResult { path: dir.to_owned(), why: "nobody wrote the document".into() });
        };
        Ok(Row { resource: RESOURCE.to_owned(), epoch: epoch.saturating_sub_unsigned(base), value })
    }

    pub(super) fn clear(&self) -> Result<(), DemoError> {
        self.place.clear(self.kind.rule())
    }
}

/// The name under which the receiver is enrolled.
fn id() -> Result<SinkId, DemoError> {
    SinkId::new("document-db").map_err(|error| DemoError::Server(error.to_string()))
}

/// The name that the demo has put behind an address. It is what is removed at the end: none but the demo's own will do, whatever
/// else looks like a parameter, such as a piece of a password.
#[cfg(any(feature = "postgres", feature = "redis"))]
fn name_of(url: &str, parameter: &str) -> Result<String, DemoError> {
    let name = url.rsplit(['?', '&']).find_map(|part| part.strip_prefix(parameter));
    let name = name.filter(|name| name.starts_with("demo_"));
    name.map(ToOwned::to_owned).ok_or_else(|| DemoError::NoSink { why: "it has no name of the demo's".to_owned() })
}

/// What a replay is told. A value that is too long to be kept is told as the empty text.
fn outcome(value: &str) -> Outcome {
    #[expect(clippy::expect_used, reason = "the empty text is within every limit")]
    Outcome::new(value).unwrap_or_else(|_| Outcome::new("").expect("the empty text is an outcome"))
}

/// The document where it is one value: a file, a key, an object.
#[derive(Serialize, serde::Deserialize)]
struct Page {
    epoch: i64,
    value: String,
}

impl Page {
    fn text(token: &Token, value: &str) -> String {
        // Numbers and texts always have a JSON form.
        serde_json::to_string(&Self { epoch: token.epoch.as_i64(), value: value.to_owned() }).unwrap_or_default()
    }

    fn read(text: &[u8]) -> Result<(i64, String), DemoError> {
        let Self { epoch, value } =
            serde_json::from_slice(text).map_err(|error| DemoError::Server(format!("the document: {error}")))?;
        Ok((epoch, value))
    }
}

#[cfg(all(test, any(feature = "postgres", feature = "redis")))]
mod tests;
