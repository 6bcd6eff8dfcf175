//! The system's file lock, waited for within a bound.

use super::durable::io_error;
use super::folder::Folder;
use crate::SinkError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

/// The first pause between two tries, and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(2));

/// A file lock. The system lets it go when this is dropped, and when the process ends in whatever way.
#[derive(Debug)]
#[must_use = "it is let go at once when it is dropped"]
pub(super) struct Hold(#[expect(dead_code, reason = "its lock lives as long as it is open")] File);

/// With whom the hold is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// With others in this mode.
    Shared,
    /// With nobody.
    Alone,
}

impl Hold {
    /// Waits for the lock of a file that is there, and takes the time waited off `left`.
    ///
    /// It asks again and again, since the system has no wait with a bound. The pauses are what is counted: a process that
    /// was suspended meanwhile does not find its bound used up.
    pub(super) fn wait(folder: &Folder, path: &Path, mode: Mode, left: &mut Duration) -> Result<Self, SinkError> {
        let doing = "taking the file lock";
        let file = OpenOptions::new().append(true).open(path).map_err(|error| io_error(folder, doing, &error))?;
        let (mut waited, mut pause) = (Duration::ZERO, PAUSE.0);
        loop {
            let taken = match mode {
                Mode::Shared => file.try_lock_shared(),
                Mode::Alone => file.try_lock(),
            };
            match taken {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::Error(error)) => return Err(io_error(folder, doing, &error)),
                Err(TryLockError::WouldBlock) if left.is_zero() => {
                    return Err(SinkError::Busy { place: path.display().to_string(), waited });
                }
                Err(TryLockError::WouldBlock) => {
                    let now = pause.min(*left);
                    #[expect(clippy::disallowed_methods, reason = "there is nothing to wait on but the file lock")]
                    std::thread::sleep(now);
                    (*left, waited, pause) = (*left - now, waited + now, (pause * 2).min(PAUSE.1));
                }
            }
        }
    }
}
