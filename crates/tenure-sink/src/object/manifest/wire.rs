//! A manifest as JSON. Every value that is read back is checked.

use super::super::nonce::{Key, Nonce};
use super::{Manifest, Object, Opening, Recorded, SCHEMA};
use crate::object::names::check_name;
use crate::{Found, SinkError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use tenure_core::fence::{FenceRow, Rule};
use tenure_core::{Digest, Epoch, Generation, OperationId, Outcome, ResourceName, SinkId};

#[derive(Serialize, Deserialize)]
struct Wire {
    schema: i64,
    resource: String,
    rule: String,
    nonce: String,
    trail: Vec<String>,
    opening: Option<WireOpening>,
    row: Option<WireRow>,
    floor: Option<i64>,
    names: BTreeMap<String, WireObject>,
    operations: Vec<WireOperation>,
    spilled: u64,
    dropped: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct WireOpening {
    count: u64,
    generation: String,
}

#[derive(Serialize, Deserialize)]
struct WireRow {
    epoch: i64,
    grant: String,
    generation: String,
    seal_no: u64,
    enrolled: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct WireObject {
    object: String,
    bytes: u64,
}

/// An operation, in a manifest and in a record of its own.
#[derive(Serialize, Deserialize)]
pub(in crate::object) struct WireOperation {
    operation: String,
    epoch: i64,
    seal_no: u64,
    digest: String,
    outcome: String,
}

/// Something else in its place is not taken for a damaged sink, and one of another version may look different in every
/// other respect.
pub(in crate::object) fn check_schema(place: &str, body: &[u8]) -> Result<(), SinkError> {
    let any: serde_json::Value = serde_json::from_slice(body)
        .map_err(|error| SinkError::corrupt(place, format_args!("it is no JSON: {error}")))?;
    match any.get("schema").and_then(serde_json::Value::as_i64) {
        Some(SCHEMA) => Ok(()),
        Some(found) => Err(SinkError::schema(place, found, SCHEMA)),
        None => Err(SinkError::Foreign { place: place.to_owned(), why: "it holds JSON of something else".to_owned() }),
    }
}

pub(super) fn parse(place: &str, rule: Rule, body: &[u8]) -> Result<Manifest, SinkError> {
    check_schema(place, body)?;
    let wire: Wire = serde_json::from_slice(body).map_err(|error| SinkError::corrupt(place, error))?;
    SinkError::unless_rule(place, &wire.rule, rule)?;
    wire.checked(rule).map_err(|what| SinkError::corrupt(place, what))
}

pub(super) fn to_bytes(manifest: &Manifest, place: &str) -> Result<Vec<u8>, SinkError> {
    serde_json::to_vec(&Wire::from(manifest)).map_err(|error| SinkError::corrupt(place, error))
}

impl Wire {
    fn checked(self, rule: Rule) -> Result<Manifest, String> {
        let nonces = self.trail.iter().map(|nonce| nonce.parse()).collect::<Result<_, String>>()?;
        let mut names = BTreeMap::new();
        for (name, object) in self.names {
            check_name(&name).map_err(said)?;
            names.insert(name, Object { key: object.object.parse()?, bytes: object.bytes });
        }
        let dropped: Vec<Key> = self.dropped.iter().map(|key| key.parse()).collect::<Result<_, String>>()?;
        if let Some(key) = dropped.iter().find(|key| names.values().any(|object| object.key == **key)) {
            return Err(format!("the object {key} is named, and said to be replaced"));
        }
        let found = Manifest {
            resource: ResourceName::new(self.resource).map_err(said)?,
            rule,
            nonce: self.nonce.parse()?,
            trail: nonces,
            opening: self.opening.map(WireOpening::checked).transpose()?,
            row: self.row.map(WireRow::checked).transpose()?,
            floor: self.floor.map(Epoch::try_from).transpose().map_err(said)?,
            names,
            operations: self.operations.into_iter().map(WireOperation::checked).collect::<Result<_, _>>()?,
            spilled: self.spilled,
            dropped: dropped.into(),
        };
        if found.row.is_some() && found.opening.is_none() {
            return Err("it has a fence of no opening".to_owned());
        }
        Ok(found)
    }
}

impl From<&Manifest> for Wire {
    fn from(manifest: &Manifest) -> Self {
        let named = |(name, object): (&String, &Object)| {
            (name.clone(), WireObject { object: object.key.to_string(), bytes: object.bytes })
        };
        Self {
            schema: SCHEMA,
            resource: manifest.resource.to_string(),
            rule: manifest.rule.name().to_owned(),
            nonce: manifest.nonce.to_string(),
            trail: manifest.trail.iter().map(Nonce::to_string).collect(),
            opening: manifest
                .opening
                .as_ref()
                .map(|opening| WireOpening { count: opening.count, generation: opening.generation.to_string() }),
            row: manifest.row.as_ref().map(WireRow::from),
            floor: manifest.floor.map(Epoch::as_i64),
            names: manifest.names.iter().map(named).collect(),
            operations: manifest.operations.iter().map(WireOperation::from).collect(),
            spilled: manifest.spilled,
            dropped: manifest.dropped.iter().map(Key::to_string).collect(),
        }
    }
}

impl WireOpening {
    fn checked(self) -> Result<Opening, String> {
        Ok(Opening { count: self.count, generation: Generation::new(self.generation).map_err(said)? })
    }
}

impl WireRow {
    fn checked(self) -> Result<FenceRow, String> {
        let enrolled: Result<BTreeSet<_>, _> = self.enrolled.iter().map(SinkId::new).collect();
        Ok(FenceRow {
            epoch: Epoch::try_from(self.epoch).map_err(said)?,
            grant: self.grant.parse().map_err(said)?,
            generation: Generation::new(self.generation).map_err(said)?,
            seal_no: self.seal_no,
            enrolled: enrolled.map_err(said)?,
        })
    }
}

impl From<&FenceRow> for WireRow {
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

impl WireOperation {
    pub(in crate::object) fn checked(self) -> Result<Recorded, String> {
        let digest = digest(&self.digest).ok_or_else(|| format!("{:?} is no digest", self.digest))?;
        let found = Found {
            epoch: Epoch::try_from(self.epoch).map_err(said)?,
            digest,
            outcome: Outcome::new(self.outcome).map_err(said)?,
        };
        Ok(Recorded { id: OperationId::new(self.operation).map_err(said)?, seal_no: self.seal_no, found })
    }
}

impl From<&Recorded> for WireOperation {
    fn from(recorded: &Recorded) -> Self {
        Self {
            operation: recorded.id.to_string(),
            epoch: recorded.found.epoch.as_i64(),
            seal_no: recorded.seal_no,
            digest: hex(&recorded.found.digest.0),
            outcome: recorded.found.outcome.to_string(),
        }
    }
}

fn said(error: impl Display) -> String {
    error.to_string()
}

pub(in crate::object) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
