use crate::exit::Exit;
use std::fmt;
use tenure::authority::{AuthorityError, ClockError, EntropyError, StoreError};
use tenure::core::NameError;
use tenure::sink::SinkError;

/// Why a verb did not do what it was asked: a message that says what to do, and the exit status.
#[derive(Debug)]
pub(crate) struct Problem {
    exit: Exit,
    message: String,
}

impl Problem {
    pub(crate) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self { exit, message: message.to_string() }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn failure(message: impl fmt::Display) -> Self {
        Self::new(Exit::Failure, message)
    }

    pub(crate) fn unavailable(message: impl fmt::Display) -> Self {
        Self::new(Exit::Unavailable, message)
    }

    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::Address { .. } => Exit::Usage,
            _ => Exit::Unavailable,
        };
        Self::new(exit, error)
    }
}

impl From<AuthorityError> for Problem {
    fn from(error: AuthorityError) -> Self {
        match error {
            AuthorityError::Store(error) => error.into(),
            AuthorityError::Unknown | AuthorityError::Contended => Self::unavailable(error),
        }
    }
}

impl From<SinkError> for Problem {
    fn from(error: SinkError) -> Self {
        let exit = match &error {
            SinkError::Address { .. } | SinkError::BadName { .. } => Exit::Usage,
            _ => Exit::Unavailable,
        };
        Self::new(exit, error)
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Self::usage(error)
    }
}

impl From<ClockError> for Problem {
    fn from(error: ClockError) -> Self {
        Self::failure(error)
    }
}

impl From<EntropyError> for Problem {
    fn from(error: EntropyError) -> Self {
        Self::failure(error)
    }
}
