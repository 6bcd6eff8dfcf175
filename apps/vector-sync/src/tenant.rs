//! Whose index it is.

use std::fmt;
use std::str::FromStr;
use tenure::ResourceName;

/// The name of a tenant: up to 48 of `a-z`, `0-9`, `-` and `_`, the first of them a letter or a digit. So it is the name of a
/// resource, of a file, of a table's row and of a collection alike, without quotes anywhere, and no two tenants have names
/// that a file system takes for the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tenant(String);

/// Why a text is no tenant's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} cannot be a tenant's name: {why}; use up to 48 of a-z, 0-9, `-` and `_`, beginning with a letter or a digit"
)]
pub struct TenantError {
    /// What was given.
    pub name: String,
    /// What is wrong.
    pub why: &'static str,
}

impl Tenant {
    /// The longest name, in bytes. A collection of the served index is called after tenant, epoch and grant, in 128 bytes.
    pub const MAX: usize = 48;

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the lease is about.
    #[must_use]
    pub fn resource(&self) -> ResourceName {
        #[expect(clippy::expect_used, reason = "short, not empty, plain ASCII")]
        format!("vectors:{}", self.0).parse().expect("a valid name")
    }
}

impl FromStr for Tenant {
    type Err = TenantError;

    fn from_str(name: &str) -> Result<Self, TenantError> {
        let no = |why| Err(TenantError { name: name.chars().take(80).collect(), why });
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        match name.as_bytes() {
            [] => no("it is empty"),
            [first, ..] if !plain(*first) => no("it does not begin with a small letter or a digit"),
            bytes if bytes.len() > Self::MAX => no("it is too long"),
            bytes if !bytes.iter().all(|byte| plain(*byte) || b"-_".contains(byte)) => no("it has other characters"),
            _ => Ok(Self(name.to_owned())),
        }
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
