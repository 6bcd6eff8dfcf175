use super::{Shared, locked};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tenure_authority::AuthorityError;
use tenure_core::decide::{Refusal, Reply, Request};
use tenure_core::record::Seen;
use tenure_core::{HolderClock, Instant};

/// What the authority said; the error is that it said nothing.
pub(super) type Answered = Result<Result<Reply, Refusal>, AuthorityError>;

impl Shared {
    /// Asks the authority, and waits at most `within` for the answer. Silence is [`AuthorityError::Unknown`].
    pub(super) async fn ask(&self, request: &Request, within: Duration) -> Answered {
        tokio::select! {
            biased;
            answer = self.authority.execute(request) => {
                if let Ok(answer) = &answer {
                    self.note(answer);
                }
                answer
            }
            () = self.pause(within) => Err(AuthorityError::Unknown),
        }
    }

    /// Asks again after each silence, with a growing pause, until `until`. Only for requests that may be repeated, which
    /// all of the protocol's may.
    pub(super) async fn insist(&self, request: &Request, within: Duration, until: Instant<HolderClock>) -> Answered {
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = self.ask(request, within).await;
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let left = self.now().map_or(Duration::ZERO, |now| until.since(&now));
            if left.is_zero() || !is_worth_repeating(&error) || self.stop.is_cancelled() {
                return Err(error);
            }
            self.pause(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Waits for a span of the clock.
    pub(super) async fn pause(&self, span: Duration) {
        let Ok(now) = self.now() else { return };
        self.pause_until(now, now.after(span)).await;
    }

    /// Waits for an instant, seen from `now`: a process that stops in between does not wait for longer. A clock that
    /// goes back ends the wait, since nobody could say for how long.
    pub(super) async fn pause_until(&self, now: Instant<HolderClock>, until: Instant<HolderClock>) {
        let mut before = now;
        while let Ok(now) = self.now()
            && !now.reached(&until)
            && now >= before
        {
            before = now;
            // So that the next step sees a clock that went back in the midst of a wait.
            self.latest.fetch_max(now.as_nanos(), Ordering::AcqRel);
            let nap = self.clock.nap(until.since(&now));
            #[expect(clippy::disallowed_methods, reason = "a nap; the clock above decides")]
            tokio::time::sleep(nap).await;
        }
    }

    /// Remembers the newest point of the authority's history, to be shown with later requests.
    pub(super) fn note(&self, answer: &Result<Reply, Refusal>) {
        if let Ok(Reply::Hello { seen, .. } | Reply::Opened { seen } | Reply::Renewed { seen, .. }) = answer {
            let mut latest = locked(&self.seen);
            if *seen > *latest {
                *latest = *seen;
                if let Some(remembered) = &self.remembered {
                    remembered.tell(*seen);
                }
            }
        }
    }

    pub(super) fn latest_seen(&self) -> Seen {
        *locked(&self.seen)
    }
}

pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(5);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Whether the same request may be answered later without anybody's doing.
pub(super) fn is_worth_repeating(error: &AuthorityError) -> bool {
    match error {
        AuthorityError::Store(error) => error.is_transient(),
        AuthorityError::Unknown | AuthorityError::Contended => true,
    }
}
