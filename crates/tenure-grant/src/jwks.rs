//! Public keys as other programs read them: a JSON Web Key Set (RFC 7517) of Ed25519 keys (RFC 8037).

use crate::error::KeyError;
use crate::key::{KEY_BYTES, KeyId, PublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// More is no list of keys.
const BYTES_MAX: usize = 256 * 1024;

/// The keys whose signatures count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublicKeys(Vec<PublicKey>);

#[derive(Serialize)]
struct Written<'a> {
    keys: Vec<WrittenKey<'a>>,
}

#[derive(Serialize)]
struct WrittenKey<'a> {
    kty: &'static str,
    crv: &'static str,
    alg: &'static str,
    #[serde(rename = "use")]
    purpose: &'static str,
    kid: &'a str,
    x: String,
}

/// Sets of keys are mixed, and each kind has members of its own: what is not understood is passed over, as the standard
/// wants.
#[derive(Deserialize)]
struct Read {
    keys: Vec<ReadKey>,
}

#[derive(Deserialize)]
struct ReadKey {
    kty: String,
    crv: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    kid: Option<String>,
    x: Option<String>,
    /// The private half.
    d: Option<serde::de::IgnoredAny>,
}

impl PublicKeys {
    /// These keys. Of two with one id the first counts.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Reads a key set. Keys of other kinds in it are passed over.
    ///
    /// # Errors
    /// [`KeyError::NotPublic`]: show it to whoever gave the text.
    pub fn parse(text: &[u8]) -> Result<Self, KeyError> {
        let wrong = |why: String| KeyError::NotPublic { why };
        if text.len() > BYTES_MAX {
            return Err(wrong(format!("{} bytes are no key set", text.len())));
        }
        let read: Read = serde_json::from_slice(text)
            .map_err(|error| wrong(format!("this is no JSON Web Key Set (line {}): {RIGHT}", error.line())))?;
        let mut keys: Vec<PublicKey> = Vec::new();
        for key in read.keys {
            if key.d.is_some() {
                return Err(wrong(format!("a private key is among them, which belongs nowhere else: {RIGHT}")));
            }
            if !key.is_ours() {
                continue;
            }
            let id = key.kid.as_deref().and_then(KeyId::new);
            let id = id.ok_or_else(|| wrong("an Ed25519 key among them has no kid".to_owned()))?;
            let bytes =
                key.x.and_then(|x| URL_SAFE_NO_PAD.decode(x).ok()).and_then(|x| <[u8; KEY_BYTES]>::try_from(x).ok());
            let bytes =
                bytes.ok_or_else(|| wrong(format!("the x of the key {id} has not the 32 bytes of an Ed25519 key")))?;
            if keys.iter().any(|other| *other.id() == id) {
                return Err(wrong(format!("the key {id} is there twice")));
            }
            keys.push(PublicKey::new(id, bytes));
        }
        Ok(Self(keys))
    }

    /// The key set, as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let keys = self.0.iter().map(|key| WrittenKey {
            kty: "OKP",
            crv: "Ed25519",
            alg: "EdDSA",
            purpose: "sig",
            kid: key.id().as_str(),
            x: URL_SAFE_NO_PAD.encode(key.bytes()),
        });
        // Texts and nothing else: there is no value that JSON lacks.
        serde_json::to_string_pretty(&Written { keys: keys.collect() }).unwrap_or_default()
    }

    /// The key of this id.
    #[must_use]
    pub fn find(&self, id: &KeyId) -> Option<&PublicKey> {
        self.0.iter().find(|key| key.id() == id)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter()
    }
}

impl ReadKey {
    fn is_ours(&self) -> bool {
        let is = |text: &Option<String>, right: &[&str]| text.as_deref().is_none_or(|text| right.contains(&text));
        self.kty == "OKP"
            && self.crv.as_deref() == Some("Ed25519")
            && is(&self.alg, &["EdDSA", "Ed25519"])
            && is(&self.purpose, &["sig"])
    }
}

const RIGHT: &str = "give what `tenure keys export` prints";

#[cfg(test)]
mod tests;
