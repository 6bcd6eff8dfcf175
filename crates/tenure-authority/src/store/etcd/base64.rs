//! Base64, in which the gateway spells keys and values.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the bytes to a text.
pub(super) fn write(text: &mut String, bytes: &[u8]) {
    text.reserve(bytes.len().div_ceil(3) * 4);
    for piece in bytes.chunks(3) {
        let word = piece.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - piece.len()));
        for digit in 0..4 {
            let at = (word >> (18 - 6 * digit)) & 63;
            let known = DIGITS.get(at as usize).copied().unwrap_or(b'=');
            text.push(if digit <= piece.len() { char::from(known) } else { '=' });
        }
    }
}

/// The bytes of a text; `None` when it is not base64.
pub(super) fn read(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for piece in digits.chunks(4) {
        let mut word = 0_u32;
        for digit in piece {
            word = word << 6 | value(*digit)?;
        }
        word <<= 6 * (4 - piece.len());
        let [_, first, second, third] = word.to_be_bytes();
        match piece.len() {
            4 => bytes.extend([first, second, third]),
            3 => bytes.extend([first, second]),
            2 => bytes.push(first),
            _ => return None,
        }
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests;
