//! The seals of a grant: every receiver described, bound, sealed and marked, and the takeover announced.

use super::Shared;
use super::kept::Kept;
use super::lookout::LOOK_AGAIN;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::AuthorityError;
use tenure_core::decide::{Refusal, Request};
use tenure_core::fence::{Rule, Sealing};
use tenure_core::holder::{HeldLease, LeasePhase, LeaseStep};
use tenure_core::{Generation, HolderClock, Instant, Loss, ResourceName, SinkId};
use tenure_sink::{Description, Sink, SinkError};
use tokio::task::JoinSet;

/// Why the seals of a grant did not come to their end.
pub(super) enum Trouble {
    /// The lease is lost; its phase says why.
    Lost,
    Refused(Refusal),
    Sink(SinkId, SinkError),
    Authority(AuthorityError),
}

/// Does what the lease asks for until it asks for nothing more: every receiver described, bound, sealed and marked, and
/// the takeover announced.
pub(super) async fn drive(
    shared: &Arc<Shared>,
    kept: &Arc<Kept>,
    sinks: &[Arc<dyn Sink>],
    lease: &mut HeldLease,
    until: Instant<HolderClock>,
) -> Result<(), Trouble> {
    loop {
        if matches!(lease.phase(), LeasePhase::Lost(_)) {
            return Err(Trouble::Lost);
        }
        if let Some(sink) = lease.without_adapter() {
            return Err(Trouble::Refused(Refusal::NoAdapter { sink: sink.clone() }));
        }
        let steps = lease.next_steps();
        if steps.is_empty() {
            return Ok(());
        }
        if !shared.now().is_ok_and(|now| kept.gate.is_open(now)) {
            lease.lose(kept.loss());
            return Err(Trouble::Lost);
        }
        let (mut under_way, attempt) = (JoinSet::new(), kept.timing.attempt());
        for step in steps {
            match step {
                LeaseStep::Describe(id) => {
                    let (sink, resource) = (find(sinks, &id)?, resource_of(lease)?);
                    let shared = Arc::clone(shared);
                    under_way.spawn(async move {
                        let described = patiently(&shared, &*sink, attempt, until, || sink.describe(&resource)).await;
                        (id, Done::Described(described))
                    });
                }
                LeaseStep::Seal { sink: id, generation, enrolled } => {
                    let (sink, all) = (find(sinks, &id)?, sinks.to_vec());
                    let Some(token) = lease.token().cloned() else { return Err(Trouble::Lost) };
                    let shared = Arc::clone(shared);
                    under_way.spawn(async move {
                        let seal = || shared.seal(&*sink, &token, &generation, &enrolled, &all);
                        let sealed = patiently(&shared, &*sink, attempt, until, seal).await;
                        (id, Done::Sealed(generation, sealed))
                    });
                }
                step => tell_authority(shared, kept, lease, step, until).await?,
            }
        }
        while let Some(done) = under_way.join_next().await {
            // A task that panicked did nothing that the next round would not find out.
            let Ok((id, done)) = done else { continue };
            match done {
                Done::Described(Ok(found)) => {
                    let enrolled = found.row.map(|row| row.enrolled).unwrap_or_default();
                    lease.handle_described(&id, found.generation, enrolled);
                }
                Done::Sealed(generation, Ok(sealing)) => {
                    lease.handle_seal(&id, &generation, sealing.into());
                }
                Done::Described(Err(error)) | Done::Sealed(_, Err(error)) => return Err(Trouble::Sink(id, error)),
            }
        }
    }
}

enum Done {
    Described(Result<Description, SinkError>),
    Sealed(Generation, Result<Sealing, SinkError>),
}

async fn tell_authority(
    shared: &Arc<Shared>,
    kept: &Arc<Kept>,
    lease: &mut HeldLease,
    step: LeaseStep,
    until: Instant<HolderClock>,
) -> Result<(), Trouble> {
    let Some(token) = lease.token().cloned() else { return Err(Trouble::Lost) };
    let session = kept.id;
    let request = match &step {
        LeaseStep::Enrol(sinks) => Request::Enrol { token, sinks: sinks.clone() },
        LeaseStep::Bind(generations) => Request::Bind { token, session, generations: generations.clone() },
        LeaseStep::Mark(generations) => Request::Sealed { token, generations: generations.clone() },
        LeaseStep::Announce => Request::Announce { token, session, excused: BTreeSet::new() },
        // The rest begins or ends a lease, and is not asked for in between.
        _ => return Ok(()),
    };
    match shared.insist(&request, kept.timing.attempt(), until).await {
        Ok(Ok(_)) => {
            match &step {
                LeaseStep::Enrol(sinks) => lease.handle_enrolled(sinks),
                LeaseStep::Bind(generations) => lease.handle_bound(generations),
                LeaseStep::Mark(generations) => lease.handle_marked(generations),
                _ => lease.handle_announced(),
            }
            Ok(())
        }
        Ok(Err(Refusal::NotCurrent { .. } | Refusal::Completed { .. } | Refusal::SessionEnded { .. })) => {
            lease.lose(Loss::SealRefused);
            Err(Trouble::Lost)
        }
        Ok(Err(refusal)) => Err(Trouble::Refused(refusal)),
        Err(error) => Err(Trouble::Authority(error)),
    }
}

/// Asks a receiver again while it is only busy, until `until`. One that does not answer is waited for as long, and for
/// `attempt` at least: it must not keep a grant that nobody can use.
async fn patiently<'a, T>(
    shared: &Shared,
    sink: &'a dyn Sink,
    attempt: Duration,
    until: Instant<HolderClock>,
    ask: impl Fn() -> tenure_sink::Answer<'a, Result<T, SinkError>>,
) -> Result<T, SinkError> {
    let left = || shared.now().map_or(Duration::ZERO, |now| until.since(&now));
    loop {
        let patience = left().max(attempt);
        let answer = tokio::select! {
            biased;
            answer = ask() => answer,
            () = shared.pause(patience) => {
                let (place, why) = (sink.id().to_string(), format!("no answer came within {patience:?}"));
                Err(SinkError::Failed { place, doing: "sealing", why })
            }
        };
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let left = left();
        if !error.is_transient() || left.is_zero() {
            return Err(error);
        }
        shared.pause(left.min(LOOK_AGAIN / 4)).await;
    }
}

/// The receivers that are enrolled and sealed.
pub(super) fn sealed_sinks(sinks: &[Arc<dyn Sink>]) -> BTreeSet<SinkId> {
    let sealed = sinks.iter().filter(|sink| sink.rule() != Rule::HighWater);
    sealed.map(|sink| sink.id().clone()).collect()
}

/// All receivers that a grant is signed for: those of the wish, which may be written to, and those that are enrolled.
pub(super) fn names_of(sinks: &[Arc<dyn Sink>], enrolled: &BTreeSet<SinkId>) -> BTreeSet<SinkId> {
    sinks.iter().map(|sink| sink.id()).chain(enrolled).cloned().collect()
}

fn find(sinks: &[Arc<dyn Sink>], id: &SinkId) -> Result<Arc<dyn Sink>, Trouble> {
    let found = sinks.iter().find(|sink| sink.id() == id);
    found.cloned().ok_or_else(|| Trouble::Refused(Refusal::NoAdapter { sink: id.clone() }))
}

fn resource_of(lease: &HeldLease) -> Result<ResourceName, Trouble> {
    lease.token().map(|token| token.resource.clone()).ok_or(Trouble::Lost)
}
