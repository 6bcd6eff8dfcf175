//! How long something is waited for. Nothing that must be safe hangs on it: deadlines are the lease's.
#![expect(clippy::disallowed_methods, reason = "a wait that a suspended machine stretches is a wait still")]

use std::time::{Duration, Instant};

/// Pauses between tries, each twice as long as the one before, up to the last.
#[derive(Debug)]
pub struct Patience {
    since: Instant,
    most: Duration,
    pause: Duration,
}

/// How long parts of something take.
#[derive(Debug)]
pub struct Stopwatch(Instant);

const FIRST: Duration = Duration::from_millis(50);
const LAST: Duration = Duration::from_secs(2);

impl Patience {
    /// For so long at most.
    #[must_use]
    pub fn new(most: Duration) -> Self {
        Self { since: Instant::now(), most, pause: FIRST }
    }

    /// Whether the next pause would last too long.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.spent() + self.pause > self.most
    }

    /// Whether it has lasted long enough to tell people.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.pause == LAST
    }

    /// How long it has lasted.
    #[must_use]
    pub fn spent(&self) -> Duration {
        self.since.elapsed()
    }

    /// The next pause.
    pub async fn pause(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LAST);
    }
}

impl Stopwatch {
    /// From now on.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Milliseconds since the start or the last lap.
    pub fn lap(&mut self) -> u64 {
        let spent = self.spent();
        self.0 = Instant::now();
        u64::try_from(spent.as_millis()).unwrap_or(u64::MAX)
    }

    /// How long it is since the start or the last lap.
    #[must_use]
    pub fn spent(&self) -> Duration {
        self.0.elapsed()
    }
}

/// A pause.
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

/// What something comes to in this time; `None` when it takes longer.
pub async fn within<Work: Future>(time: Duration, work: Work) -> Option<Work::Output> {
    tokio::time::timeout(time, work).await.ok()
}
