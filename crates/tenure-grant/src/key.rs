//! One key, and the half of it that may be known.

use crate::error::KeyError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use std::fmt;
use std::sync::Arc;
use zeroize::Zeroizing;

pub(crate) const KEY_BYTES: usize = 32;

/// The id of a key, as a signed grant names it. One that is made here is the key's own thumbprint (RFC 7638), so that two
/// keys never share one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(Arc<str>);

impl KeyId {
    /// Takes a text of 1 to 128 visible ASCII characters; `None` for any other.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(Arc::from(text)))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn thumbprint(public: &[u8; KEY_BYTES]) -> Self {
        // The members in this order and nothing else: that is the thumbprint's definition.
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, URL_SAFE_NO_PAD.encode(public));
        Self(Arc::from(URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes()))))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for KeyId {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text).ok_or("a key's id has 1 to 128 visible ASCII characters")
    }
}

/// The half of a key that verifies. Anybody may know it.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    id: KeyId,
    bytes: [u8; KEY_BYTES],
}

impl PublicKey {
    /// A key from its 32 bytes, under a name that others gave it.
    #[must_use]
    pub const fn new(id: KeyId, bytes: [u8; KEY_BYTES]) -> Self {
        Self { id, bytes }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> &KeyId {
        &self.id
    }

    /// Its 32 bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.bytes
    }

    /// Whether its other half signed the message.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes).verify(message, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id)
    }
}

/// A whole key. Its secret is shown by nothing, and the copy that is kept for writing is wiped when it goes; the one
/// inside of the library that signs is not.
pub struct SigningKey {
    public: PublicKey,
    seed: Zeroizing<[u8; KEY_BYTES]>,
    pair: Ed25519KeyPair,
}

impl SigningKey {
    /// A new key. Its id does not begin with a hyphen, so that no command takes it for an option.
    ///
    /// # Errors
    /// [`KeyError::Entropy`] when the system has no random bits.
    pub fn generate() -> Result<Self, KeyError> {
        loop {
            let mut seed = Zeroizing::new([0; KEY_BYTES]);
            SystemRandom::new().fill(&mut *seed).map_err(|_| KeyError::Entropy)?;
            let key = Self::of_seed(seed).ok_or(KeyError::Entropy)?;
            if !key.id().as_str().starts_with('-') {
                return Ok(key);
            }
        }
    }

    pub(crate) fn of_seed(seed: Zeroizing<[u8; KEY_BYTES]>) -> Option<Self> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&*seed).ok()?;
        let bytes = pair.public_key().as_ref().try_into().ok()?;
        Some(Self { public: PublicKey { id: KeyId::thumbprint(&bytes), bytes }, seed, pair })
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> &KeyId {
        &self.public.id
    }

    /// The half that may be known.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(crate) const fn seed(&self) -> &Zeroizing<[u8; KEY_BYTES]> {
        &self.seed
    }

    pub(crate) fn sign(&self, message: &[u8]) -> ring::signature::Signature {
        self.pair.sign(message)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.id)
    }
}
