//! Names that people choose: validated text, one type per meaning.

use alloc::sync::Arc;
use core::fmt;

/// Longest name, in bytes. Every store can index a key of this length.
pub const NAME_BYTES_MAX: usize = 512;

/// Longest free text (a reason, an outcome), in bytes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Why a text is not a name. The caller should show it: it says what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// The text is empty.
    Empty {
        /// What the text was meant to be, such as `resource name`.
        what: &'static str,
    },
    /// The text is longer than the limit.
    TooLong {
        /// What the text was meant to be.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The text holds a control character, which would corrupt logs and terminals.
    Control {
        /// What the text was meant to be.
        what: &'static str,
        /// The byte at which the character stands.
        at: usize,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { what } => write!(f, "the {what} is empty: give it at least one character"),
            Self::TooLong { what, bytes, limit } => {
                write!(f, "the {what} has {bytes} bytes: shorten it to at most {limit}")
            }
            Self::Control { what, at } => {
                write!(f, "the {what} has a control character at byte {at}: use printable characters only")
            }
        }
    }
}

impl core::error::Error for NameError {}

fn check(what: &'static str, text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty { what });
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { what, bytes: text.len(), limit: NAME_BYTES_MAX });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, _)) => Err(NameError::Control { what, at }),
        None => Ok(()),
    }
}

fn check_text(what: &'static str, text: &str) -> Result<(), NameError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(NameError::TooLong { what, bytes: text.len(), limit: TEXT_BYTES_MAX });
    }
    Ok(())
}

macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks and takes the text.
            ///
            /// # Errors
            /// [`NameError`] when the text breaks a limit; its message says which and what to change.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                let text = text.as_ref();
                $check($what, text)?;
                Ok(Self(Arc::from(text)))
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl core::str::FromStr for $name {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
    };
}

text_type!(
    /// What is held: a job, a tenant's index, a file. The unit of epochs: two resources never share them.
    ResourceName, "resource name", check
);
text_type!(
    /// The name of a worker, for people. It decides nothing: two processes may carry the same one.
    OwnerName, "owner name", check
);
text_type!(
    /// One receiver of effects, as the authority enrols it.
    SinkId, "sink id", check
);
text_type!(
    /// A sink's history: it changes when the sink may have forgotten a seal (a failover, a restore, a reopening).
    Generation, "sink generation", check
);
text_type!(
    /// One business intent. It stays the same across epochs, when the work is tried again.
    OperationId, "operation id", check
);
text_type!(
    /// Who did it, for the history: an operator, a command, a policy.
    Actor, "actor", check
);
text_type!(
    /// Which store this is: it changes when the store's history may have gone back.
    StoreIdentity, "store identity", check
);
text_type!(
    /// Why somebody did it, for the history.
    Reason, "reason", check_text
);
text_type!(
    /// What a completed resource or a finished operation ended with. Opaque to the protocol.
    Outcome, "outcome", check_text
);

/// A digest of a request's content: the same operation with another digest is a conflict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(6).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests;
