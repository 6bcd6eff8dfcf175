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
    taken: Mutex<HashMap<ResourceName, Slot>>,
    freed: Notify,
}

#[derive(Debug)]
enum Slot {
    /// Being acquired, or being given up.
    Busy,
    Held(Weak<Held>),
}

impl Slots {
    /// Takes the resource's place, or says under which epoch it is held here.
    pub(super) fn take(&self, resource: &ResourceName) -> Result<(), Option<Epoch>> {
        match locked(&self.taken).entry(resource.clone()) {
            Entry::Vacant(place) => {
                place.insert(Slot::Busy);
                Ok(())
            }
            Entry::Occupied(place) => Err(match place.get() {
                Slot::Busy => None,
                Slot::Held(held) => held.upgrade().map(|held| held.token().epoch),
            }),
        }
    }

    pub(super) fn hold(&self, held: &Arc<Held>) {
        locked(&self.taken).insert(held.token().resource.clone(), Slot::Held(Arc::downgrade(held)));
    }

    pub(super) fn free(&self, resource: &ResourceName) {
        locked(&self.taken).remove(resource);
        self.freed.notify_waiters();
    }

    /// Every lease that is held. A few machine words each, so that a hundred thousand can be walked at once.
    pub(super) fn held(&self) -> Vec<Arc<Held>> {
        let taken = locked(&self.taken);
        let held = taken.values().filter_map(|slot| match slot {
            Slot::Held(held) => held.upgrade(),
            Slot::Busy => None,
        });
        held.collect()
    }

    /// Ends when some place was freed after this call.
    pub(super) fn freed(&self) -> tokio::sync::futures::Notified<'_> {
        self.freed.notified()
    }
}
