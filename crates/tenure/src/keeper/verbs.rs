//! What a lease asks of its keeper.

use super::kept::Kept;
use super::sealing::{Limits, Trouble, drive, sealed_sinks};
use super::{Held, Keeper};
use crate::error::{FinishError, HeedError, Lost};
use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::decide::{Refusal, Request, SinkRefusal};
use tenure_core::holder::HeldLease;
use tenure_core::{Loss, Outcome, SinkId, Token, Verdict};
use tenure_sink::Sink;
use tokio::sync::oneshot;

impl Keeper {
    /// The checkpoint's third line. Whatever is not a clear yes is the loss of the lease.
    pub(crate) async fn check(held: &Arc<Held>) {
        let asked = on_keeper(held, |held| async move {
            let (shared, session) = (held.shared(), held.session());
            let request = Request::Check { token: held.token().clone(), session: session.id };
            let Ok(now) = shared.now_in_order() else { return held.lose(Loss::ClockJumped) };
            let left = session.gate.deadline().map_or(Duration::ZERO, |deadline| deadline.since(&now));
            match shared.ask(&request, session.timing.attempt().min(left)).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => held.lose(Loss::CheckRefused),
                Err(error) => {
                    tracing::warn!(%error, resource = %held.token().resource, "checkpoint unanswered");
                    held.lose(Loss::CheckUnanswered);
                }
            }
        });
        if asked.await.is_none() {
            held.lose(Loss::CheckUnanswered);
        }
    }

    pub(crate) async fn release(held: &Arc<Held>) -> Result<(), FinishError> {
        held.standing()?;
        if !held.latch(Loss::Ended) {
            held.standing()?;
        }
        warn_of_unsealed(held, "released");
        let released = on_keeper(held, |held| async move { given_up(&held, None).await });
        match released.await {
            Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(refusal))) => Err(refused(held, refusal)),
            Some(Err(error)) => Err(FinishError::Unknown { resource: held.token().resource.clone(), error }),
            None => Err(FinishError::Closed),
        }
    }

    pub(crate) async fn complete(held: &Arc<Held>, outcome: Outcome) -> Result<(), FinishError> {
        held.standing()?;
        let completed = on_keeper(held, |held| async move {
            let (shared, session, token) = (held.shared(), held.session(), held.token().clone());
            let request = Request::Complete { token: token.clone(), session: session.id, outcome };
            let until = session.gate.deadline().unwrap_or(tenure_core::Instant::from_nanos(0));
            session.began(token.grant);
            let answer = shared.insist(&request, session.timing.attempt(), until).await;
            match &answer {
                Ok(Ok(_)) => {
                    let (owner, label) = (&shared.owner, held.rare().and_then(|rare| rare.label.as_deref()));
                    tracing::info!(%owner, resource = %token.resource, epoch = token.epoch.get(), label, "resource completed");
                    warn_of_unsealed(&held, "completed");
                    // One that was lost meanwhile is settled, once, by what it owes.
                    if held.latch(Loss::Ended) {
                        session.settled(token.grant, Some(token.epoch), None);
                        session.leave();
                        shared.slots.free(&token.resource);
                    }
                }
                Ok(Err(_)) => {
                    session.settled(token.grant, None, None);
                    held.lose(Loss::CheckRefused);
                }
                Err(_) => {
                    session.settled(token.grant, None, None);
                    held.lose(Loss::CheckUnanswered);
                }
            }
            answer
        });
        match completed.await {
            Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(refusal))) => Err(refused(held, refusal)),
            Some(Err(error)) => Err(FinishError::Unknown { resource: held.token().resource.clone(), error }),
            None => Err(FinishError::Closed),
        }
    }

    /// Follows a verdict other than a written one.
    pub(crate) async fn heed(held: &Arc<Held>, sink: SinkId, verdict: Verdict) -> Result<(), HeedError> {
        held.standing()?;
        let Some(adapter) = adapter(held, &sink) else { return Err(HeedError::NotMine { sink }) };
        let heeded = on_keeper(held, |held| async move {
            match verdict {
                Verdict::Unsealed => seal_again(&held, &sink).await,
                // The receiver has read the authority's own records: there is nothing to look closer at.
                Verdict::Over(_) => Err(lost(&held, Loss::CheckRefused)),
                _ => look_closer(&held, &*adapter, sink).await,
            }
        });
        heeded.await.unwrap_or(Err(HeedError::Closed))
    }

    /// Gives the lease up and waits until the authority knows, or the session ends.
    pub(crate) async fn give_up(held: &Arc<Held>, loss: Loss) {
        if held.latch(loss) {
            on_keeper(held, |held| async move { drop(given_up(&held, None).await) }).await;
        }
    }

    /// The same, without waiting.
    pub(super) fn give_up_later(held: &Held) {
        let debt = Debt::of(held);
        held.shared().spawn(async move { drop(debt.pay(None).await) });
    }

    /// Loses the lease when no checkpoint comes within its promise.
    pub(super) fn watch_progress(held: &Arc<Held>) {
        let (shared, held) = (Arc::clone(held.shared()), Arc::downgrade(held));
        shared.clone().spawn(async move {
            loop {
                let left = {
                    let Some(held) = held.upgrade().filter(|held| held.loss().is_none()) else { return };
                    let Some(progress) = held.rare().and_then(|rare| rare.progress.as_ref()) else { return };
                    let Ok(now) = shared.now() else { return };
                    let since = Duration::from_nanos(now.as_nanos().saturating_sub(progress.latest()));
                    if since >= progress.within {
                        return held.lose(Loss::Stalled);
                    }
                    progress.within.saturating_sub(since)
                };
                shared.pause(left).await;
            }
        });
    }
}

/// Runs a task for a lease on the keeper; `None` when the keeper has ended.
async fn on_keeper<T, Task>(held: &Arc<Held>, task: impl FnOnce(Arc<Held>) -> Task) -> Option<T>
where
    T: Send + 'static,
    Task: Future<Output = T> + Send + 'static,
{
    let (tell, told) = oneshot::channel();
    let task = task(Arc::clone(held));
    held.shared().spawn(async move { drop(tell.send(task.await)) });
    told.await.ok()
}

/// A receiver that the takeover was announced without, and that was never sealed, goes on to accept a former grant.
fn warn_of_unsealed(held: &Held, ended: &'static str) {
    for sink in held.excused() {
        let token = held.token();
        tracing::warn!(resource = %token.resource, epoch = token.epoch.get(), %sink, ended,
            "a receiver was never sealed by this lease: a former holder may be accepted there until the next one seals it");
    }
}

fn refused(held: &Held, refusal: Refusal) -> FinishError {
    FinishError::Refused { resource: held.token().resource.clone(), refusal }
}

fn adapter(held: &Held, sink: &SinkId) -> Option<Arc<dyn Sink>> {
    held.rare().and_then(|rare| rare.sinks.iter().find(|adapter| adapter.id() == sink)).cloned()
}

pub(super) async fn given_up(held: &Arc<Held>, shown: Option<SinkRefusal>) -> super::ask::Answered {
    Debt::of(held).pay(shown).await
}

/// What a lost lease owes to the authority. Whoever loses one grant on a living session must say so, or the grant stands
/// for as long as the session is renewed.
struct Debt {
    session: Arc<Kept>,
    token: Token,
}

impl Debt {
    fn of(held: &Held) -> Self {
        Self { session: Arc::clone(held.session()), token: held.token().clone() }
    }

    async fn pay(self, shown: Option<SinkRefusal>) -> super::ask::Answered {
        let (shared, session, token) = (self.session.shared(), &self.session, &self.token);
        session.began(token.grant);
        let request = match shown {
            Some(shown) => Request::Refused { token: token.clone(), shown },
            None => Request::Release { token: token.clone() },
        };
        // A session that is lost is not renewed: the grant ends with it, so one try is courtesy enough.
        let until = session.gate.deadline().unwrap_or(tenure_core::Instant::from_nanos(0));
        let answer = shared.insist(&request, session.timing.attempt(), until).await;
        // Not ours any more, whatever the answer: a grant that stands still is then strange at the next renewal, and
        // released again.
        session.settled(token.grant, Some(token.epoch), None);
        session.leave();
        shared.slots.free(&token.resource);
        answer
    }
}

/// The receiver does not know the token, or is of another generation: described, confirmed by the authority, sealed.
async fn seal_again(held: &Arc<Held>, sink: &SinkId) -> Result<(), HeedError> {
    let Some(rare) = held.rare() else { return Err(HeedError::NotMine { sink: sink.clone() }) };
    let ids = sealed_sinks(&rare.sinks);
    let mut lease = HeldLease::held(held.token().clone(), &ids, &BTreeSet::from([sink.clone()]), ids.clone());
    let until = held.session().gate.deadline().unwrap_or(tenure_core::Instant::from_nanos(0));
    let marked = |sink: &SinkId| held.not_excused_any_more(sink);
    let limits = Limits { until: Some(until), news: rare.news.as_ref(), marked: Some(&marked), ..Limits::default() };
    match drive(held.shared(), held.session(), &rare.sinks, &mut lease, &limits).await {
        Ok(()) => Ok(held.standing()?),
        Err(Trouble::Sink(sink, error)) => Err(HeedError::Sink { sink, error }),
        Err(Trouble::Authority(error)) => Err(error.into()),
        Err(Trouble::Lost | Trouble::Refused(_)) => {
            let loss = held.lost_while_sealing(&lease).await;
            Err(lost(held, loss))
        }
    }
}

/// A conflict may be one of content, which is no loss, or one of grants. The receiver's row tells.
async fn look_closer(held: &Arc<Held>, sink: &dyn Sink, id: SinkId) -> Result<(), HeedError> {
    let token = held.token();
    match sink.describe(&token.resource).await {
        Ok(found) => match found.row {
            Some(row) if (row.epoch, row.grant) == (token.epoch, token.grant) => Ok(held.standing()?),
            Some(row) if row.epoch >= token.epoch => {
                let conflict = row.epoch == token.epoch;
                let shown = SinkRefusal { epoch: row.epoch, grant: Some(row.grant) };
                if held.latch(if conflict { Loss::Conflict } else { Loss::Stale }) {
                    drop(given_up(held, Some(shown)).await);
                }
                Err(held.standing().err().map_or_else(|| lost(held, Loss::Stale), HeedError::Lost))
            }
            _ => Err(lost(held, Loss::Stale)),
        },
        // The verdict stands even if its reason cannot be read: it fails closed.
        Err(error) if error.is_transient() => Err(lost(held, Loss::Stale)),
        Err(error) => Err(HeedError::Sink { sink: id, error }),
    }
}

fn lost(held: &Arc<Held>, loss: Loss) -> HeedError {
    held.lose(loss);
    HeedError::Lost(Lost { token: held.token().clone(), loss: held.loss().unwrap_or(loss) })
}
