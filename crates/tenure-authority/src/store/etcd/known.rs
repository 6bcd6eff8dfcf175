//! What this process has seen of the keys: a first guess that every swap checks.

use super::message::Entry;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The newest sight of each key. None of it need be true still: a transaction compares what it stands on.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<HashMap<String, Sight>>);

#[derive(Clone, Debug)]
pub(super) struct Sight {
    /// The store's revision at that moment.
    pub(super) at: u64,
    /// What stood there.
    pub(super) entry: Option<Entry>,
}

/// Beyond it all is forgotten, and read again when it is needed: some 30 MiB.
const KEYS_MAX: usize = 65_536;

impl Known {
    pub(super) fn saw(&self, at: u64, key: &str, entry: Option<Entry>) {
        let mut known = self.locked();
        match known.get_mut(key) {
            Some(sight) if sight.at > at => {}
            Some(sight) => *sight = Sight { at, entry },
            None => {
                if known.len() >= KEYS_MAX {
                    known.clear();
                }
                known.insert(key.to_owned(), Sight { at, entry });
            }
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<Sight> {
        self.locked().get(key).cloned()
    }

    pub(super) fn forget(&self) {
        self.locked().clear();
    }

    /// The keys under a prefix whose values hold a text.
    pub(super) fn holding(&self, prefix: &str, text: &str) -> Vec<String> {
        let known = self.locked();
        let holds = |sight: &Sight| sight.entry.as_ref().is_some_and(|entry| entry.value.contains(text));
        known
            .iter()
            .filter(|(key, sight)| key.starts_with(prefix) && holds(sight))
            .map(|(key, _)| key.clone())
            .collect()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<String, Sight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
