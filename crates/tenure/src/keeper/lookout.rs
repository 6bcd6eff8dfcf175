//! When a wish looks again at a resource that another process holds.

use super::Shared;
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::random_bits;
use tenure_authority::store::{Hint, Wake};
use tenure_core::{HolderClock, Instant, ResourceName, Timing};

/// Between two looks where the store cannot tell of changes.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Where it can, and a look is only for what was never told.
const UNTOLD: Duration = Duration::from_secs(5);

/// Those who are told of the same change do not look at once, but within this: whoever hears meanwhile that somebody else
/// was granted the resource spares the look.
const WINDOW: Duration = Duration::from_millis(250);

/// A newcomer looks half a window later than one who has waited for ever; after this long the difference is a half of that.
const YOUTH: Duration = Duration::from_secs(5);

/// Between two attempts of one wish, whatever came of the first.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// While the authority does not answer, growing from [`LOOK_AGAIN`].
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// When an attempt is made once more.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    After(Duration),
    /// Another process holds the resource, for so long still if it is not heard of again.
    Free {
        remaining: Duration,
    },
    /// The authority did not answer.
    Answered,
}

/// One wish's eyes on a resource.
pub(super) struct Lookout<'a> {
    shared: &'a Arc<Shared>,
    resource: &'a ResourceName,
    began: Instant<HolderClock>,
    until: Instant<HolderClock>,
    /// Asked for once it is known that there is something to wait for. `Some(None)`: the store cannot tell.
    wake: Option<Option<Wake>>,
    /// Between two looks where the store tells of changes.
    untold: Duration,
    /// After the next attempt without an answer.
    silence: Duration,
}

/// The moments at which a look is due.
#[derive(Debug)]
struct Plan {
    /// Whatever is told.
    poll: Instant<HolderClock>,
    /// The holder's deadline, as the last look showed it, and a moment after it that is this waiter's own.
    over: Option<[Instant<HolderClock>; 2]>,
    /// After the news that the resource may be free.
    told: Option<Instant<HolderClock>>,
}

impl<'a> Lookout<'a> {
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        resource: &'a ResourceName,
        timing: Timing,
        began: Instant<HolderClock>,
        until: Instant<HolderClock>,
    ) -> Self {
        // Not oftener than it renews its own session.
        let untold = timing.renew_every().clamp(LOOK_AGAIN, UNTOLD);
        Self { shared, resource, began, until, wake: None, untold, silence: LOOK_AGAIN }
    }

    /// Ends when it is time for the next attempt, or when there is no more time.
    pub(super) async fn wait(&mut self, when: When) {
        let silence = std::mem::replace(&mut self.silence, LOOK_AGAIN);
        match when {
            When::Free { remaining } => self.until_free(remaining).await,
            When::After(span) => self.pause(span.max(SHORTEST_PAUSE)).await,
            When::Answered => {
                self.silence = (silence * 2).min(LONGEST_SILENCE);
                self.pause(jittered(silence)).await;
            }
        }
    }

    async fn pause(&self, span: Duration) {
        let Ok(now) = self.shared.now() else { return };
        self.shared.pause_until(now, now.after(span).min(self.until)).await;
    }

    async fn until_free(&mut self, remaining: Duration) {
        if self.wake.is_none() && self.watch() {
            // What happened between that look and the watching was told to nobody.
            return self.pause(SHORTEST_PAUSE).await;
        }
        let Ok(now) = self.shared.now() else { return };
        let deadline = now.after(remaining);
        let over = Some([deadline, deadline.after(self.turn(now))]);
        self.rest(Plan { poll: self.poll(now), over, told: None }).await;
    }

    /// It was this process's for long: ends when others had a chance to look, as if this one had just been told.
    pub(super) async fn let_others(&mut self) {
        self.watch();
        let Ok(now) = self.shared.now() else { return };
        let told = Some(now.after(self.turn(now)));
        self.rest(Plan { poll: self.poll(now), over: None, told }).await;
    }

    /// Whether the store tells of changes from now on.
    fn watch(&mut self) -> bool {
        let wake = || self.shared.authority.store().watch(self.resource);
        self.wake.get_or_insert_with(wake).is_some()
    }

    /// The next look, if nothing is told.
    fn poll(&self, now: Instant<HolderClock>) -> Instant<HolderClock> {
        let tells = matches!(self.wake, Some(Some(_)));
        now.after(jittered(if tells { self.untold } else { LOOK_AGAIN }))
    }

    async fn rest(&mut self, mut plan: Plan) {
        while let Ok(now) = self.shared.now() {
            let next = plan.next().min(self.until);
            if now.reached(&next) {
                return;
            }
            let told = async {
                match &mut self.wake {
                    Some(Some(wake)) => wake.changed().await,
                    _ => std::future::pending().await,
                }
            };
            let hint = tokio::select! {
                biased;
                hint = told => hint,
                () = self.shared.pause_until(now, next) => return,
            };
            let Ok(now) = self.shared.now() else { return };
            plan.hear(hint, now, now.after(self.turn(now)));
        }
    }

    /// This waiter's own moment within the window.
    fn turn(&self, now: Instant<HolderClock>) -> Duration {
        turn(now.since(&self.began), random_bits().unwrap_or_default())
    }
}

impl Plan {
    fn next(&self) -> Instant<HolderClock> {
        let own = self.over.map(|[_, own]| own);
        [own, self.told].into_iter().flatten().fold(self.poll, Instant::min)
    }

    /// `own` is this waiter's own moment from `now` on.
    fn hear(&mut self, hint: Hint, now: Instant<HolderClock>, own: Instant<HolderClock>) {
        match hint {
            Hint::Taken => {
                self.told = None;
                // A former holder's deadline. Until it has passed, the news is about the holder that was seen.
                self.over = self.over.filter(|[deadline, _]| !now.reached(deadline));
            }
            Hint::Free | Hint::Unknown => {
                self.over = None;
                self.told.get_or_insert(own);
            }
        }
    }
}

/// A random moment in the half of the window that the time waited puts the waiter into: newcomers into the second half,
/// and the longer one has waited the more of the first.
fn turn(waited: Duration, bits: u128) -> Duration {
    let young = YOUTH.as_secs_f64() / (YOUTH + waited).as_secs_f64();
    WINDOW.mul_f64(f64::midpoint(young, part(bits)))
}

/// Half to one and a half of the span, so that waiters do not come in step.
pub(super) fn jittered(span: Duration) -> Duration {
    span.mul_f64(0.5 + part(random_bits().unwrap_or_default()))
}

/// From 0 to just under 1.
fn part(bits: u128) -> f64 {
    f64::from(u16::try_from(bits % 1024).unwrap_or_default()) / 1024.0
}

#[cfg(test)]
mod tests;
