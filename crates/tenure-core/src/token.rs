//! The only thing a sink ever sees of a grant.

use crate::{Epoch, GrantId, ResourceName};
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// The right to write, as it is shown to a sink: whose turn it is.
///
/// It is not a password: whoever can reach a sink is trusted to show only tokens that it was granted.
///
/// `Ord` is for collections. Whose turn it is says [`Token::order`].
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// What is held.
    pub resource: ResourceName,
    /// Which grant of it.
    pub epoch: Epoch,
    /// The grant's own id: two grants of one epoch exist only after an authority lost its memory.
    pub grant: GrantId,
}

/// How one token of a resource stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// An earlier epoch.
    Older,
    /// The same epoch and the same grant.
    Same,
    /// A later epoch.
    Newer,
    /// The same epoch with another grant id: never equality.
    Conflict,
}

impl Token {
    /// How this token stands to the one that another place has recorded for the same resource.
    #[must_use]
    pub fn order(&self, epoch: Epoch, grant: GrantId) -> Order {
        match self.epoch.cmp(&epoch) {
            core::cmp::Ordering::Less => Order::Older,
            core::cmp::Ordering::Greater => Order::Newer,
            core::cmp::Ordering::Equal if self.grant == grant => Order::Same,
            core::cmp::Ordering::Equal => Order::Conflict,
        }
    }
}

/// The written form: `resource@epoch:grant`.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{}", self.resource, self.epoch, self.grant)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}:{:?}", self.resource, self.epoch, self.grant)
    }
}

/// The text is not a token; the message says which part is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError(String);

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a token is written resource@epoch:grant, but {}", self.0)
    }
}

impl core::error::Error for TokenError {}

impl FromStr for Token {
    type Err = TokenError;
    fn from_str(text: &str) -> Result<Self, TokenError> {
        let wrong = |error: &dyn fmt::Display| TokenError(alloc::format!("{error}"));
        // From the right: a resource name may hold '@' and ':' itself.
        let (resource, rest) = text.rsplit_once('@').ok_or_else(|| wrong(&"there is no '@'"))?;
        let (epoch, grant) = rest.split_once(':').ok_or_else(|| wrong(&"there is no ':' after the '@'"))?;
        Ok(Self {
            resource: resource.parse().map_err(|error| wrong(&error))?,
            epoch: epoch.parse().map_err(|error| wrong(&error))?,
            grant: grant.parse().map_err(|error| wrong(&error))?,
        })
    }
}

#[cfg(test)]
mod tests;
