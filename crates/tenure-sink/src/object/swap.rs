//! One change of one manifest, and how it is found out whether it stands.

use super::bucket::{Bucket, Put};
use super::manifest::{Manifest, READ_MAX};
use super::patience::Patience;
use crate::SinkError;
use object_store::UpdateVersion;
use std::sync::Arc;
use tenure_core::ResourceName;
use tenure_core::fence::Rule;

/// A manifest, and the version under which it stands.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) manifest: Arc<Manifest>,
    pub(super) version: UpdateVersion,
}

/// What became of a change.
#[derive(Debug)]
pub(super) enum Landing {
    /// It stands. This is the newest that is known.
    Landed(Held),
    /// It does not, and never will: another change came before it.
    Moved(Option<Held>),
    /// So many others followed that the manifest does not tell any more.
    Beyond(String),
    /// It stands, or not, or will.
    Unknown(String),
}

pub(super) async fn load(bucket: &Bucket, resource: &ResourceName, rule: Rule) -> Result<Option<Held>, SinkError> {
    let key = bucket.manifest(resource);
    let Some(read) = bucket.get(&key).await? else { return Ok(None) };
    let manifest = Manifest::parse(&bucket.called(&key), resource, rule, &read.body)?;
    Ok(Some(Held { manifest: Arc::new(manifest), version: read.version }))
}

/// Puts `next` in the place of `base`, or where there is nothing.
///
/// A put that was not answered is looked for by its nonce, and a refused one as well: whoever repeats a put that has
/// succeeded is told that the condition does not hold. Where that may have been the store itself, a refusal is no answer.
/// While the base still stands, a put that was sent may still arrive; the same one is sent again then, and one of the two wins.
///
/// # Errors
/// [`SinkError`]: it does not stand, and never will.
pub(super) async fn swap(bucket: &Bucket, base: Option<&Held>, next: Manifest) -> Result<Landing, SinkError> {
    let key = bucket.manifest(&next.resource);
    let body = next.to_bytes(&bucket.called(&key))?;
    // Nobody would read it again. Names and outcomes have bounds of their own; what is left are enrolled sinks.
    if body.len() as u64 > READ_MAX {
        let why = format!("the manifest would have {} bytes, and {READ_MAX} are the most", body.len());
        return Err(SinkError::Full { place: bucket.called(&key), why });
    }
    let (nonce, resource, rule) = (next.nonce, next.resource.clone(), next.rule);
    let mut patience = Patience::new(bucket.wait);
    let mut unsure: Option<String> = None;
    loop {
        match bucket.put_if(&key, body.clone(), base.map(|held| held.version.clone())).await {
            Put::Done(version) => return Ok(Landing::Landed(Held { manifest: Arc::new(next), version })),
            // Perhaps by what the store did itself, a moment before.
            Put::Lost if bucket.repeats => {
                unsure = unsure.or_else(|| Some("it was refused, perhaps after it was done".to_owned()))
            }
            Put::Lost => {}
            Put::Unsure(why) => unsure = Some(why),
            Put::NotSent(error) | Put::Refused(error) if unsure.is_none() => return Err(error),
            Put::NotSent(_) | Put::Refused(_) => {}
        }
        match load(bucket, &resource, rule).await {
            Ok(Some(found)) if found.manifest.carries(nonce) => return Ok(Landing::Landed(found)),
            Ok(found) if !is_base(base, found.as_ref()) => {
                return Ok(match unsure {
                    Some(why) if !follows(base, found.as_ref()) => Landing::Beyond(why),
                    _ => Landing::Moved(found),
                });
            }
            // It still is as it was: what was sent may be on its way.
            Ok(_) => {}
            Err(error) => {
                if unsure.is_none() {
                    return Err(error);
                }
            }
        }
        if patience.is_over() {
            let waited = patience.spent();
            return match unsure {
                Some(why) => Ok(Landing::Unknown(why)),
                None => Err(SinkError::Busy { place: bucket.called(&key), waited }),
            };
        }
        patience.nap(super::nonce::Nonce::draw(&bucket.place)?).await;
    }
}

fn is_base(base: Option<&Held>, found: Option<&Held>) -> bool {
    match (base, found) {
        (Some(base), Some(found)) => base.manifest.nonce == found.manifest.nonce,
        (None, None) => true,
        _ => false,
    }
}

/// Whether what was found names all that came behind the base.
fn follows(base: Option<&Held>, found: Option<&Held>) -> bool {
    match (base, found) {
        (Some(base), Some(found)) => found.manifest.carries(base.manifest.nonce),
        (None, Some(found)) => found.manifest.is_whole_story(),
        // Somebody removed it: then it is not there, and what comes late meets its absence.
        (_, None) => true,
    }
}
