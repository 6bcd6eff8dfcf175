use std::process::ExitCode;

/// The exit statuses of `tenure`, as in sysexits where one fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// The run gave another result than it should have.
    Different,
    /// The command line or a file given by it makes no sense.
    Usage,
    /// Something on this machine did not work.
    Failure,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Different => 1,
            Exit::Usage => 64,
            Exit::Failure => 70,
        })
    }
}
