//! The sink's own records, as they stand in its files. Every value that is read back is checked.

use super::durable;
use super::folder::{Folder, Records};
use crate::{Found, SinkError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::Path;
use tenure_core::fence::{FenceRow, Rule};
use tenure_core::operation::Attempt;
use tenure_core::{Digest, Epoch, Generation, OperationId, Outcome, ResourceName, SinkId};

/// The version of all records of a folder. Raised with each change to them.
const VERSION: i64 = 1;

/// What the sink knows of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Namespace {
    schema: i64,
    rule: String,
    identity: String,
    reopen_count: u64,
    floor: Option<i64>,
}

impl Namespace {
    pub(super) fn new(rule: Rule, identity: String) -> Self {
        Self { schema: VERSION, rule: rule.name().into(), identity, reopen_count: 0, floor: None }
    }

    /// Reads it, and checks its version and its rule.
    pub(super) fn load(folder: &Folder, rule: Rule) -> Result<Self, SinkError> {
        let place = folder.to_string();
        let path = folder.namespace();
        let Some(content) = durable::read(folder, &path)? else {
            let there = folder.path().try_exists().unwrap_or(false);
            return Err(if there { SinkError::NotInstalled { place } } else { SinkError::Missing { place } });
        };
        // The version first: another one may look different in every other respect.
        let any: serde_json::Value = parse(&path, &content)?;
        match any.get("schema").and_then(serde_json::Value::as_i64) {
            Some(VERSION) => {}
            Some(found) => return Err(SinkError::schema(&place, found, VERSION)),
            None => {
                let why = format!("{} is no record of a sink", path.display());
                return Err(SinkError::Foreign { place, why });
            }
        }
        let namespace: Self = parse(&path, &content)?;
        SinkError::unless_rule(&place, &namespace.rule, rule)?;
        Ok(namespace)
    }

    pub(super) fn save(&self, folder: &Folder) -> Result<(), SinkError> {
        save(folder, &folder.namespace(), self)
    }

    pub(super) fn generation(&self, folder: &Folder) -> Result<Generation, SinkError> {
        Generation::new(format!("{}:{}", self.identity, self.reopen_count))
            .map_err(|error| damaged(&folder.namespace(), error))
    }

    pub(super) fn floor(&self, folder: &Folder) -> Result<Option<Epoch>, SinkError> {
        self.floor.map(|floor| epoch(&folder.namespace(), floor)).transpose()
    }

    pub(super) fn reopened(self) -> Self {
        Self { reopen_count: self.reopen_count + 1, ..self }
    }

    pub(super) fn with_floor(self, floor: Epoch) -> Self {
        Self { floor: Some(floor.as_i64()), ..self }
    }
}

/// The fence of a resource.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fence {
    resource: String,
    row: Option<Row>,
    pub(super) promise: Option<Promise>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Row {
    epoch: i64,
    grant: String,
    generation: String,
    seal_no: u64,
    enrolled: Vec<String>,
}

/// What becomes true with the rename, and not without it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Promise {
    raise: Option<Row>,
    pub(super) operation: Option<Effect>,
}

/// The record of an operation whose effect stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Effect {
    resource: String,
    pub(super) operation: String,
    epoch: i64,
    seal_no: u64,
    digest: String,
    state: String,
    outcome: String,
}

impl Fence {
    pub(super) fn load(folder: &Folder, records: &Records, resource: &ResourceName) -> Result<Self, SinkError> {
        let path = records.fence();
        let Some(content) = durable::read(folder, &path)? else {
            return Ok(Self { resource: resource.to_string(), row: None, promise: None });
        };
        let fence: Self = parse(&path, &content)?;
        if fence.resource != resource.as_str() {
            return Err(damaged(&path, format_args!("it is of {:?}, not of {resource:?}", fence.resource)));
        }
        Ok(fence)
    }

    /// Whose fence it is; `None` where there is none.
    pub(super) fn resource(folder: &Folder, records: &Records) -> Result<Option<ResourceName>, SinkError> {
        let path = records.fence();
        let Some(content) = durable::read(folder, &path)? else { return Ok(None) };
        let fence: Self = parse(&path, &content)?;
        ResourceName::new(fence.resource).map(Some).map_err(|error| damaged(&path, error))
    }

    pub(super) fn save(&self, folder: &Folder, records: &Records) -> Result<(), SinkError> {
        save(folder, &records.fence(), self)
    }

    pub(super) fn row(&self, records: &Records) -> Result<Option<FenceRow>, SinkError> {
        let path = records.fence();
        let Some(row) = &self.row else { return Ok(None) };
        let enrolled = row.enrolled.iter().map(SinkId::new).collect::<Result<_, _>>();
        Ok(Some(FenceRow {
            epoch: epoch(&path, row.epoch)?,
            grant: row.grant.parse().map_err(|error| damaged(&path, error))?,
            generation: Generation::new(&row.generation).map_err(|error| damaged(&path, error))?,
            seal_no: row.seal_no,
            enrolled: enrolled.map_err(|error| damaged(&path, error))?,
        }))
    }

    pub(super) fn set_row(&mut self, row: &FenceRow) {
        self.row = Some(Row::from(row));
    }

    /// The rename happened: what was promised is true.
    pub(super) fn keep(&mut self, promise: Promise) {
        if promise.raise.is_some() {
            self.row = promise.raise;
        }
    }
}

impl Promise {
    pub(super) fn new(raise: Option<&FenceRow>, operation: Option<Effect>) -> Self {
        Self { raise: raise.map(Row::from), operation }
    }
}

impl From<&FenceRow> for Row {
    fn from(row: &FenceRow) -> Self {
        Self {
            epoch: row.epoch.as_i64(),
            grant: row.grant.to_string(),
            generation: row.generation.to_string(),
            seal_no: row.seal_no,
            enrolled: row.enrolled.iter().map(SinkId::to_string).collect(),
        }
    }
}

impl Effect {
    pub(super) fn new(resource: &ResourceName, operation: &OperationId, seal_no: u64, found: &Found) -> Self {
        Self {
            resource: resource.to_string(),
            operation: operation.to_string(),
            epoch: found.epoch.as_i64(),
            seal_no,
            digest: found.digest.0.iter().map(|byte| format!("{byte:02x}")).collect(),
            state: Attempt::Done.name().into(),
            outcome: found.outcome.to_string(),
        }
    }

    pub(super) fn find(
        folder: &Folder,
        records: &Records,
        operation: &OperationId,
    ) -> Result<Option<Found>, SinkError> {
        let path = records.operation(operation);
        let Some(content) = durable::read(folder, &path)? else { return Ok(None) };
        let effect: Self = parse(&path, &content)?;
        if effect.operation != operation.as_str() {
            return Err(damaged(&path, format_args!("it is of {:?}, not of {operation:?}", effect.operation)));
        }
        Ok(Some(Found {
            epoch: epoch(&path, effect.epoch)?,
            digest: digest(&effect.digest).ok_or_else(|| damaged(&path, "its digest is no digest"))?,
            outcome: Outcome::new(&effect.outcome).map_err(|error| damaged(&path, error))?,
        }))
    }

    pub(super) fn save(&self, folder: &Folder, records: &Records) -> Result<(), SinkError> {
        let path = records.fence();
        let operation = OperationId::new(&self.operation).map_err(|error| damaged(&path, error))?;
        save(folder, &records.operation(&operation), self)
    }
}

fn digest(text: &str) -> Option<Digest> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(Digest(bytes))
}

fn epoch(path: &Path, number: i64) -> Result<Epoch, SinkError> {
    Epoch::try_from(number).map_err(|error| damaged(path, error))
}

fn parse<T: DeserializeOwned>(path: &Path, content: &[u8]) -> Result<T, SinkError> {
    serde_json::from_slice(content).map_err(|error| damaged(path, error))
}

fn save<T: Serialize>(folder: &Folder, path: &Path, record: &T) -> Result<(), SinkError> {
    let mut content = serde_json::to_vec_pretty(record).map_err(|error| damaged(path, error))?;
    content.push(b'\n');
    durable::save(folder, path, &content)
}

fn damaged(path: &Path, what: impl Display) -> SinkError {
    SinkError::corrupt(&path.display().to_string(), what)
}
