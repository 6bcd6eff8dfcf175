use crate::record::{Grant, Holdings};
use crate::{Epoch, GrantId};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// What a holder knows of the grants on one session: a fingerprint, and the requests that may be changing it. The set
/// itself stays with the driver, which has a lease for each.
///
/// A renewal's answer carries the authority's fingerprint. When the two differ, the holder asks for the list and
/// compares: a grant of its own that is not there was taken away; one that is there and unknown is a late duplicate and
/// must be released, or it would stand for as long as the session is renewed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KnownGrants {
    under_way: BTreeSet<GrantId>,
    fingerprint: Holdings,
    moves: u64,
}

/// What a list showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Held by our account, but gone: lost.
    pub gone: Vec<Grant>,
    /// There, but nobody here knows it: to be released.
    pub strange: Vec<Grant>,
}

impl KnownGrants {
    /// A request was sent that may add or remove this grant; until it is settled, a difference proves nothing.
    pub fn began(&mut self, grant: GrantId) {
        self.under_way.insert(grant);
        self.moves += 1;
    }

    /// The request is settled: under which epoch the holder counted the grant as its own before, and under which it does
    /// now; `None` when it did not, or does not.
    pub fn settled(&mut self, id: GrantId, before: Option<Epoch>, now: Option<Epoch>) {
        self.under_way.remove(&id);
        for epoch in [before, now].into_iter().flatten() {
            self.fingerprint = self.fingerprint.toggled(Grant { epoch, id });
        }
        self.moves += 1;
    }

    /// How often this has changed. Two equal readings enclose a time in which nothing moved.
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

    /// Whether the fingerprints are equal; then nothing is amiss, whatever is under way.
    #[must_use]
    pub fn agrees(&self, authority: Holdings) -> bool {
        self.fingerprint == authority
    }

    /// Whether a request about this grant is under way.
    #[must_use]
    pub fn is_under_way(&self, grant: GrantId) -> bool {
        self.under_way.contains(&grant)
    }

    /// Compares with the authority's list: `asked` are the grants that were held, and settled, before the list was asked
    /// for; `held` says which are held now.
    pub fn compare(
        &self,
        listed: &BTreeSet<Grant>,
        asked: &BTreeSet<Grant>,
        held: impl Fn(Grant) -> bool,
    ) -> Difference {
        let settled = |grant: &Grant| !self.under_way.contains(&grant.id);
        let gone = asked.iter().filter(|grant| settled(grant) && held(**grant) && !listed.contains(grant));
        let strange = listed.iter().filter(|grant| settled(grant) && !held(**grant) && !asked.contains(grant));
        Difference { gone: gone.copied().collect(), strange: strange.copied().collect() }
    }
}

#[cfg(test)]
mod tests;
