//! Which store this is, by its own account.

use super::message::Answered;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::StoreIdentity;

/// The cluster's id, and whether its revision went back.
///
/// A snapshot that is restored under the same name and the same addresses has the *same* cluster id. But its revision
/// is lower than one that this process has seen: the store has begun another life, which gets a name of its own,
/// `etcd:CLUSTER:LIFE`. Whoever notices it draws the name, and the quarantine writes it down, where every other process
/// finds it and takes it for what it is. A process that has seen nothing of the lost time notices nothing; a caller
/// that has does (its `seen` is ahead), and so does whoever restores by the book, with another cluster id.
#[derive(Debug, Default)]
pub(super) struct Identity(Mutex<Lives>);

#[derive(Debug, Default)]
struct Lives {
    cluster: u64,
    /// The highest revision seen.
    revision: u64,
    /// A new life that nobody has written down yet.
    noticed: Option<Noticed>,
}

#[derive(Debug)]
struct Noticed {
    /// What the record said when it was first read in that life.
    written: Option<StoreIdentity>,
    life: StoreIdentity,
}

impl Identity {
    /// The highest revision seen so far. An answer to what is sent after this must not show a lower one.
    pub(super) fn highest(&self) -> u64 {
        self.lives().revision
    }

    /// Looks at the answer to a transaction that was sent when the highest revision was `before`. `false`: it is of
    /// another life or cluster than the ones before.
    pub(super) fn saw(&self, answered: &Answered, before: u64) -> bool {
        let mut lives = self.lives();
        if answered.cluster != lives.cluster {
            let is_first = lives.cluster == 0;
            *lives = Lives { cluster: answered.cluster, revision: answered.revision, noticed: None };
            return is_first;
        }
        if answered.revision < before && lives.revision >= before {
            tracing::warn!(
                revision = answered.revision,
                seen = before,
                "the store's revision went back: it was restored from a snapshot"
            );
            lives.revision = answered.revision;
            lives.noticed =
                named(answered.cluster, crate::random_bits().ok()).map(|life| Noticed { written: None, life });
            return false;
        }
        lives.revision = lives.revision.max(answered.revision);
        true
    }

    /// What the store says it is, beside what its record says.
    pub(super) fn observed(&self, cluster: u64, record: &StoreIdentity) -> Option<StoreIdentity> {
        let mut lives = self.lives();
        if let Some(noticed) = &mut lives.noticed {
            let written = noticed.written.get_or_insert_with(|| record.clone());
            if written == record {
                return Some(noticed.life.clone());
            }
            // Somebody has written it down.
            lives.noticed = None;
        }
        drop(lives);
        let own = named(cluster, None)?;
        let life = record.as_str().strip_prefix(own.as_str());
        let is_own = life.is_some_and(|life| life.is_empty() || life.starts_with(':'));
        Some(if is_own { record.clone() } else { own })
    }

    /// Whether the store is still the one that its record says.
    pub(super) fn stands(&self, record: &StoreIdentity) -> bool {
        let cluster = self.lives().cluster;
        self.observed(cluster, record).as_ref() == Some(record)
    }

    fn lives(&self) -> MutexGuard<'_, Lives> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a cluster, or of one of its later lives.
pub(super) fn named(cluster: u64, life: Option<u128>) -> Option<StoreIdentity> {
    let life = life.map(|life| format!(":{life:032x}")).unwrap_or_default();
    StoreIdentity::new(format!("etcd:{cluster:x}{life}")).ok()
}

#[cfg(test)]
mod tests;
