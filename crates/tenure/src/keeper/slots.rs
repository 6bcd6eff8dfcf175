use super::{Held, locked};
use std::collections::btree_map::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::{Arc, Mutex, Weak};
use tenure_core::{Epoch, ResourceName};
use tokio::sync::oneshot;

/// One place per resource in this process, and a queue before it. The authority gives a session the same grant again when
/// it asks twice, which is right for a lost answer and wrong for two tasks; so two tasks take turns here, first come first
/// served, and only the one whose turn it is talks with the authority.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<Mutex<Places>>);

#[derive(Debug, Default)]
struct Places {
    /// A lease that is held; one that points nowhere while it is being acquired or given up.
    taken: HashMap<ResourceName, Weak<Held>>,
    /// Apart from the places, since few are waited for. There is none before a place that is free.
    queues: HashMap<ResourceName, Queue>,
    latest: u64,
}

/// Those who wait, in the order in which they came.
#[derive(Debug, Default)]
struct Queue {
    waiting: BTreeMap<u64, oneshot::Sender<Turn>>,
    /// How many turns in a row were handed on within this process.
    in_a_row: u32,
}

/// So many turns in a row are handed on at once. Then other processes are let look first.
const IN_A_ROW: u32 = 16;

/// The right to ask the authority for a resource. Whoever drops it hands it on.
#[derive(Debug)]
pub(super) struct Turn {
    slots: Slots,
    resource: ResourceName,
    /// Whether it became a lease, or nobody was there to take it.
    settled: bool,
    /// Whether this process has had the resource for so long that others are let look first.
    pub(super) yields: bool,
}

/// A place in the queue. Dropping it leaves the queue, and hands on a turn that came at the same moment.
#[derive(Debug)]
pub(super) struct Queued {
    slots: Slots,
    resource: ResourceName,
    number: u64,
    turn: oneshot::Receiver<Turn>,
}

/// What came of asking for a place.
pub(super) enum Place {
    Mine(Turn),
    Behind(Queued),
}

impl Slots {
    /// Takes the resource's place, or one in the queue before it.
    pub(super) fn enter(&self, resource: &ResourceName) -> Place {
        let mut places = locked(&self.0);
        if let Entry::Vacant(place) = places.taken.entry(resource.clone()) {
            place.insert(Weak::new());
            return Place::Mine(self.turn(resource.clone(), false));
        }
        places.latest += 1;
        let (number, (hand, turn)) = (places.latest, oneshot::channel());
        places.queues.entry(resource.clone()).or_default().waiting.insert(number, hand);
        Place::Behind(Queued { slots: self.clone(), resource: resource.clone(), number, turn })
    }

    /// Under which epoch the resource is held here; `None` while it is being acquired or given up.
    pub(super) fn epoch(&self, resource: &ResourceName) -> Option<Epoch> {
        locked(&self.0).taken.get(resource).and_then(Weak::upgrade).map(|held| held.token().epoch)
    }

    /// Every lease that is held. A few machine words each, so that a hundred thousand can be walked at once.
    pub(super) fn held(&self) -> Vec<Arc<Held>> {
        locked(&self.0).taken.values().filter_map(Weak::upgrade).collect()
    }

    /// The lease in the resource's place is given up: the next one's turn.
    pub(super) fn free(&self, resource: &ResourceName) {
        loop {
            let next = locked(&self.0).next(resource);
            let Some((next, yields)) = next else { return };
            let Err(mut back) = next.send(self.turn(resource.clone(), yields)) else { return };
            // That one went at this moment: on to the next.
            back.settled = true;
        }
    }

    fn turn(&self, resource: ResourceName, yields: bool) -> Turn {
        Turn { slots: self.clone(), resource, settled: false, yields }
    }
}

impl Places {
    /// Who is next, and whether others are let look first. The place is free when there is nobody.
    fn next(&mut self, resource: &ResourceName) -> Option<(oneshot::Sender<Turn>, bool)> {
        let queue = self.queues.get_mut(resource);
        let Some((queue, (_, next))) = queue.and_then(|queue| queue.waiting.pop_first().map(|next| (queue, next)))
        else {
            self.queues.remove(resource);
            self.taken.remove(resource);
            return None;
        };
        queue.in_a_row += 1;
        self.taken.insert(resource.clone(), Weak::new());
        Some((next, queue.in_a_row.is_multiple_of(IN_A_ROW)))
    }
}

impl Turn {
    /// The lease that came of it. It keeps the place until [`Slots::free`].
    pub(super) fn hold(mut self, held: &Arc<Held>) {
        self.settled = true;
        locked(&self.slots.0).taken.insert(self.resource.clone(), Arc::downgrade(held));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.settled {
            self.slots.free(&self.resource);
        }
    }
}

impl Queued {
    /// Ends when the turn has come. May be dropped and awaited again. `None`: there are no turns any more.
    pub(super) async fn turn(&mut self) -> Option<Turn> {
        (&mut self.turn).await.ok()
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let mut places = locked(&self.slots.0);
        if let Some(queue) = places.queues.get_mut(&self.resource)
            && queue.waiting.remove(&self.number).is_some()
            && queue.waiting.is_empty()
        {
            places.queues.remove(&self.resource);
        }
    }
}

#[cfg(test)]
mod tests;
