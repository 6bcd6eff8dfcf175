//! How long a call goes on trying.

use super::nonce::Nonce;
use crate::{Answer, SinkError};
use futures_util::{StreamExt, TryStreamExt};
use std::time::{Duration, Instant};

/// The bound on one call. It decides nothing but when to give up: a process that was suspended finds it used up.
pub(super) struct Patience {
    began: Instant,
    wait: Duration,
    naps: u32,
}

/// The first nap and the longest.
const NAP: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(250));

impl Patience {
    pub(super) fn new(wait: Duration) -> Self {
        Self { began: now(), wait, naps: 0 }
    }

    pub(super) fn is_over(&self) -> bool {
        self.spent() >= self.wait
    }

    pub(super) fn spent(&self) -> Duration {
        self.began.elapsed()
    }

    /// Waits a while that grows, and differs between those who wait for the same.
    pub(super) async fn nap(&mut self, nonce: Nonce) {
        let most = NAP.0.saturating_mul(1 << self.naps.min(8)).min(NAP.1);
        self.naps += 1;
        let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
        pause(Duration::from_millis(1 + nonce.below(most))).await;
    }
}

pub(super) async fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a pause between attempts may well stop during suspend")]
    tokio::time::sleep(span).await;
}

/// For spans of a call. No deadline of a lease is judged by it.
pub(super) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "bounds a wait, and decides nothing else")]
    Instant::now()
}

/// So many questions are on their way at once.
const AT_ONCE: usize = 8;

/// Waits for all of them, and gives their answers in their order.
pub(super) async fn all_of<T>(asked: Vec<Answer<'_, Result<T, SinkError>>>) -> Result<Vec<T>, SinkError> {
    futures_util::stream::iter(asked).buffered(AT_ONCE).try_collect().await
}
