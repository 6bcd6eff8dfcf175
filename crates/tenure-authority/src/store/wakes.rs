//! Who waits for a change of which resource.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::ResourceName;
use tenure_core::decide::Change;
use tokio::sync::watch;

/// The waiters of one store. Whoever learns of a change tells it here.
#[derive(Clone, Debug, Default)]
pub struct Wakes(Arc<Mutex<HashMap<ResourceName, watch::Sender<Hint>>>>);

/// Tells of changes of one resource. Every telling since the last one that was awaited counts.
#[derive(Debug)]
pub struct Wake {
    changes: watch::Receiver<Hint>,
    resource: ResourceName,
    wakes: Wakes,
}

/// What is known of a resource after a change. It spares a look and decides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// No grant stands on it: worth a look.
    Free,
    /// A grant stands on it: a look would come too late.
    Taken,
    /// Changes may have been missed: worth a look.
    #[default]
    Unknown,
}

impl Hint {
    /// What a change leaves behind.
    #[must_use]
    pub const fn of(change: &Change) -> Self {
        match change {
            Change::Lease(lease) if lease.is_granted() => Self::Taken,
            Change::Lease(_) | Change::DropLease(_) => Self::Free,
            Change::Authority(_) | Change::Session(_) | Change::DropSession(_) => Self::Unknown,
        }
    }

    /// As it stands in a message.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Free => "f",
            Self::Taken => "t",
            Self::Unknown => "",
        }
    }

    /// From a message. What makes no sense says nothing.
    #[must_use]
    pub fn from_code(code: &str) -> Self {
        [Self::Free, Self::Taken].into_iter().find(|hint| hint.code() == code).unwrap_or_default()
    }
}

impl Wakes {
    /// From now on the wake is told of changes of the resource.
    #[must_use]
    pub fn watch(&self, resource: &ResourceName) -> Wake {
        let changes =
            self.locked().entry(resource.clone()).or_insert_with(|| watch::channel(Hint::Unknown).0).subscribe();
        Wake { changes, resource: resource.clone(), wakes: self.clone() }
    }

    /// The resource has changed. Hints are told in the order of the changes: a waiter that hears last of all that the
    /// resource is taken does not look. Whoever cannot keep the order tells [`Hint::Unknown`].
    pub fn tell(&self, resource: &ResourceName, hint: Hint) {
        if let Some(waiters) = self.locked().get(resource) {
            waiters.send_replace(hint);
        }
    }

    /// Changes may have been missed.
    pub fn tell_all(&self) {
        for waiters in self.locked().values() {
            waiters.send_replace(Hint::Unknown);
        }
    }

    /// Whether anybody waits for this resource.
    #[must_use]
    pub fn is_watched(&self, resource: &ResourceName) -> bool {
        self.locked().contains_key(resource)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<ResourceName, watch::Sender<Hint>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake {
    /// Ends when the resource has changed, or may have, since the wake was made or this was awaited last. The
    /// answer is the newest hint.
    pub async fn changed(&mut self) -> Hint {
        // The sender stays as long as there is a wake.
        let _ = self.changes.changed().await;
        *self.changes.borrow_and_update()
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        let mut waiters = self.wakes.locked();
        // This one is still counted.
        if waiters.get(&self.resource).is_some_and(|changes| changes.receiver_count() <= 1) {
            waiters.remove(&self.resource);
        }
    }
}

#[cfg(test)]
mod tests;
