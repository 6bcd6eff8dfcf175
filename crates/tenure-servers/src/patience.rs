//! Waiting for something to become so, with a limit.

use std::time::{Duration, Instant};

/// How long anything here waits for a server before it panics.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Asks again and again until there is an answer.
///
/// # Panics
///
/// There was none within [`PATIENCE`]; the message says `what` was waited for.
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, probe).unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain: {what}"))
}

/// Asks again and again until there is an answer; `None` when there was none in time. It asks at least once.
pub fn within<T>(patience: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a limit for patience decides nothing, and no clock of ours is seen here"
    )]
    let now = Instant::now;
    let begin = now();
    let mut nap = Duration::from_millis(1);
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if now().duration_since(begin) >= patience {
            return None;
        }
        #[expect(clippy::disallowed_methods, reason = "a server says nothing when it is ready: it is asked again")]
        std::thread::sleep(nap);
        nap = (nap * 2).min(Duration::from_millis(25));
    }
}
