//! The rules of the tree.
//!
//! Each rule is a pure function from texts to [`Finding`]s and has a failing case among its own tests: a rule that
//! cannot fail holds nothing. `xtask/tests/tidy.rs` applies them all to the real tree.

pub mod directions;
pub mod documents;
pub mod guarantees;
pub mod lengths;
pub mod manifests;
pub mod marks;
pub mod names;
pub mod places;
pub mod source;
pub mod tree;
pub mod words;

use std::fmt;

pub use tree::File;

/// A place where a rule does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, and the line where there is one.
    pub place: String,
    /// What is wrong and what to do.
    pub what: String,
}

impl Finding {
    pub(crate) fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// A finding on a line, counted from 0.
    pub(crate) fn on_line(file: &File, line: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{}:{}", file.path, line + 1), what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}
