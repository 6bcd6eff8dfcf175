//! Where the writers of one resource wait for each other, so that those of one process do not undo each other's puts.

use super::swap::Held;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as Lock, PoisonError};
use std::time::Duration;
use tenure_core::ResourceName;
use tokio::sync::{Mutex, MutexGuard};

/// So many resources are remembered while nobody writes them.
const IDLE_MAX: usize = 1024;

/// So many changes in a row, with others of this process waiting, and then a breath: a seal that comes from elsewhere
/// must read and put between two of them, and would never get in.
const ROW: u32 = 4;

/// The desks of a sink.
#[derive(Debug, Default)]
pub(super) struct Desks(Lock<HashMap<ResourceName, Arc<Desk>>>);

/// The one of a resource.
#[derive(Debug, Default)]
pub(super) struct Desk {
    waiting: AtomicUsize,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What stood when it was last looked at. An admission by it is checked by the put; a refusal is not, and wants a
    /// fresh look.
    pub(super) held: Option<Held>,
    row: u32,
}

/// A turn at the desk.
pub(super) struct Seat<'a> {
    desk: &'a Desk,
    pub(super) memory: MutexGuard<'a, Memory>,
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
    pub(super) async fn sit(&self, wait: Duration) -> Option<Seat<'_>> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let memory = tokio::time::timeout(wait, self.memory.lock()).await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(Seat { desk: self, memory: memory.ok()? })
    }

    /// What is remembered, if nobody is just changing it.
    pub(super) fn glance(&self) -> Option<Held> {
        self.memory.try_lock().ok().and_then(|memory| memory.held.clone())
    }
}

impl Seat<'_> {
    /// Whether it is time for a breath, after a change that stands.
    pub(super) fn is_out_of_breath(&mut self) -> bool {
        if self.desk.waiting.load(Ordering::Relaxed) == 0 {
            self.memory.row = 0;
            return false;
        }
        self.memory.row += 1;
        if self.memory.row < ROW {
            return false;
        }
        self.memory.row = 0;
        true
    }
}
