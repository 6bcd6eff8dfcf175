use std::process::ExitCode;

/// The exit statuses of `tenure`, as in sysexits where one fits. `tenure run` ends with its command's own otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// The run gave another result than it should have.
    Different,
    /// A probe found no evidence either way.
    Undecided,
    /// The command line or a file given by it makes no sense.
    Usage,
    /// The same operation or epoch stands there with other content.
    Conflict,
    /// The authority, or a receiver, cannot be reached or used.
    Unavailable,
    /// Something on this machine did not work.
    Failure,
    /// Not now: somebody else holds the resource, or it was not acquired in time.
    NotAcquired,
    /// The right to write is lost, for good.
    Lost,
    /// A command's own status, or 128 and the number of the signal that ended it.
    Command(u8),
}

impl Exit {
    /// The number that the caller's shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Different => 1,
            Self::Undecided => 2,
            Self::Usage => 64,
            Self::Conflict => 65,
            Self::Unavailable => 69,
            Self::Failure => 70,
            Self::NotAcquired => 75,
            Self::Lost => 76,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
