//! Where a drill stops or ends a worker: right where it hurts.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// A moment of a round: each lies right after a checkpoint, so that nothing looks again before the next effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// The documents are listed.
    Listed,
    /// The chunks are in their file.
    Chunked,
    /// A batch of vectors is kept.
    Embedded,
    /// A batch of the shadow generation is written.
    Written,
    /// The shadow generation is whole.
    Verified,
    /// The alias is about to move: the last checkpoint has passed.
    BeforeSwitch,
    /// The alias has moved, and the round is not recorded.
    BeforeRecord,
}

/// What happens at which point. Read from the environment once, for drills and for the demonstration.
#[derive(Debug, Default)]
pub struct Points {
    stop: Option<At>,
    kill: Option<At>,
}

#[derive(Debug)]
struct At {
    point: Point,
    /// So many passings are let through still.
    left: AtomicU32,
}

/// The environment's word does not name a point.
#[derive(Debug, thiserror::Error)]
#[error("{variable}={given:?} names no point: use one of {}, with `:N` for the N-th passing", names())]
pub struct PointError {
    variable: &'static str,
    given: String,
}

/// Stops the process at a point, until somebody sends it SIGCONT.
pub const STOP: &str = "VECTOR_SYNC_STOP";
/// Kills the process at a point.
pub const KILL: &str = "VECTOR_SYNC_KILL";

impl Point {
    /// All of them, in the order of a round.
    pub const ALL: [Self; 7] = [
        Self::Listed,
        Self::Chunked,
        Self::Embedded,
        Self::Written,
        Self::Verified,
        Self::BeforeSwitch,
        Self::BeforeRecord,
    ];

    /// Its name in the environment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Chunked => "chunked",
            Self::Embedded => "embedded",
            Self::Written => "written",
            Self::Verified => "verified",
            Self::BeforeSwitch => "before-switch",
            Self::BeforeRecord => "before-record",
        }
    }
}

fn names() -> String {
    Point::ALL.map(Point::name).join(", ")
}

impl fmt::Display for Point {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for At {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        let (name, number) = word.split_once(':').unwrap_or((word, "1"));
        let point = Point::ALL.into_iter().find(|point| point.name() == name).ok_or(())?;
        let number: u32 = number.parse().map_err(drop)?;
        Ok(Self { point, left: AtomicU32::new(number.checked_sub(1).ok_or(())?) })
    }
}

impl Points {
    /// What the environment asks for: nothing, as a rule.
    ///
    /// # Errors
    /// [`PointError`]: correct the variable.
    pub fn from_env() -> Result<Self, PointError> {
        Ok(Self { stop: at(STOP)?, kill: at(KILL)? })
    }

    /// The round has come here.
    pub fn pass(&self, point: Point) {
        if self.stop.as_ref().is_some_and(|at| at.is_due(point)) {
            end_or_stop(rustix::process::Signal::STOP);
        }
        if self.kill.as_ref().is_some_and(|at| at.is_due(point)) {
            end_or_stop(rustix::process::Signal::KILL);
        }
    }
}

impl At {
    /// Once, at the passing that was asked for.
    fn is_due(&self, point: Point) -> bool {
        self.point == point
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) == Err(0)
            && self.left.swap(u32::MAX, Ordering::Relaxed) == 0
    }
}

fn at(variable: &'static str) -> Result<Option<At>, PointError> {
    match std::env::var(variable) {
        Ok(word) => word.parse().map(Some).map_err(|()| PointError { variable, given: word }),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(word)) => {
            Err(PointError { variable, given: word.to_string_lossy().into_owned() })
        }
    }
}

fn end_or_stop(signal: rustix::process::Signal) {
    // A signal to oneself cannot fail for want of rights.
    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
}
