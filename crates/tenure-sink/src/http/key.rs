//! An operation's id as a header: a string of structured fields (RFC 9651), as the draft of `Idempotency-Key` wants, or
//! the bare text, as many services take it.

use http::HeaderValue;
use tenure_core::OperationId;

/// Reads the header.
///
/// # Errors
/// What is wrong with it: show it to whoever sent it.
pub fn parse_key(value: &HeaderValue) -> Result<OperationId, String> {
    let text = value.to_str().map_err(|_| format!("it holds other bytes than ASCII; write {RIGHT}"))?.trim();
    let text = match (text.strip_prefix("%\""), text.strip_prefix('"')) {
        (Some(inner), _) => displayed(inner).ok_or_else(|| format!("it is no display string; write {RIGHT}"))?,
        (None, Some(inner)) => quoted(inner).ok_or_else(|| format!("its quotes do not fit; write {RIGHT}"))?,
        (None, None) => text.to_owned(),
    };
    OperationId::new(text).map_err(|error| error.to_string())
}

/// The header for an operation.
///
/// # Panics
/// Never: what is written is printable ASCII.
#[must_use]
pub fn written_key(operation: &OperationId) -> HeaderValue {
    let text = operation.as_str();
    let written = if text.bytes().all(|byte| (0x20..=0x7e).contains(&byte)) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        let plain = |byte: u8| (0x20..=0x7e).contains(&byte) && byte != b'%' && byte != b'"';
        let inner =
            text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") });
        format!("%\"{}\"", inner.collect::<String>())
    };
    #[expect(clippy::expect_used, reason = "printable ASCII, by the lines above")]
    HeaderValue::from_str(&written).expect("a header's value")
}

const RIGHT: &str = "a string in quotes, such as Idempotency-Key: \"pay-7\"";

/// Behind the first quote of a string.
fn quoted(inner: &str) -> Option<String> {
    let (mut text, mut chars) = (String::new(), inner.chars());
    loop {
        match chars.next()? {
            '\\' => text.push(chars.next().filter(|c| matches!(c, '"' | '\\'))?),
            '"' => return chars.as_str().is_empty().then_some(text),
            c => text.push(c),
        }
    }
}

/// Behind the first quote of a display string.
fn displayed(inner: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), inner.bytes());
    loop {
        match rest.next()? {
            b'"' => break,
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                let (high, low) = (digit()?, digit()?);
                bytes.push(high * 16 + low);
            }
            byte => bytes.push(byte),
        }
    }
    (rest.len() == 0).then(|| String::from_utf8(bytes).ok()).flatten()
}

#[cfg(test)]
mod tests;
