//! The records of an index: which generations there are, and which of them is read.
//!
//! There is one set of rules for each database that keeps them, whether the vectors are beside them or elsewhere.

pub(super) mod postgres;
pub(super) mod sqlite;

use super::{Generation, IndexError, Live, Moved, Round, State, Switch, Switched, Why, WriteError};
use crate::manifest::{Making, Sum};
use crate::tenant::Tenant;
use async_trait::async_trait;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use tenure::sink::{Sink, digest_of};
use tenure::{OperationId, Outcome, SinkId, Token};

/// The records, wherever the vectors are. What has the name of a method of [`Index`](super::Index) is as it is there.
#[async_trait]
pub(super) trait Catalog: Send + Sync + fmt::Debug {
    fn place(&self) -> &str;

    async fn sink(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError>;

    async fn tenants(&self) -> Result<Vec<Tenant>, IndexError>;

    async fn live(&self, tenant: &Tenant) -> Result<Option<Live>, IndexError>;

    async fn generations(&self, tenant: &Tenant) -> Result<Vec<Generation>, IndexError>;

    async fn switches(&self, tenant: &Tenant) -> Result<Vec<Moved>, IndexError>;

    async fn rounds(&self, tenant: &Tenant, limit: usize) -> Result<Vec<Round>, IndexError>;

    async fn known(&self, tenant: &Tenant, keys: &[Sum]) -> Result<Vec<Option<Vec<f32>>>, IndexError>;

    async fn keep(&self, tenant: &Tenant, epoch: u64, vectors: &[(Sum, Vec<f32>)]) -> Result<(), IndexError>;

    async fn switch(&self, tenant: &Tenant, token: &Token, switch: &Switch) -> Result<Switched, WriteError>;

    async fn switched(
        &self,
        tenant: &Tenant,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Option<u64>, WriteError>;

    async fn record(&self, tenant: &Tenant, token: &Token, round: &Round) -> Result<(), WriteError>;

    async fn condemn(&self, tenant: &Tenant, token: &Token, keep: usize) -> Result<Vec<u64>, WriteError>;

    /// Records that the generation of the token's epoch begins, empty.
    async fn begin(&self, tenant: &Tenant, token: &Token, making: &Making) -> Result<Built, WriteError>;

    /// The generation that this token is building, if it may still write there.
    async fn building(&self, tenant: &Tenant, token: &Token) -> Result<Built, WriteError>;

    /// Records that so many more chunks were written into it, whose vectors have these keys.
    async fn written(&self, tenant: &Tenant, token: &Token, more: u64, keys: &[Sum]) -> Result<(), WriteError>;

    /// Records how many chunks it has.
    async fn count(&self, tenant: &Tenant, token: &Token, chunks: u64) -> Result<(), WriteError>;

    /// The version that is live.
    async fn stood(&self, tenant: &Tenant) -> Result<Option<Stood>, IndexError>;

    /// A generation, unless it is condemned.
    async fn readable(&self, tenant: &Tenant, epoch: u64) -> Result<Option<Built>, IndexError>;

    /// A generation that may be removed; `None` when there is no record of it.
    async fn removable(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<Option<Built>, WriteError>;

    /// Removes the record of a condemned generation.
    async fn forget(&self, tenant: &Tenant, token: &Token, epoch: u64) -> Result<(), WriteError>;

    /// What tells this place from every other one; `None` when nothing was made for the tenant yet.
    async fn mark(&self, tenant: &Tenant) -> Result<Option<String>, IndexError>;
}

/// A generation that may be read or written, and what tells its place from every other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Built {
    pub(super) making: Making,
    /// Of the lease under which it is built.
    pub(super) grant: String,
    /// Drawn when the records were made: no others have it.
    pub(super) mark: String,
    /// The number of its tables, where it has some.
    pub(super) here: i64,
}

/// The version that is live, as a search needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stood {
    pub(super) version: u64,
    pub(super) epoch: u64,
    pub(super) built: Built,
}

impl State {
    /// The word for it in the records.
    const fn name(self) -> &'static str {
        match self {
            Self::Building => "building",
            Self::Published => "published",
            Self::Condemned => "condemned",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Building, Self::Published, Self::Condemned].into_iter().find(|state| state.name() == name)
    }
}

impl Why {
    /// The word for it in the records.
    const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Rollback => "rollback",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Sync, Self::Rollback].into_iter().find(|why| why.name() == name)
    }
}

/// A token speaks for one tenant.
pub(super) fn belongs(place: &str, tenant: &Tenant, token: &Token) -> Result<(), WriteError> {
    if token.resource == tenant.resource() {
        return Ok(());
    }
    let why =
        format!("the token is of {}, not of {}: show that of the tenant's lease", token.resource, tenant.resource());
    Err(failed(place, "checking a token", why))
}

/// What a tenant's sink is enrolled as, wherever the index is: a tenant that moves to another one takes its leases along.
pub(super) fn sink_id(tenant: &Tenant) -> SinkId {
    named(&format!("vectors-{tenant}"))
}

/// The name of a sink that nobody seals.
pub(super) fn no_sink() -> SinkId {
    named("vectors")
}

fn named(name: &str) -> SinkId {
    #[expect(clippy::expect_used, reason = "short, not empty, plain ASCII")]
    name.parse().expect("a valid name")
}

/// A vector as it is kept: its numbers one after the other, each in four bytes, the lowest first.
pub(super) fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The vector of such bytes; `None` when they are none.
pub(super) fn numbers(bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, []) = bytes.as_chunks::<4>() else { return None };
    Some(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

fn text(place: &str, value: &impl Serialize) -> Result<String, WriteError> {
    serde_json::to_string(value).map_err(|error| failed(place, "writing a record", error.to_string()))
}

/// A vector's length is that of the generation, and each of its numbers is one.
pub(super) fn fits(place: &str, dimensions: u32, vector: &[f32]) -> Result<(), IndexError> {
    let asked = u32::try_from(vector.len()).unwrap_or(u32::MAX);
    if asked != dimensions {
        return Err(IndexError::Dimensions { place: place.to_owned(), found: dimensions, asked });
    }
    if vector.iter().all(|number| number.is_finite()) {
        return Ok(());
    }
    let why = "the model gave a vector with a number that is infinite or none: use another model, or other files of it";
    Err(IndexError::Failed { place: place.to_owned(), doing: "using a vector", why: why.to_owned() })
}

/// What tells one move from another under the same operation.
pub(super) fn digest(place: &str, switch: &Switch) -> Result<tenure::core::Digest, WriteError> {
    let Switch { operation: _, from, to, why, manifest } = switch;
    let content = text(place, &(from, to, why, manifest))?;
    Ok(digest_of(content.as_bytes()))
}

/// What a move is recorded to have done: the version that it made.
pub(super) fn outcome(version: u64) -> Outcome {
    #[expect(clippy::expect_used, reason = "a number is a valid outcome")]
    version.to_string().parse().expect("a valid outcome")
}

pub(super) fn version(place: &str, outcome: &Outcome) -> Result<u64, WriteError> {
    let odd = |_| failed(place, "looking a move up", format!("{outcome:?} is no version: the record is damaged"));
    outcome.as_str().parse().map_err(odd)
}

fn begun_before(place: &str, token: &Token, state: &str) -> WriteError {
    let why = format!(
        "generation {} is there already, {state}: a round builds one, under a lease of its own; acquire the tenant anew",
        token.epoch
    );
    failed(place, "beginning a generation", why)
}

fn not_begun(place: &str, token: &Token) -> WriteError {
    let why = format!(
        "generation {} is not being built by this lease: it was never begun, or it is published or condemned already",
        token.epoch
    );
    failed(place, "writing into a generation", why)
}

fn other_manifest(place: &str, epoch: u64) -> WriteError {
    let why = format!("generation {epoch} has another manifest already, and that is never changed");
    failed(place, "moving the alias", why)
}

fn never_stood(place: &str, version: u64) -> WriteError {
    let why = format!("version {version} has never been live, so no round can have made it");
    failed(place, "recording a round", why)
}

pub(super) fn no_generation(place: &str, epoch: u64) -> IndexError {
    let why = format!("there is no generation {epoch} that may be read");
    IndexError::Failed { place: place.to_owned(), doing: "searching a generation", why }
}

fn failed(place: &str, doing: &'static str, why: String) -> WriteError {
    IndexError::Failed { place: place.to_owned(), doing, why }.into()
}
