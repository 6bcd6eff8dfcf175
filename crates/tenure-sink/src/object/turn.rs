//! What every change of a manifest goes through: look, judge, put if nobody came before, and look again.

use super::Place;
use super::manifest::Manifest;
use super::nonce::Nonce;
use super::patience::{Patience, now, pause};
use super::records;
use super::swap::{Held, Landing, load, swap};
use crate::{Answer, SinkError};
use tenure_core::ResourceName;

/// What is to be done with a manifest.
pub(super) trait Verb: Send + Sync {
    /// What the caller is told.
    type Said: Send;

    /// Judges what stands. It is asked again whenever something else stands than before.
    fn decide<'a>(
        &'a self,
        place: &'a Place,
        held: Option<&'a Held>,
    ) -> Answer<'a, Result<Step<Self::Said>, SinkError>>;

    /// Whether asking again tells what became of it, so that it need not be known whether an earlier put stands.
    fn is_told_apart(&self) -> bool;
}

/// What a judgement comes to.
pub(super) enum Step<T> {
    /// Nothing is to be changed.
    Say(T),
    /// This must stand before it is said.
    Swap(Box<Manifest>, T),
    /// There is no manifest, and there must be one to judge by: what is read of the sink's own record has to be read
    /// after it is there, or a reopening in between would be overlooked.
    Make,
}

/// What came of a turn.
pub(super) enum Turned<T> {
    Said(T),
    /// What was to be changed is changed, or not, or will be.
    Unknown(String),
}

/// From what a turn starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// From what this process has seen last. A put checks it.
    Memory,
    Fresh,
}

/// Takes a turn at the resource's desk.
///
/// # Errors
/// [`SinkError`]: nothing was changed, and nothing will be.
pub(super) async fn turn<V: Verb>(
    place: &Place,
    resource: &ResourceName,
    start: Start,
    verb: &V,
) -> Result<Turned<V::Said>, SinkError> {
    let mut beyond = None;
    match (taken(place, resource, start, verb, &mut beyond).await, beyond) {
        // What cannot be told apart any more is not undone by what went wrong since.
        (Err(_), Some(why)) => Ok(Turned::Unknown(why)),
        (turned, _) => turned,
    }
}

/// `beyond` says why it is not known whether an earlier put stands.
async fn taken<V: Verb>(
    place: &Place,
    resource: &ResourceName,
    start: Start,
    verb: &V,
    beyond: &mut Option<String>,
) -> Result<Turned<V::Said>, SinkError> {
    let bucket = &place.bucket;
    let desk = place.desks.of(resource);
    let mut patience = Patience::new(bucket.wait);
    let busy = |waited| SinkError::Busy { place: bucket.called(&bucket.manifest(resource)), waited };
    let Some(mut memory) = desk.sit(bucket.wait).await else { return Err(busy(patience.spent())) };
    // What is remembered may be old. Where a refusal is not certain, it would then not be known whether this put or another
    // one came first.
    let start = if bucket.repeats && !verb.is_told_apart() { Start::Fresh } else { start };
    // Taken, so that nothing is remembered of a turn that ends half-way.
    let mut held = memory.held.take().filter(|_| start == Start::Memory);
    let (mut is_fresh, mut is_first) = (held.is_none(), true);
    if held.is_none() {
        held = load(bucket, resource, place.rule).await?;
    }
    loop {
        match verb.decide(place, held.as_ref()).await? {
            Step::Say(said) if is_fresh => {
                memory.held = held;
                return Ok(Turned::Said(said));
            }
            Step::Say(_) => {
                held = load(bucket, resource, place.rule).await?;
                is_fresh = true;
                continue;
            }
            Step::Make => {
                let blank = Manifest::blank(resource, place.rule, Nonce::draw(&bucket.place)?);
                held = match swap(bucket, None, blank).await? {
                    Landing::Landed(made) => Some(made),
                    Landing::Moved(found) => found,
                    Landing::Beyond(_) => load(bucket, resource, place.rule).await?,
                    Landing::Unknown(why) => {
                        return Err(SinkError::Unreachable { place: bucket.place.clone(), why });
                    }
                };
            }
            Step::Swap(mut next, said) => {
                records::spill(bucket, &mut next).await?;
                let began = now();
                match swap(bucket, held.as_ref(), *next).await? {
                    Landing::Landed(stands) => {
                        memory.held = Some(stands);
                        if let Some(breath) = memory.breath(began, now()) {
                            pause(breath).await;
                        }
                        return Ok(Turned::Said(said));
                    }
                    Landing::Moved(found) => held = found,
                    Landing::Beyond(why) if verb.is_told_apart() => {
                        *beyond = Some(why);
                        held = load(bucket, resource, place.rule).await?;
                    }
                    Landing::Beyond(why) | Landing::Unknown(why) => return Ok(Turned::Unknown(why)),
                }
            }
        }
        is_fresh = true;
        if patience.is_over() {
            return Err(busy(patience.spent()));
        }
        // Between a look and its put there is no nap, or whoever puts one after the other would always come in between.
        if !std::mem::take(&mut is_first) {
            patience.nap(Nonce::draw(&bucket.place)?).await;
            held = load(bucket, resource, place.rule).await?;
        }
    }
}
