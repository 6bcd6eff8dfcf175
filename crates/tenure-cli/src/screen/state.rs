//! How a resource stands, in the words that people see.

use super::Tint;
use std::time::Duration;
use tenure::authority::TimeSource;
use tenure::core::record::{AuthorityRecord, LeaseRecord, Phase, SessionRecord, Standing};
use tenure::core::{AuthorityClock, Instant};

/// How a resource stands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nobody holds it.
    Free,
    /// Granted; its receivers are being sealed.
    Sealing,
    /// Granted and announced.
    Held,
    /// Granted, but the session that it stands on is overdue or has ended: whoever asks next gets it.
    Expired,
    /// Done, until an operator reopens it.
    Completed,
    /// On its way to be forgotten.
    Retiring,
}

impl State {
    pub(crate) fn of(lease: &LeaseRecord, standing: Standing) -> Self {
        match (&lease.phase, standing) {
            (Phase::Free, _) => Self::Free,
            (Phase::Sealing, Standing::Valid) => Self::Sealing,
            (Phase::Held, Standing::Valid) => Self::Held,
            (Phase::Sealing | Phase::Held, _) => Self::Expired,
            (Phase::Completed { .. }, _) => Self::Completed,
            (Phase::Retiring { .. }, _) => Self::Retiring,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Sealing => "sealing",
            Self::Held => "held",
            Self::Expired => "expired",
            Self::Completed => "completed",
            Self::Retiring => "retiring",
        }
    }

    pub(crate) const fn tint(self) -> Tint {
        match self {
            Self::Free | Self::Completed => Tint::Faint,
            Self::Held => Tint::Good,
            Self::Sealing | Self::Retiring => Tint::Warn,
            Self::Expired => Tint::Bad,
        }
    }

    /// Whether a grant is there, in force or not.
    pub(crate) const fn is_granted(self) -> bool {
        matches!(self, Self::Sealing | Self::Held | Self::Expired)
    }
}

/// A resource as it was read, with what belongs to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) lease: &'a LeaseRecord,
    /// The session on which the newest grant stands.
    pub(crate) holder: Option<&'a SessionRecord>,
    pub(crate) standing: Standing,
    pub(crate) state: State,
    /// Whether what is left is less than it seems: the store has no clock of its own, and this process has not watched
    /// since the newest renewal.
    pub(crate) at_most: bool,
    now: Instant<AuthorityClock>,
}

impl<'a> Seen<'a> {
    pub(crate) fn new(
        lease: &'a LeaseRecord,
        holder: Option<&'a SessionRecord>,
        authority: &AuthorityRecord,
        (now, source): (Instant<AuthorityClock>, TimeSource),
    ) -> Self {
        let standing = SessionRecord::standing(holder, authority, now);
        let at_most = source == TimeSource::Observed;
        Self { lease, holder, standing, state: State::of(lease, standing), at_most, now }
    }

    /// What is left until the session's deadline, and its ttl, while the grant is in force.
    pub(crate) fn left(&self) -> Option<(Duration, Duration)> {
        let holder = self.holder.filter(|_| matches!(self.state, State::Held | State::Sealing))?;
        Some((holder.deadline.since(&self.now), holder.ttl.get()))
    }

    /// How long ago the newest grant, or what came after it, was recorded.
    pub(crate) fn since_grant(&self) -> Duration {
        self.now.since(&self.lease.since)
    }

    /// How many of the enrolled receivers have the newest grant registered.
    pub(crate) fn sealed(&self) -> usize {
        self.lease.sinks.values().filter(|mark| mark.sealed).count()
    }
}

#[cfg(test)]
mod tests;
