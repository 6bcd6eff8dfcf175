//! Whether a store puts on a condition, as all of this rests on it. It is tried, not asked.

use super::bucket::{Bucket, Put};
use super::nonce::Nonce;
use crate::SinkError;

const ADVICE: &str = "two writers could both believe that they were the first. Use a store that has conditional puts \
                      (If-Match and If-None-Match), or the file sink (file:FOLDER) for a local folder";

/// Puts a small object four times, and removes it.
///
/// # Errors
/// [`SinkError::Unfit`] when a put was made whose condition did not hold.
pub(super) async fn trial(bucket: &Bucket) -> Result<(), SinkError> {
    let key = bucket.trial(Nonce::draw(&bucket.place)?);
    let tried = stages(bucket, &key).await;
    let removed = bucket.remove(&key).await;
    tried.and(removed)
}

async fn stages(bucket: &Bucket, key: &object_store::path::Path) -> Result<(), SinkError> {
    let unfit = |why: &str| SinkError::Unfit { place: bucket.place.clone(), why: format!("{why}, so that {ADVICE}") };
    let body = |step: u8| format!("a trial of the store, step {step}").into_bytes();
    let first = match bucket.put_if(key, body(1), None).await {
        Put::Done(version) => version,
        // Nobody else knows the key.
        Put::Lost => return Err(unfit("the store says that an object is there which is not")),
        other => return Err(without_answer(bucket, other, &unfit)),
    };
    if first.e_tag.is_none() && first.version.is_none() {
        return Err(unfit("the store names no version of what it was given"));
    }
    match bucket.put_if(key, body(2), None).await {
        Put::Lost => {}
        Put::Done(_) => return Err(unfit("the store overwrites an object that was to be made only if there was none")),
        other => return Err(without_answer(bucket, other, &unfit)),
    }
    match bucket.put_if(key, body(3), Some(first.clone())).await {
        Put::Done(_) => {}
        Put::Lost => return Err(unfit("the store does not know the version again that it has named")),
        other => return Err(without_answer(bucket, other, &unfit)),
    }
    match bucket.put_if(key, body(4), Some(first)).await {
        Put::Lost => Ok(()),
        Put::Done(_) => Err(unfit("the store overwrites another version than the one it was to overwrite")),
        other => Err(without_answer(bucket, other, &unfit)),
    }
}

fn without_answer(bucket: &Bucket, put: Put, unfit: &impl Fn(&str) -> SinkError) -> SinkError {
    match put {
        Put::Refused(SinkError::Failed { why, .. })
            if why.contains("not yet implemented") || why.contains("not supported") =>
        {
            unfit(&format!("the store has no conditional put ({why})"))
        }
        Put::NotSent(error) | Put::Refused(error) => error,
        Put::Unsure(why) => SinkError::Unreachable { place: bucket.place.clone(), why },
        Put::Done(_) | Put::Lost => unfit("the store contradicts itself"),
    }
}
