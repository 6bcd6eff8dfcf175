//! Authorities that fall silent: not refused, not closed, only no answer.

pub(crate) mod cable;
pub(crate) mod distant;
pub(crate) mod dropped;
pub(crate) mod held;
pub(crate) mod process;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use tenure::authority::BootClock;

/// An authority that can fall silent and be mended again. Dropping it leaves nothing behind.
pub(crate) trait Rig {
    /// From when this returns on, nobody who writes gets an answer.
    fn silence(&mut self);

    /// From when this returns on, answers come again, also to what was asked before.
    fn mend(&mut self);

    /// The address of the authority, which is made when it is first used.
    fn authority_url(&self) -> String;

    /// The address at which it never falls silent, for whoever judges; read after it was mended.
    fn judges_url(&self) -> String {
        self.authority_url()
    }

    /// The command at the place where the silence is.
    fn place(&self, command: Command) -> Command {
        command
    }

    /// The clock of the authority's deadlines, in nanoseconds, never less than it is.
    fn now(&self) -> u64 {
        BootClock.now_nanos()
    }
}

/// One with its authority in a file.
pub(crate) trait FileRig: Rig {
    /// Where the authority's file is, or will be.
    fn path(&self) -> PathBuf;

    /// The file's address.
    fn file_url(&self) -> String {
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
