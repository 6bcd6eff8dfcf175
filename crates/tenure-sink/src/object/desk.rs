//! Where the writers of one resource wait for each other, so that those of one process do not undo each other's puts.

use super::swap::Held;
use std::collections::HashMap;
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::{Duration, Instant};
use tenure_core::ResourceName;
use tokio::sync::{Mutex, MutexGuard};

/// So many resources are remembered while nobody writes them.
const IDLE_MAX: usize = 1024;

/// So many changes one right after the other, and then a breath: a seal that comes from elsewhere must read and put between
/// two of them, and would never get in.
const ROW: u32 = 4;

/// A breath is never longer.
const BREATH_MAX: Duration = Duration::from_millis(300);

/// The desks of a sink.
#[derive(Debug, Default)]
pub(super) struct Desks(Lock<HashMap<ResourceName, Arc<Desk>>>);

/// The one of a resource.
#[derive(Debug, Default)]
pub(super) struct Desk {
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What stood when it was last looked at. An admission by it is checked by the put; a refusal is not, and wants a
    /// fresh look.
    pub(super) held: Option<Held>,
    /// When the last change stood, and how long its put had taken.
    last: Option<(Instant, Duration)>,
    row: u32,
}

impl Desks {
    pub(super) fn of(&self, resource: &ResourceName) -> Arc<Desk> {
        let mut desks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if desks.len() > IDLE_MAX {
            desks.retain(|_, desk| Arc::strong_count(desk) > 1);
        }
        Arc::clone(desks.entry(resource.clone()).or_default())
    }
}

impl Desk {
    /// Waits for one's turn, at most so long.
    pub(super) async fn sit(&self, wait: Duration) -> Option<MutexGuard<'_, Memory>> {
        tokio::time::timeout(wait, self.memory.lock()).await.ok()
    }

    /// What is remembered, if nobody is just changing it.
    pub(super) fn glance(&self) -> Option<Held> {
        self.memory.try_lock().ok().and_then(|memory| memory.held.clone())
    }
}

impl Memory {
    /// How long a breath to take after a change that stands, whose put took from `began` to `ended`.
    pub(super) fn breath(&mut self, began: Instant, ended: Instant) -> Option<Duration> {
        let took = ended - began;
        let is_next = self.last.is_some_and(|(ended, took)| began.saturating_duration_since(ended) < took * 2);
        self.row = if is_next { self.row + 1 } else { 0 };
        self.last = Some((ended, took));
        if self.row < ROW {
            return None;
        }
        self.row = 0;
        Some((took * 3).min(BREATH_MAX))
    }
}

#[cfg(test)]
mod tests;
