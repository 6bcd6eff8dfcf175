use super::{Held, locked};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, Weak};
use tenure_core::{Epoch, ResourceName};
use tokio::sync::Notify;

/// One place per resource in this process. The authority gives a session the same grant again when it asks twice, which
/// is right for a lost answer and wrong for two tasks; so two tasks take turns here.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// A lease that is held; one that points nowhere while it is being acquired or given up.
    taken: Mutex<HashMap<ResourceName, Weak<Held>>>,
    freed: Notify,
}

impl Slots {
    /// Takes the resource's place, or says under which epoch it is held here.
    pub(super) fn take(&self, resource: &ResourceName) -> Result<(), Option<Epoch>> {
        match locked(&self.taken).entry(resource.clone()) {
            Entry::Vacant(place) => {
                place.insert(Weak::new());
                Ok(())
            }
            Entry::Occupied(place) => Err(place.get().upgrade().map(|held| held.token().epoch)),
        }
    }

    pub(super) fn hold(&self, held: &Arc<Held>) {
        locked(&self.taken).insert(held.token().resource.clone(), Arc::downgrade(held));
    }

    pub(super) fn free(&self, resource: &ResourceName) {
        locked(&self.taken).remove(resource);
        self.freed.notify_waiters();
    }

    /// Every lease that is held. A few machine words each, so that a hundred thousand can be walked at once.
    pub(super) fn held(&self) -> Vec<Arc<Held>> {
        locked(&self.taken).values().filter_map(Weak::upgrade).collect()
    }

    /// Ends when some place was freed after this call.
    pub(super) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.freed.notified()
    }
}
