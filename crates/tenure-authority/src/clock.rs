use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where the time comes from. Cheap to clone; all clones are one clock.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's suspend-aware clock.
    Boot(BootClock),
    /// A file that several processes share, driven by a test.
    File(FileClock),
    /// A number in this process, driven by a test.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The clock of this build and environment: the machine's, or the shared file that `TENURE_CLOCK=file:PATH` names
    /// in a build with the `lab` feature.
    ///
    /// # Errors
    /// [`ClockError`] when the variable is set to something else, or in a build without the feature: a test that drives
    /// time must not silently run on the real clock.
    pub fn from_env() -> Result<Self, ClockError> {
        match std::env::var_os("TENURE_CLOCK") {
            None => Ok(Self::Boot(BootClock)),
            Some(value) if cfg!(feature = "lab") => {
                match value.to_str().and_then(|value| value.strip_prefix("file:")) {
                    Some(path) => Ok(Self::File(FileClock::open(path)?)),
                    None => Err(ClockError::Unreadable {
                        path: value.into(),
                        why: "TENURE_CLOCK is written file:PATH".into(),
                    }),
                }
            }
            Some(_) => Err(ClockError::NotInThisBuild),
        }
    }

    /// Nanoseconds since the clock's beginning.
    ///
    /// # Errors
    /// [`ClockError`] when a shared clock file cannot be read. The caller must treat it as the end of every belief.
    pub fn now_nanos(&self) -> Result<u64, ClockError> {
        match self {
            Self::Boot(clock) => Ok(clock.now_nanos()),
            Self::File(clock) => clock.now_nanos(),
            Self::Manual(nanos) => Ok(nanos.load(Ordering::Acquire)),
        }
    }

    /// The longest that a waiter may sleep before it looks at the clock again: a driven clock may jump at any moment.
    #[must_use]
    pub fn nap(&self, left: Duration) -> Duration {
        match self {
            // The machine's timers do not count suspend, so a long sleep is cut short as well.
            Self::Boot(_) => left.min(Duration::from_secs(1)),
            Self::File(_) | Self::Manual(_) => left.min(Duration::from_millis(2)),
        }
    }

    /// What names this clock's beginning: readings of two beginnings cannot be compared.
    #[must_use]
    pub fn origin(&self) -> String {
        match self {
            Self::Boot(_) => boot_id(),
            Self::File(clock) => format!("file:{}", clock.path.display()),
            Self::Manual(_) => "manual".to_owned(),
        }
    }
}

/// CLOCK_BOOTTIME: it counts the time in suspend, which `std::time::Instant` does not (rust-lang/rust#87906).
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl BootClock {
    /// Nanoseconds since the machine was started.
    #[must_use]
    pub fn now_nanos(self) -> u64 {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
        seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
    }
}

/// The id of this start of the machine. Empty where the kernel does not tell it; then a reboot is not noticed, and
/// sessions end by their deadlines.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
}

/// A clock in a file: one decimal number, milliseconds. Whoever drives the test writes it; every process reads it anew.
#[derive(Clone)]
pub struct FileClock {
    path: Arc<Path>,
}

impl fmt::Debug for FileClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileClock({})", self.path.display())
    }
}

impl FileClock {
    /// Takes the file, and reads it once.
    ///
    /// # Errors
    /// [`ClockError::Unreadable`] when it is not there or holds something else.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ClockError> {
        let clock = Self { path: Arc::from(path.as_ref()) };
        clock.now_nanos()?;
        Ok(clock)
    }

    /// Sets the time of every process that shares the file, in one atomic step.
    ///
    /// # Errors
    /// What the file system says.
    pub fn set_millis(path: impl AsRef<Path>, millis: u64) -> io::Result<()> {
        let path = path.as_ref();
        let mut aside = path.as_os_str().to_owned();
        aside.push(".next");
        std::fs::write(&aside, format!("{millis}\n"))?;
        std::fs::rename(&aside, path)
    }

    fn now_nanos(&self) -> Result<u64, ClockError> {
        let unreadable = |why: String| ClockError::Unreadable { path: self.path.to_path_buf(), why };
        let text = std::fs::read_to_string(&self.path).map_err(|error| unreadable(error.to_string()))?;
        let millis: u64 = text.trim().parse().map_err(|_| unreadable("it holds no decimal number".into()))?;
        Ok(millis.saturating_mul(1_000_000))
    }
}

/// A moment of the machine's wall clock, for people: it can be set, and decides nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// 9999-12-30 22:00 UTC, which is no later year in any zone: dates beyond have no common form.
    pub const MAX: Self = Self(253_402_207_200_000);

    /// The wall clock now.
    #[must_use]
    pub fn now() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock, for people only")]
        let now = std::time::SystemTime::now();
        let since = now.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    /// Milliseconds since the beginning of 1970, UTC; [`MAX`](Self::MAX) at most.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        if millis > Self::MAX.0 { Self::MAX } else { Self(millis) }
    }

    /// Milliseconds since the beginning of 1970, UTC.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }
}

/// Why there is no time to be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ClockError {
    /// The shared clock's file cannot be used.
    #[error("the clock file {} cannot be read ({why}): write a number of milliseconds into it", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        why: String,
    },
    /// `TENURE_CLOCK` is set, but this build keeps to the machine's clock.
    #[error(
        "TENURE_CLOCK is set, but this build was made without the `lab` feature: unset it, or build with `--features lab`"
    )]
    NotInThisBuild,
}

#[cfg(test)]
mod tests;
