//! Which store this is, by its own account.

use super::message::Answered;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenure_core::StoreIdentity;
use tenure_core::record::AuthorityRecord;

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
    /// What the record said when it was read last.
    last: Option<Account>,
    /// A new life that nobody has written down yet.
    noticed: Option<Noticed>,
}

#[derive(Debug)]
struct Noticed {
    /// What the record said in the former life, as far as anybody has read it.
    former: Option<Account>,
    life: StoreIdentity,
}

/// Who a record says that the store is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Account {
    identity: StoreIdentity,
    incarnation: u64,
}

impl Noticed {
    /// Whether the record tells of this life already: it is by this process, or by another one that has noticed it first.
    /// A record of the former life that is older than the last one that was read has another identity as well, but a
    /// lower incarnation.
    fn is_written_in(&mut self, account: &Account) -> bool {
        let former = self.former.get_or_insert_with(|| account.clone());
        account.identity == self.life
            || (account.identity != former.identity && account.incarnation >= former.incarnation)
    }
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
            *lives = Lives { cluster: answered.cluster, revision: answered.revision, ..Lives::default() };
            return is_first;
        }
        if answered.revision < before && lives.revision >= before {
            tracing::warn!(
                revision = answered.revision,
                seen = before,
                "the store's revision went back: it was restored from a snapshot"
            );
            lives.revision = answered.revision;
            let former = lives.last.clone();
            lives.noticed = named(answered.cluster, crate::random_bits().ok()).map(|life| Noticed { former, life });
            return false;
        }
        lives.revision = lives.revision.max(answered.revision);
        true
    }

    /// What the store says it is, beside what its record says.
    pub(super) fn observed(&self, cluster: u64, record: &AuthorityRecord) -> Option<StoreIdentity> {
        let account = Account { identity: record.identity.clone(), incarnation: record.incarnation };
        let record = &record.identity;
        let mut lives = self.lives();
        if let Some(noticed) = &mut lives.noticed {
            if !noticed.is_written_in(&account) {
                return Some(noticed.life.clone());
            }
            lives.noticed = None;
        }
        lives.last = Some(account);
        drop(lives);
        let own = named(cluster, None)?;
        let life = record.as_str().strip_prefix(own.as_str());
        let is_own = life.is_some_and(|life| life.is_empty() || life.starts_with(':'));
        Some(if is_own { record.clone() } else { own })
    }

    /// Whether the store is still the one that its record says.
    pub(super) fn stands(&self, record: &AuthorityRecord) -> bool {
        let cluster = self.lives().cluster;
        self.observed(cluster, record).as_ref() == Some(&record.identity)
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
