//! The names of a resource, and what each stands for.

use super::manifest::Object;
use crate::SinkError;
use std::collections::BTreeMap;

/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 1024;

/// What the names of a resource stand for at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub(super) BTreeMap<String, Object>);

impl Names {
    /// What a name stands for; `None` when there is no such name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Object> {
        self.0.get(name)
    }

    /// All of them, in the order of their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Object)> {
        self.0.iter().map(|(name, object)| (name.as_str(), object))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A name stands in the manifest alone, and never in a key. So it may be any text: `..`, slashes, quotes, a NUL.
pub(super) fn check_name(name: &str) -> Result<(), SinkError> {
    let why = match name.len() {
        0 => "give it at least one byte",
        1..=NAME_BYTES_MAX => return Ok(()),
        _ => "give it at most 1024 bytes",
    };
    let shown = name.chars().take(80).collect();
    Err(SinkError::BadName { name: shown, why })
}
