//! How a store or a sink is addressed: `SCHEME:PATH?NAME=VALUE&NAME=VALUE`.
//!
//! In a path, `%XX` is a byte by its two hexadecimal digits, so that `%3F` is a question mark and `%25` a percent sign. What
//! schemes and parameters there are, each crate says that opens something.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// An address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address<'url> {
    scheme: &'url str,
    path: String,
    parameters: Vec<(&'url str, &'url str)>,
}

/// Why a text, or a part of it, is no address. The caller should show it: it says what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// No colon ends the scheme.
    NoScheme,
    /// A `%` without two hexadecimal digits, or bytes that are no text.
    Escape,
    /// A parameter without a value.
    NoValue {
        /// The parameter.
        name: String,
    },
    /// A parameter that is there twice.
    Twice {
        /// The parameter.
        name: String,
    },
    /// Two slashes that no absolute path follows.
    NotAbsolute {
        /// The address's scheme.
        scheme: String,
    },
    /// The path is empty.
    NoPlace {
        /// The address's scheme.
        scheme: String,
    },
    /// A value that is no span of time.
    Span {
        /// The value.
        value: String,
    },
    /// A value that is neither `true` nor `false`.
    Flag {
        /// The value.
        value: String,
    },
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme => f.write_str("it does not begin with the kind of what it addresses and a colon"),
            Self::Escape => f.write_str("a % is followed by two hexadecimal digits; write %25 for itself"),
            Self::NoValue { name } => write!(f, "the parameter {name:?} has no value; write {name}=…"),
            Self::Twice { name } => write!(f, "the parameter {name:?} is there twice; write it once"),
            Self::NotAbsolute { scheme } => {
                write!(f, "after {scheme}:// comes an absolute path; write {scheme}:PATH or {scheme}:///ABSOLUTE/PATH")
            }
            Self::NoPlace { scheme } => write!(f, "it names no place; write {scheme}:PATH"),
            Self::Span { value } => {
                write!(f, "{value:?} is no span of time; write a whole number and a unit: 250ms, 5s, 2m, 1h, 1d")
            }
            Self::Flag { value } => write!(f, "{value:?} is neither true nor false"),
        }
    }
}

impl core::error::Error for AddressError {}

impl<'url> Address<'url> {
    /// Takes an address apart.
    ///
    /// # Errors
    /// [`AddressError`] when the text is none.
    pub fn parse(url: &'url str) -> Result<Self, AddressError> {
        let (scheme, rest) = url.split_once(':').ok_or(AddressError::NoScheme)?;
        let (path, behind) = rest.split_once('?').unwrap_or((rest, ""));
        let path = plain(path)?;
        let mut parameters: Vec<(&str, &str)> = Vec::new();
        for parameter in behind.split('&').filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err(AddressError::NoValue { name: parameter.to_owned() });
            };
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(AddressError::Twice { name: name.to_owned() });
            }
            parameters.push((name, value));
        }
        Ok(Self { scheme, path, parameters })
    }

    /// What stands in front of the first colon.
    #[must_use]
    pub const fn scheme(&self) -> &'url str {
        self.scheme
    }

    /// What stands between the first colon and the question mark, with its `%XX` replaced.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of a file or folder: behind `//` it is absolute, and it is not empty.
    ///
    /// # Errors
    /// [`AddressError`] when it is not so.
    pub fn place(&self) -> Result<&str, AddressError> {
        let scheme = || self.scheme.to_owned();
        match self.path.strip_prefix("//") {
            Some(absolute) if absolute.starts_with('/') => Ok(absolute),
            Some(_) => Err(AddressError::NotAbsolute { scheme: scheme() }),
            None if self.path.is_empty() => Err(AddressError::NoPlace { scheme: scheme() }),
            None => Ok(&self.path),
        }
    }

    /// The parameters and their values, as they stand there.
    #[must_use]
    pub fn parameters(&self) -> &[(&'url str, &'url str)] {
        &self.parameters
    }
}

/// Reads a value that is a span of time: a whole number with one of `ms`, `s`, `m`, `h`, `d`.
///
/// # Errors
/// [`AddressError::Span`] when it is none.
pub fn span(value: &str) -> Result<Duration, AddressError> {
    let read = || {
        let (number, unit) = value.split_at(value.find(|c: char| !c.is_ascii_digit())?);
        let millis: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(millis)
    };
    read().map(Duration::from_millis).ok_or_else(|| AddressError::Span { value: value.to_owned() })
}

/// Reads a value that is `true` or `false`.
///
/// # Errors
/// [`AddressError::Flag`] when it is neither.
pub fn flag(value: &str) -> Result<bool, AddressError> {
    value.parse().map_err(|_| AddressError::Flag { value: value.to_owned() })
}

/// What may be shown of an address of a server, up to its parameters, that names no user: what stands where a port belongs may be
/// a password whose host was forgotten.
#[must_use]
pub fn without_stray_password(place: &str) -> &str {
    match place.rsplit_once(':') {
        Some((before, port)) if before.contains("//") && !port.starts_with(|c: char| c.is_ascii_digit()) => before,
        _ => place,
    }
}

/// A path, or a name, as an address writes it: without what would end it there, or what no name can hold.
#[must_use]
pub fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '%' | '?') || c.is_control() {
            let mut bytes = [0; 4];
            text.extend(c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")));
        } else {
            text.push(c);
        }
    }
    text
}

/// The text with its `%XX` replaced.
///
/// # Errors
/// [`AddressError::Escape`] when one of them is none, or the result is no text.
pub fn plain(text: &str) -> Result<String, AddressError> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(AddressError::Escape) };
        plain.push(high * 16 + low);
    }
    String::from_utf8(plain).map_err(|_| AddressError::Escape)
}

#[cfg(test)]
mod tests;
