use super::kept::Kept;
use super::{Excuse, Keeper, News, Shared, fork};
use crate::error::Lost;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tenure_core::{Loss, SinkId, Token};
use tenure_sink::Sink;
use tokio_util::sync::CancellationToken;

/// One lease that was handed out. Kept small: a process may hold a hundred thousand.
pub(crate) struct Held {
    token: Token,
    session: Arc<Kept>,
    /// Zero while it is held, then the code of the loss, for ever.
    lost: AtomicU8,
    rare: OnceLock<Box<Rare>>,
}

/// What few leases need.
#[derive(Default)]
pub(super) struct Rare {
    /// How long the wish waited at most, if not as long as usual.
    pub(super) wait: Option<Duration>,
    pub(super) cancelled: CancellationToken,
    pub(super) sinks: Arc<[Arc<dyn Sink>]>,
    pub(super) label: Option<Arc<str>>,
    pub(super) progress: Option<Progress>,
    /// Whom the wish lets its takeover do without.
    pub(super) excuse: Excuse,
    /// The receivers that it was announced without, until they are sealed.
    pub(super) excused: Mutex<BTreeSet<SinkId>>,
    pub(super) news: Option<News>,
}

/// The promise of a checkpoint within a span.
pub(super) struct Progress {
    pub(super) within: Duration,
    latest: AtomicU64,
}

impl Progress {
    pub(super) fn new(within: Duration, now: u64) -> Self {
        Self { within, latest: AtomicU64::new(now) }
    }

    pub(super) fn latest(&self) -> u64 {
        self.latest.load(Ordering::Acquire)
    }
}

impl Held {
    pub(super) fn new(token: Token, session: Arc<Kept>, rare: Option<Rare>) -> Self {
        let held = Self { token, session, lost: AtomicU8::new(0), rare: OnceLock::new() };
        if let Some(rare) = rare {
            held.rare.get_or_init(|| Box::new(rare));
        }
        held
    }

    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Another connection, for a lease that outlives its own.
    pub(crate) fn keeper(&self) -> Arc<Keeper> {
        Keeper::of(self.shared())
    }

    /// A lease in a caller's hand keeps the keeper going, also when it is lost: it may be resumed.
    pub(crate) fn enter(&self) {
        self.shared().enter();
    }

    pub(crate) fn leave(&self) {
        self.shared().leave();
    }

    pub(super) fn session(&self) -> &Arc<Kept> {
        &self.session
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.session.shared()
    }

    pub(super) fn rare(&self) -> Option<&Rare> {
        self.rare.get().map(Box::as_ref)
    }

    /// The checkpoint's first two lines: the sticky flag, then the own deadline, on the caller's thread.
    pub(crate) fn standing(&self) -> Result<(), Lost> {
        if let Some(loss) = self.loss() {
            return Err(self.lost_by(loss));
        }
        let shared = self.shared();
        let found = match shared.now() {
            Err(loss) => Err(loss),
            Ok(_) if fork::generation() != shared.process => Err(Loss::Forked),
            Ok(now) if !self.session.gate.is_open(now) => Err(self.session.loss()),
            Ok(now) => match self.rare().and_then(|rare| rare.progress.as_ref()) {
                Some(progress) => progress.checkpoint(now.as_nanos()),
                None => Ok(()),
            },
        };
        match found {
            Ok(()) => Ok(()),
            Err(loss) => {
                self.lose(loss);
                Err(self.lost_by(self.loss().unwrap_or(loss)))
            }
        }
    }

    /// The time to the own deadline.
    pub(crate) fn time_left(&self) -> Result<Duration, Lost> {
        self.standing()?;
        // Read anew: a renewal between the two readings makes it later, and a loss makes it none.
        let left = self.shared().now().ok().zip(self.session.gate.deadline());
        Ok(left.map_or(Duration::ZERO, |(now, deadline)| deadline.since(&now)))
    }

    fn lost_by(&self, loss: Loss) -> Lost {
        Lost { token: self.token.clone(), loss }
    }

    pub(super) fn loss(&self) -> Option<Loss> {
        Loss::from_code(self.lost.load(Ordering::Acquire))
    }

    pub(crate) fn cancellation(&self) -> CancellationToken {
        let cancelled = self.rare.get_or_init(Box::default).cancelled.clone();
        // Either this sees the loss, or the loser sees this token: each writes its own and then reads the other's.
        fence(Ordering::SeqCst);
        if self.loss().is_some() {
            cancelled.cancel();
        }
        cancelled
    }

    /// Loses the lease for good, and has the keeper give the grant up. The first reason stays.
    pub(crate) fn lose(&self, loss: Loss) {
        if self.latch(loss) {
            Keeper::give_up_later(self);
        }
    }

    /// The flag alone. Returns whether this call set it.
    pub(super) fn latch(&self, loss: Loss) -> bool {
        if self.lost.compare_exchange(0, loss as u8, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return false;
        }
        fence(Ordering::SeqCst);
        if let Some(rare) = self.rare() {
            rare.cancelled.cancel();
        }
        self.shared().losses.count(loss);
        let label = self.rare().and_then(|rare| rare.label.as_deref());
        let (owner, token) = (&self.shared().owner, &self.token);
        if loss == Loss::Ended {
            tracing::info!(%owner, resource = %token.resource, epoch = token.epoch.get(), label, "lease given up");
        } else {
            tracing::warn!(%owner, resource = %token.resource, epoch = token.epoch.get(), label, loss = loss.name(), "lease lost");
        }
        true
    }
}

impl Progress {
    fn checkpoint(&self, now: u64) -> Result<(), Loss> {
        let within = u64::try_from(self.within.as_nanos()).unwrap_or(u64::MAX);
        if now.saturating_sub(self.latest()) >= within {
            return Err(Loss::Stalled);
        }
        self.latest.fetch_max(now, Ordering::AcqRel);
        Ok(())
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("token", &self.token).field("lost", &self.loss()).finish_non_exhaustive()
    }
}
