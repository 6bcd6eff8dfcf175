use super::AuthorityRecord;
use crate::{AuthorityClock, Epoch, GrantId, InstanceId, Instant, OwnerName, SessionId, Token, Ttl};
use core::fmt;

/// Who holds: a name for people, and one process start for the protocol.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The name; it decides nothing.
    pub name: OwnerName,
    /// The process start.
    pub instance: InstanceId,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Eight digits tell two starts of one worker apart in a message.
        write!(f, "{} ({:08x})", self.name, self.instance.bits() >> 96)
    }
}

/// The liveness of one owner instance; every lease that it holds with this ttl stands on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionRecord {
    /// Fresh for every opening.
    pub id: SessionId,
    /// Whose it is.
    pub owner: Owner,
    /// Whether the holder runs on the store's own host: a reboot then ends it at once.
    pub on_this_host: bool,
    /// How long a granted renewal lasts.
    pub ttl: Ttl,
    /// Valid before it; at it, overdue.
    pub deadline: Instant<AuthorityClock>,
    /// The number that the next renewal must carry.
    pub renew_seq: u64,
    /// The authority's incarnation in which it was opened.
    pub incarnation: u64,
    /// Live, or ended for good.
    pub state: SessionState,
}

/// A session ends one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionState {
    /// It was not ended yet; its deadline may have passed all the same.
    Live,
    /// It ended, and is never Live again.
    Ended {
        /// Why.
        why: EndReason,
        /// When, for the sweep.
        at: Instant<AuthorityClock>,
    },
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndReason {
    /// Its deadline passed.
    Expired,
    /// Its owner closed it.
    Closed,
    /// An operator ended it.
    Revoked,
    /// The host was rebooted.
    Rebooted,
    /// The store went back in time.
    Restored,
}

impl EndReason {
    /// All reasons, for stores that read them back.
    pub const ALL: [Self; 5] = [Self::Expired, Self::Closed, Self::Revoked, Self::Rebooted, Self::Restored];

    /// The name in stores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Closed => "closed",
            Self::Revoked => "revoked",
            Self::Rebooted => "rebooted",
            Self::Restored => "restored",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "its deadline passed",
            Self::Closed => "its owner closed it",
            Self::Revoked => "an operator ended it",
            Self::Rebooted => "the host was rebooted",
            Self::Restored => "the authority's store went back in time",
        })
    }
}

/// How a session stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Live, and its deadline lies ahead.
    Valid,
    /// Its deadline passed, but nobody has ended it yet.
    Overdue,
    /// Ended for good.
    Ended(EndReason),
    /// There is no such session: it ended long ago and was swept, or the store forgot it.
    Missing,
}

impl SessionRecord {
    /// How a session stands. One that is not there counts as ended.
    #[must_use]
    pub fn standing(session: Option<&Self>, authority: &AuthorityRecord, now: Instant<AuthorityClock>) -> Standing {
        let Some(session) = session else { return Standing::Missing };
        match session.state {
            SessionState::Ended { why, .. } => Standing::Ended(why),
            SessionState::Live if session.incarnation != authority.incarnation => Standing::Ended(EndReason::Restored),
            SessionState::Live if now.reached(&session.deadline) => Standing::Overdue,
            SessionState::Live => Standing::Valid,
        }
    }

    /// When it was ended; `None` while nobody has.
    #[must_use]
    pub const fn ended_at(&self) -> Option<Instant<AuthorityClock>> {
        match self.state {
            SessionState::Ended { at, .. } => Some(at),
            SessionState::Live => None,
        }
    }

    /// The record after its end.
    #[must_use]
    pub fn ended(&self, why: EndReason, at: Instant<AuthorityClock>) -> Self {
        Self { state: SessionState::Ended { why, at }, ..self.clone() }
    }

    /// The record after the store's host was rebooted, when its clock began anew: a holder on this host is gone, a
    /// remote one may believe for one more ttl.
    #[must_use]
    pub fn after_reboot(&self, now: Instant<AuthorityClock>) -> Self {
        match self.state {
            SessionState::Ended { why, .. } => self.ended(why, now),
            SessionState::Live if self.on_this_host => self.ended(EndReason::Rebooted, now),
            SessionState::Live => Self { deadline: now.after(self.ttl.get()), ..self.clone() },
        }
    }
}

/// One grant of a resource, without the resource's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// Under which epoch.
    pub epoch: Epoch,
    /// By which request.
    pub id: GrantId,
}

impl Grant {
    /// The id and the epoch in one word. Multiplication and shifts keep `mixed(a, 1) ^ mixed(b, 2)` apart from
    /// `mixed(a, 2) ^ mixed(b, 1)`; the constants are odd, so that nothing is lost.
    const fn mixed(self) -> u128 {
        let epoch = self.epoch.get() as u128;
        let word = self.id.bits() ^ epoch.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let word = (word ^ (word >> 67)).wrapping_mul(0xda94_2042_e4dd_58b5_94d0_49bb_1331_11eb);
        word ^ (word >> 59)
    }
}

impl From<&Token> for Grant {
    fn from(token: &Token) -> Self {
        Self { epoch: token.epoch, id: token.grant }
    }
}

/// A fingerprint of the grants that stand on a session: it lets a holder notice, at a cost that does not grow with what
/// it holds, that a grant is gone or is there without its knowing.
///
/// It is made of epochs as well as ids: a late duplicate of an old request brings an old id back under a new epoch, and
/// would otherwise hide that the first grant was taken away. Ids are random and are mixed, so two different sets have
/// equal fingerprints with a chance of about one in 2^128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holdings(u128);

impl Holdings {
    /// Adds the grant if it is not in the set, takes it out if it is.
    #[must_use]
    pub const fn toggled(self, grant: Grant) -> Self {
        Self(self.0 ^ grant.mixed())
    }

    /// The fingerprint as stores keep it.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// A kept fingerprint.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }
}

impl FromIterator<Grant> for Holdings {
    fn from_iter<I: IntoIterator<Item = Grant>>(grants: I) -> Self {
        grants.into_iter().fold(Self::default(), Self::toggled)
    }
}
