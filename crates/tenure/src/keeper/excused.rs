//! Receivers that a takeover was announced without: who may be, and how they are sealed after it.

use super::held::Held;
use super::kept::Kept;
use super::sealing::{Limits, Trouble, drive, sealed_sinks};
use super::verbs::given_up;
use super::{Keeper, Shared};
use crate::error::WriteError;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tenure_core::holder::{HeldLease, LeasePhase, LeaseStep};
use tenure_core::{Loss, SinkId, Token};
use tenure_sink::Sink;

/// Whom a wish lets its takeover do without, and after how long.
#[derive(Clone, Debug, Default)]
pub(crate) struct Excuse {
    pub(crate) sinks: BTreeSet<SinkId>,
    /// Counted from the grant.
    pub(crate) after: Duration,
}

/// Between two tries that the authority, and not a receiver, has ended.
const PAUSE: Duration = Duration::from_secs(2);

impl Held {
    /// The receivers that the takeover was announced without, and that are not sealed yet.
    pub(crate) fn excused(&self) -> BTreeSet<SinkId> {
        self.rare().map(|rare| super::locked(&rare.excused).clone()).unwrap_or_default()
    }

    /// The checkpoint for a write at one receiver.
    pub(crate) fn may_write_to(&self, sink: &SinkId) -> Result<(), WriteError> {
        self.standing()?;
        let rare = self.rare().filter(|rare| rare.sinks.iter().any(|adapter| adapter.id() == sink));
        match rare {
            None => Err(WriteError::NotMine { sink: sink.clone() }),
            Some(rare) if super::locked(&rare.excused).contains(sink) => {
                Err(WriteError::Excused { sink: sink.clone(), token: self.token().clone() })
            }
            Some(_) => Ok(()),
        }
    }

    /// It is sealed after all.
    pub(super) fn not_excused_any_more(&self, sink: &SinkId) {
        if let Some(rare) = self.rare() {
            super::locked(&rare.excused).remove(sink);
        }
    }

    /// The lease of these seals was lost on the way: this one is lost with it, and what a receiver has shown is reported, so
    /// that the next epoch is above it.
    pub(super) async fn lost_while_sealing(self: &Arc<Self>, lease: &HeldLease) -> Loss {
        let loss = match lease.phase() {
            LeasePhase::Lost(loss) => *loss,
            _ => Loss::SealRefused,
        };
        let shown = lease.next_steps().into_iter().find_map(|step| match step {
            LeaseStep::Report(shown) => Some(shown),
            _ => None,
        });
        if shown.is_some() && self.latch(loss) {
            drop(given_up(self, shown).await);
        }
        self.lose(loss);
        loss
    }
}

impl Keeper {
    /// Goes on to seal what the takeover was announced without, for as long as the lease is held.
    pub(super) fn seal_the_rest(held: &Arc<Held>) {
        let unsealed = held.excused();
        let Some(sinks) = held.rare().filter(|_| !unsealed.is_empty()).map(|rare| Arc::clone(&rare.sinks)) else {
            return;
        };
        let rest = Rest {
            shared: Arc::clone(held.shared()),
            kept: Arc::clone(held.session()),
            token: held.token().clone(),
            sinks,
            held: Arc::downgrade(held),
        };
        let lost = held.cancellation();
        held.shared().spawn(async move {
            tokio::select! {
                biased;
                () = lost.cancelled() => {}
                () = rest.seal(unsealed) => {}
            }
        });
    }
}

/// What is left of a takeover after its announcement. It does not keep the lease.
struct Rest {
    shared: Arc<Shared>,
    kept: Arc<Kept>,
    token: Token,
    sinks: Arc<[Arc<dyn Sink>]>,
    held: Weak<Held>,
}

impl Rest {
    async fn seal(self, unsealed: BTreeSet<SinkId>) {
        let all = sealed_sinks(&self.sinks);
        let marked = |sink: &SinkId| {
            if let Some(held) = self.held.upgrade() {
                held.not_excused_any_more(sink);
            }
        };
        let news = self.held.upgrade().and_then(|held| held.rare().and_then(|rare| rare.news.clone()));
        let limits = Limits { news: news.as_ref(), marked: Some(&marked), ..Limits::default() };
        let mut lease = HeldLease::held(self.token.clone(), &all, &unsealed, all.clone());
        loop {
            match drive(&self.shared, &self.kept, &self.sinks, &mut lease, &limits).await {
                Ok(()) => return,
                Err(Trouble::Lost) => {
                    if let Some(held) = self.held.upgrade() {
                        held.lost_while_sealing(&lease).await;
                    }
                    return;
                }
                // The receiver knows of another one that cannot be sealed here. It stays unsealed with it.
                Err(Trouble::Refused(refusal)) => {
                    tracing::warn!(resource = %self.token.resource, epoch = self.token.epoch.get(), %refusal,
                        "a receiver that was excused stays unsealed");
                    return;
                }
                Err(Trouble::Authority(error)) => {
                    tracing::debug!(resource = %self.token.resource, %error, "seals after the announcement");
                }
                Err(Trouble::Sink(sink, error)) => {
                    tracing::debug!(resource = %self.token.resource, %sink, %error, "seals after the announcement");
                }
            }
            self.shared.pause(PAUSE).await;
        }
    }
}
