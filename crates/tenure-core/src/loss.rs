//! Why a holder has stopped, for good.

use core::fmt;

/// The reason of a loss. Each has a counter of its own; none is a failure of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Loss {
    /// The holder's own deadline passed before a renewal was granted.
    DeadlinePassed = 1,
    /// The authority refused a renewal: the session has ended.
    RenewalRefused = 2,
    /// A renewal was not answered, under the strict policy.
    RenewalUnanswered = 3,
    /// A checkpoint asked the authority and was told that the grant is gone.
    CheckRefused = 4,
    /// A checkpoint asked the authority and got no answer: it fails closed.
    CheckUnanswered = 5,
    /// A sink showed a newer token.
    Stale = 6,
    /// A sink showed another grant of the same epoch.
    Conflict = 7,
    /// Sealing again was refused, by the authority or by a sink.
    SealRefused = 8,
    /// An operator or a policy took the grant away.
    Revoked = 9,
    /// No checkpoint came in the time that the work had promised.
    Stalled = 10,
    /// The process was forked: the child holds nothing.
    Forked = 11,
    /// The machine's clock went back.
    ClockJumped = 12,
    /// The lease was released, completed or dropped by its holder.
    Ended = 13,
}

impl Loss {
    /// All reasons, for counters and for tables.
    pub const ALL: [Self; 13] = [
        Self::DeadlinePassed,
        Self::RenewalRefused,
        Self::RenewalUnanswered,
        Self::CheckRefused,
        Self::CheckUnanswered,
        Self::Stale,
        Self::Conflict,
        Self::SealRefused,
        Self::Revoked,
        Self::Stalled,
        Self::Forked,
        Self::ClockJumped,
        Self::Ended,
    ];

    /// The reason behind the number that `as u8` gives; `None` for a number that no reason has.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|loss| *loss as u8 == code)
    }

    /// The name in metrics and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeadlinePassed => "deadline-passed",
            Self::RenewalRefused => "renewal-refused",
            Self::RenewalUnanswered => "renewal-unanswered",
            Self::CheckRefused => "check-refused",
            Self::CheckUnanswered => "check-unanswered",
            Self::Stale => "stale",
            Self::Conflict => "conflict",
            Self::SealRefused => "seal-refused",
            Self::Revoked => "revoked",
            Self::Stalled => "stalled",
            Self::Forked => "forked",
            Self::ClockJumped => "clock-jumped",
            Self::Ended => "ended",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeadlinePassed => "its own deadline passed before a renewal was granted",
            Self::RenewalRefused => "the authority refused a renewal: the session has ended",
            Self::RenewalUnanswered => "a renewal was not answered, and the policy is strict",
            Self::CheckRefused => "the authority says that the grant is gone",
            Self::CheckUnanswered => "the authority did not answer a checkpoint",
            Self::Stale => "a sink has seen a newer token",
            Self::Conflict => "a sink has another grant of the same epoch",
            Self::SealRefused => "sealing again was refused",
            Self::Revoked => "the grant was revoked",
            Self::Stalled => "no checkpoint came within the promised time",
            Self::Forked => "the process was forked",
            Self::ClockJumped => "the clock of this machine went back",
            Self::Ended => "the holder gave it up itself",
        })
    }
}
