//! Who waits for a change of which resource.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tenure_core::ResourceName;
use tokio::sync::watch;

/// The waiters of one store. Whoever learns of a change tells it here.
#[derive(Clone, Debug, Default)]
pub struct Wakes(Arc<Mutex<HashMap<ResourceName, watch::Sender<()>>>>);

/// Tells of changes of one resource. Every telling since the last one that was awaited counts.
#[derive(Debug)]
pub struct Wake {
    changes: watch::Receiver<()>,
    resource: ResourceName,
    wakes: Wakes,
}

impl Wakes {
    /// From now on the wake is told of changes of the resource.
    #[must_use]
    pub fn watch(&self, resource: &ResourceName) -> Wake {
        let changes = self.locked().entry(resource.clone()).or_insert_with(|| watch::channel(()).0).subscribe();
        Wake { changes, resource: resource.clone(), wakes: self.clone() }
    }

    /// The resource has changed.
    pub fn tell(&self, resource: &ResourceName) {
        if let Some(waiters) = self.locked().get(resource) {
            waiters.send_replace(());
        }
    }

    /// Changes may have been missed.
    pub fn tell_all(&self) {
        for waiters in self.locked().values() {
            waiters.send_replace(());
        }
    }

    /// Whether anybody waits for this resource.
    #[must_use]
    pub fn is_watched(&self, resource: &ResourceName) -> bool {
        self.locked().contains_key(resource)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<ResourceName, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake {
    /// Ends when the resource has changed, or may have, since the wake was made or this was awaited last.
    pub async fn changed(&mut self) {
        // The sender stays as long as there is a wake.
        let _ = self.changes.changed().await;
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
