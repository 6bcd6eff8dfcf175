use crate::key::KeyId;
use std::path::PathBuf;
use std::time::Duration;

/// Why a text is no good signed grant. It changes nothing at a receiver. Show it to whoever sent the text; none of the
/// messages holds the text itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// Longer than any signed grant.
    #[error("the signed grant has {bytes} bytes, and none has more than {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// It is not written as one.
    #[error("the signed grant's {part} is malformed: {why}")]
    Malformed {
        /// Which part of it.
        part: &'static str,
        /// What is wrong.
        why: String,
    },
    /// A token of another kind.
    #[error("the token is of the type \"{found}\", which is no signed grant: send the one that the lease gives")]
    Type {
        /// Its `typ`.
        found: String,
    },
    /// Signed in another way, or not at all.
    #[error("the signed grant names the algorithm \"{found}\": only EdDSA is accepted")]
    Algorithm {
        /// Its `alg`.
        found: String,
    },
    /// Nobody here knows the key.
    #[error(
        "the signed grant names the key {key}, which is not known here: give the receiver the authority's present public \
         keys (tenure keys export)"
    )]
    UnknownKey {
        /// The key's id.
        key: KeyId,
    },
    /// The key is known, and did not sign this.
    #[error("the signed grant's signature is wrong: it was changed on the way, or made up")]
    Signature,
    /// Written by another version.
    #[error(
        "the signed grant has the version {found}, and this program knows {known}: use the same version at both ends"
    )]
    Version {
        /// The version found.
        found: u64,
        /// The version known.
        known: u64,
    },
    /// A claim that no grant has.
    #[error("the signed grant's {name} is wrong: {why}")]
    Claim {
        /// The claim.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Its time has not begun.
    #[error(
        "the signed grant is good only {} s from now: the signer's clock goes ahead of this one; set both by NTP",
        by.as_secs()
    )]
    NotYet {
        /// For how long still.
        by: Duration,
    },
    /// Its time is over.
    #[error(
        "the signed grant expired {} s ago: sign anew for each request; if it is new, the signer's clock is behind this \
         one", by.as_secs()
    )]
    Expired {
        /// Since when.
        by: Duration,
    },
    /// It is another authority's.
    #[error("the signed grant is of the authority {found:?}, and this receiver belongs to {wanted:?}")]
    OtherAuthority {
        /// Whose it is.
        found: String,
        /// Whose it should be.
        wanted: String,
    },
    /// It was signed for other receivers.
    #[error("the signed grant is not for the receiver {wanted:?}: name the receiver when you acquire")]
    OtherSink {
        /// This receiver.
        wanted: String,
    },
    /// It grants something else than what is asked for.
    #[error("the signed grant is for {found:?}, and the request is for {wanted:?}")]
    OtherResource {
        /// What it grants.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// The public keys cannot be read. Nobody's fault who sent the text.
    #[error("the public keys cannot be used: {why}")]
    Keys {
        /// What is wrong, and what to do.
        why: String,
    },
}

impl VerifyError {
    /// Whether the receiver itself is at fault, and not who sent the text.
    #[must_use]
    pub const fn is_receivers(&self) -> bool {
        matches!(self, Self::Keys { .. })
    }

    /// Whether the text is good, and shown in the wrong place.
    #[must_use]
    pub const fn is_elsewhere(&self) -> bool {
        matches!(self, Self::OtherAuthority { .. } | Self::OtherSink { .. } | Self::OtherResource { .. })
    }

    /// The name in JSON.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "too-long",
            Self::Malformed { .. } => "malformed",
            Self::Type { .. } => "type",
            Self::Algorithm { .. } => "algorithm",
            Self::UnknownKey { .. } => "unknown-key",
            Self::Signature => "signature",
            Self::Version { .. } => "version",
            Self::Claim { .. } => "claim",
            Self::NotYet { .. } => "not-yet",
            Self::Expired { .. } => "expired",
            Self::OtherAuthority { .. } => "other-authority",
            Self::OtherSink { .. } => "other-sink",
            Self::OtherResource { .. } => "other-resource",
            Self::Keys { .. } => "keys",
        }
    }
}

/// Why keys cannot be used. Nothing was changed unless the message says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Others than the owner can read the private keys.
    #[error(
        "{} can be read by others than its owner (mode {mode:03o}), and is not used: chmod 600 it, and take new keys if \
         somebody may have read it (tenure keys rotate, twice)", path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Others than the owner can put another file there.
    #[error("{} can be written by others than its owner (mode {mode:03o}), and no key in it is used: chmod 700 it", path.display())]
    OpenFolder {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file is not one of these.
    #[error("{} is damaged: {why}. Put it back from a backup, or move it away to begin with new keys", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Public keys that make no sense.
    #[error("these are no public keys: {why}")]
    NotPublic {
        /// What is wrong, and what would be right.
        why: String,
    },
    /// Another process is changing the keys.
    #[error("another process is changing the keys in {}: repeat the call when it is done", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// No keys were made there yet.
    #[error(
        "there are no keys in {}: name the folder that the workers sign with (--keys, TENURE_KEYS); keys are made with the \
         first signature, or by tenure keys make", path.display()
    )]
    NoKeys {
        /// The folder.
        path: PathBuf,
    },
    /// There is no such key.
    #[error("there is no key {id} in {}: tenure keys ls shows those that are there", path.display())]
    NoKey {
        /// The key.
        id: KeyId,
        /// The folder.
        path: PathBuf,
    },
    /// The key is needed still.
    #[error("the key {id} is not removed: {why}")]
    InUse {
        /// The key.
        id: KeyId,
        /// Why, and what to do.
        why: String,
    },
    /// The system gives no random bits.
    #[error("the operating system gives no random bits: no key can be made")]
    Entropy,
    /// The system refused something.
    #[error("{doing} {} failed: {error}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

/// Why a grant was not signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// There is no key to sign with.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It names more than a header can carry.
    #[error(
        "the signed grant would have {bytes} bytes, and a receiver takes at most {limit}: give the receivers shorter ids, or \
         the lease fewer of them"
    )]
    TooLong {
        /// The length that it would have.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The claims cannot be written.
    #[error("the grant's claims cannot be written: {why}")]
    Claims {
        /// What is wrong.
        why: String,
    },
}
