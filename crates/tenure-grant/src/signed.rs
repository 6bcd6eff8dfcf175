use std::fmt;

/// A signed grant as it is sent: a password until it expires, so that neither `Debug` nor anything else shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct SignedGrant(String);

impl SignedGrant {
    pub(crate) const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, to be sent to a receiver. Do not write it into a log.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SignedGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedGrant({} bytes)", self.0.len())
    }
}
