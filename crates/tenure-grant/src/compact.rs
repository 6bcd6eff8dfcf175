//! The written form: `header.payload.signature`, each in base64url without padding.

use crate::error::{SignError, VerifyError};
use crate::key::{KeyId, SigningKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// The `typ` of a signed grant (RFC 8725, 3.11): no other kind of token can be taken for one.
pub const TYPE: &str = "tenure-grant+jwt";

/// The longest signed grant, in bytes. Servers and proxies take a header of 8 KiB.
pub const BYTES_MAX: usize = 8 * 1024;

const ALGORITHM: &str = "EdDSA";

/// An Ed25519 signature.
const SIGNATURE_BYTES: usize = 64;

/// Exactly these three. A `crit`, a `jwk`, a `jku` or a second `alg` is refused by being there.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    kid: String,
    typ: String,
}

/// Signs a payload.
pub(crate) fn write(key: &SigningKey, payload: &[u8]) -> Result<String, SignError> {
    let header = Header { alg: ALGORITHM.to_owned(), kid: key.id().to_string(), typ: TYPE.to_owned() };
    let header = serde_json::to_vec(&header).map_err(|error| SignError::Claims { why: error.to_string() })?;
    let mut text = URL_SAFE_NO_PAD.encode(header);
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(payload, &mut text);
    let signature = key.sign(text.as_bytes());
    text.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut text);
    if text.len() > BYTES_MAX {
        return Err(SignError::TooLong { bytes: text.len(), limit: BYTES_MAX });
    }
    Ok(text)
}

/// A text taken apart. Its payload stays closed until the signature was verified.
#[derive(Debug)]
pub(crate) struct Parts<'text> {
    /// The key that is said to have signed it.
    pub(crate) key: KeyId,
    /// What was signed.
    pub(crate) message: &'text [u8],
    pub(crate) signature: [u8; SIGNATURE_BYTES],
    payload: &'text str,
}

/// Takes a text apart. The header is not signed for by anybody yet: it chooses a key, and nothing else.
pub(crate) fn read(text: &str) -> Result<Parts<'_>, VerifyError> {
    if text.len() > BYTES_MAX {
        return Err(VerifyError::TooLong { bytes: text.len(), limit: BYTES_MAX });
    }
    let parts: Vec<_> = text.splitn(4, '.').collect();
    let [header, payload, signature] = parts[..] else {
        return Err(malformed("text", format!("it has {} parts instead of three", parts.len().min(4))));
    };
    let header: Header = serde_json::from_slice(&decode("header", header)?).map_err(|error| header_error(&error))?;
    // The order of the checks is the order of the messages' worth: a token of another kind first.
    if header.typ != TYPE {
        return Err(VerifyError::Type { found: shortened(&header.typ) });
    }
    if header.alg != ALGORITHM {
        return Err(VerifyError::Algorithm { found: shortened(&header.alg) });
    }
    let Some(key) = KeyId::new(&header.kid) else {
        return Err(malformed("header", "its kid is no id of a key".to_owned()));
    };
    let bytes = decode("signature", signature)?;
    let length = bytes.len();
    let signature = bytes.try_into().map_err(|_| {
        malformed("signature", format!("it has {length} bytes instead of {SIGNATURE_BYTES}: the text was cut short"))
    })?;
    // Both parts and the point between them, as they stand.
    let message = &text.as_bytes()[..header_and_payload(text)];
    Ok(Parts { key, message, signature, payload })
}

fn header_and_payload(text: &str) -> usize {
    text.rfind('.').unwrap_or_default()
}

impl Parts<'_> {
    /// The payload, for who has verified the signature.
    pub(crate) fn payload(&self) -> Result<Vec<u8>, VerifyError> {
        decode("payload", self.payload)
    }
}

fn decode(part: &'static str, text: &str) -> Result<Vec<u8>, VerifyError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| malformed(part, "it is not base64url without padding".to_owned()))
}

/// serde names the field that is unknown, doubled or missing, which is what a person wants to know.
fn header_error(error: &serde_json::Error) -> VerifyError {
    let why = if error.is_data() { shortened(&error.to_string()) } else { "it is no JSON object".to_owned() };
    malformed("header", why)
}

const fn malformed(part: &'static str, why: String) -> VerifyError {
    VerifyError::Malformed { part, why }
}

/// What somebody else wrote, short enough for a message.
fn shortened(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_default).collect()
}
