//! The one object of a resource that ever changes.

mod wire;

pub(super) use wire::{WireOperation, check_schema, hex};

use super::nonce::{Key, Nonce};
use crate::{Found, SinkError};
use std::collections::{BTreeMap, VecDeque};
use tenure_core::fence::{FenceRow, Rule};
use tenure_core::{Epoch, Generation, OperationId, ResourceName};

/// The version of all records of a sink. Raised with each change to them.
pub(super) const SCHEMA: i64 = 1;

/// So many of the newest changes a manifest names, so that one whose answer was lost is found although others followed.
const TRAIL: usize = 16;

/// So many of the newest operations stand in the manifest itself, and so many bytes of their outcomes.
const OPERATIONS: (usize, usize) = (64, 128 * 1024);

/// So many replaced objects a manifest names at most. What falls out is found by listing, in a later epoch.
const DROPPED: usize = 256;

/// A manifest of more bytes takes no more names. It is written anew with each change.
pub(super) const BYTES_MAX: usize = 1024 * 1024;

/// What is read at most: no sink has written more.
pub(super) const READ_MAX: u64 = 8 * 1024 * 1024;

/// What stands in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) resource: ResourceName,
    pub(super) rule: Rule,
    /// Of the change that made it.
    pub(super) nonce: Nonce,
    /// Of the changes before, the newest first.
    trail: VecDeque<Nonce>,
    /// The opening of the sink in which it was last looked at; none in one that is blank.
    pub(super) opening: Option<Opening>,
    pub(super) row: Option<FenceRow>,
    /// Up to where the resource was forgotten.
    pub(super) floor: Option<Epoch>,
    pub(super) names: BTreeMap<String, Object>,
    /// The newest ones, the oldest of them first.
    operations: VecDeque<Recorded>,
    /// How many operations have a record of their own instead.
    pub(super) spilled: u64,
    /// Objects that were replaced, and are not named again.
    dropped: VecDeque<Key>,
}

/// Which opening of the sink it is: 1 for the first, one more for each reopening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) count: u64,
    pub(super) generation: Generation,
}

/// What a name stands for. Equal means the same content, written by the same write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    pub(super) key: Key,
    pub(super) bytes: u64,
}

impl Object {
    /// The epoch under which it was uploaded.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.key.epoch
    }

    /// Its length, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// An operation whose effect stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    pub(super) id: OperationId,
    pub(super) seal_no: u64,
    pub(super) found: Found,
}

impl Manifest {
    /// One that says nothing yet, not even in which generation.
    pub(super) fn blank(resource: &ResourceName, rule: Rule, nonce: Nonce) -> Self {
        Self {
            resource: resource.clone(),
            rule,
            nonce,
            trail: VecDeque::new(),
            opening: None,
            row: None,
            floor: None,
            names: BTreeMap::new(),
            operations: VecDeque::new(),
            spilled: 0,
            dropped: VecDeque::new(),
        }
    }

    /// What is read back is checked whole: nothing of one that is damaged is believed, and nothing is written over it.
    pub(super) fn parse(place: &str, resource: &ResourceName, rule: Rule, body: &[u8]) -> Result<Self, SinkError> {
        let found = wire::parse(place, rule, body)?;
        if found.resource == *resource {
            return Ok(found);
        }
        Err(SinkError::corrupt(place, format_args!("it is of {:?}, not of {resource:?}", found.resource.as_str())))
    }

    /// The same for one of whatever resource.
    pub(super) fn parse_any(place: &str, rule: Rule, body: &[u8]) -> Result<Self, SinkError> {
        wire::parse(place, rule, body)
    }

    pub(super) fn to_bytes(&self, place: &str) -> Result<Vec<u8>, SinkError> {
        wire::to_bytes(self, place)
    }

    /// The one that comes after it, with nothing changed yet.
    pub(super) fn next(&self, nonce: Nonce) -> Self {
        let mut next = Self { nonce, ..self.clone() };
        next.trail.push_front(self.nonce);
        next.trail.truncate(TRAIL);
        next
    }

    /// Whether the change with this nonce is one of those that made it.
    pub(super) fn carries(&self, nonce: Nonce) -> bool {
        self.nonce == nonce || self.trail.contains(&nonce)
    }

    /// Whether it names every change that was ever made.
    pub(super) fn is_whole_story(&self) -> bool {
        self.trail.len() < TRAIL
    }

    pub(super) fn operation(&self, id: &OperationId) -> Option<&Found> {
        self.operations.iter().rev().find(|recorded| recorded.id == *id).map(|recorded| &recorded.found)
    }

    pub(super) fn record(&mut self, recorded: Recorded) {
        self.operations.push_back(recorded);
    }

    /// Takes the oldest operations out when there are too many. Each must have a record of its own before this manifest
    /// stands. The newest stays, so that all of them are of changes that stand already.
    pub(super) fn spill(&mut self) -> Vec<Recorded> {
        let bytes: usize = self.operations.iter().map(|recorded| recorded.found.outcome.as_str().len()).sum();
        if self.operations.len() <= OPERATIONS.0 && bytes <= OPERATIONS.1 {
            return Vec::new();
        }
        let (mut number, mut bytes, mut spilled) = (self.operations.len(), bytes, Vec::new());
        while number > 1 && (number > OPERATIONS.0 / 2 || bytes > OPERATIONS.1 / 2) {
            let Some(oldest) = self.operations.pop_front() else { break };
            (number, bytes) = (number - 1, bytes - oldest.found.outcome.as_str().len());
            self.spilled += 1;
            spilled.push(oldest);
        }
        spilled
    }

    /// Lets a name stand for an object. Returns what has no name any more.
    pub(super) fn name(&mut self, name: &str, object: Object) {
        if let Some(old) = self.names.insert(name.to_owned(), object) {
            self.drop_object(old.key);
        }
    }

    pub(super) fn unname(&mut self, name: &str) {
        if let Some(old) = self.names.remove(name) {
            self.drop_object(old.key);
        }
    }

    fn drop_object(&mut self, key: Key) {
        self.dropped.push_back(key);
        if self.dropped.len() > DROPPED {
            self.dropped.pop_front();
        }
    }

    /// What was replaced, and is still there as far as is known.
    pub(super) fn dropped(&self) -> impl Iterator<Item = Key> + '_ {
        self.dropped.iter().copied()
    }

    /// These are not there any more.
    pub(super) fn removed(&mut self, keys: &[Key]) {
        self.dropped.retain(|key| !keys.contains(key));
    }
}

#[cfg(test)]
mod tests;
