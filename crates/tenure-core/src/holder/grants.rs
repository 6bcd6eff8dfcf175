use crate::GrantId;
use crate::record::Holdings;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The grants that a holder knows to stand on one session, with their fingerprint.
///
/// A renewal's answer carries the authority's fingerprint. When the two differ, the holder asks for the list and
/// compares: a grant of its own that is not there was taken away; one that is there and unknown is a late duplicate and
/// must be released, or it would stand for as long as the session is renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KnownGrants {
    held: BTreeSet<GrantId>,
    under_way: BTreeSet<GrantId>,
    fingerprint: Holdings,
    moves: u64,
}

/// What a list showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Held by our account, but gone: lost.
    pub gone: Vec<GrantId>,
    /// There, but nobody here knows it: to be released.
    pub strange: Vec<GrantId>,
}

impl KnownGrants {
    /// A request was sent that may have added or removed this grant; until it is settled, a difference proves nothing.
    pub fn began(&mut self, grant: GrantId) {
        self.under_way.insert(grant);
        self.moves += 1;
    }

    /// The request is settled: the grant stands, or it does not.
    pub fn settled(&mut self, grant: GrantId, stands: bool) {
        self.under_way.remove(&grant);
        let changed = if stands { self.held.insert(grant) } else { self.held.remove(&grant) };
        if changed {
            self.fingerprint = self.fingerprint.toggled(grant);
        }
        self.moves += 1;
    }

    /// How often this has changed. Two equal readings enclose a time in which nothing was under way to change it.
    #[must_use]
    pub const fn moves(&self) -> u64 {
        self.moves
    }

    /// Whether the authority's fingerprint shows a difference. `sent` is [`KnownGrants::moves`] from before the renewal
    /// was sent: if anything moved since, or is under way, the answer proves nothing.
    #[must_use]
    pub fn differs(&self, authority: Holdings, sent: u64) -> bool {
        self.under_way.is_empty() && self.moves == sent && self.fingerprint != authority
    }

    /// Compares with the authority's list. `asked` is [`KnownGrants::snapshot`] from before the list was asked for.
    #[must_use]
    pub fn compare(&self, listed: &BTreeSet<GrantId>, asked: &BTreeSet<GrantId>) -> Difference {
        let gone = asked.iter().filter(|grant| self.held.contains(grant) && !listed.contains(grant));
        let strange = listed
            .iter()
            .filter(|grant| !self.held.contains(grant) && !self.under_way.contains(grant) && !asked.contains(grant));
        Difference { gone: gone.copied().collect(), strange: strange.copied().collect() }
    }

    /// The grants that are held now and whose requests are settled.
    #[must_use]
    pub fn snapshot(&self) -> BTreeSet<GrantId> {
        self.held.difference(&self.under_way).copied().collect()
    }

    /// How many are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether none is held and nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.under_way.is_empty()
    }
}

#[cfg(test)]
mod tests;
