//! Authorities that fall silent: not refused, not closed, only no answer.

pub(crate) mod dropped;
pub(crate) mod held;
pub(crate) mod process;

use std::path::PathBuf;
use std::time::Duration;

/// An authority's file that can fall silent and be mended again. Dropping it leaves nothing behind.
pub(crate) trait Rig {
    /// Where the authority's file is, or will be.
    fn path(&self) -> PathBuf;

    /// From when this returns on, nobody who writes gets an answer.
    fn silence(&mut self);

    /// From when this returns on, answers come again, also to what was asked before.
    fn mend(&mut self);

    /// The address of the authority, which is made when it is first used.
    fn authority_url(&self) -> String {
        format!("sqlite:{}?create=true", self.path().display())
    }
}

/// What has not come true within this time never does.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until it is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let step = Duration::from_millis(2);
    let mut left = PATIENCE;
    while !is_so() {
        assert!(!left.is_zero(), "still not so: {what}");
        std::thread::park_timeout(step);
        left = left.saturating_sub(step);
    }
}
