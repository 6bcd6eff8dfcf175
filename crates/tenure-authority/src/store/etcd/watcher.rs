//! Hearing of changes by others, over one stream.

use super::base64;
use super::client::pause;
use super::document::{holder_of, lease_raw};
use super::fault::Fault;
use super::keys::{Keyspace, rest};
use super::message::{Header, KeyValue, Range, end_of};
use super::shared::Shared;
use crate::store::Hint;
use serde::Deserialize;
use std::sync::Weak;
use std::time::Duration;
use tenure_core::{ResourceName, SessionId};

/// A stream that says nothing for so long is begun anew, at another member: the one that it came from may be stopped.
/// What happened in between is not missed, since the new one begins where the old one ended.
const SILENCE: Duration = Duration::from_secs(15);

/// Between two streams when the first one broke.
const PAUSE: Duration = Duration::from_millis(200);

/// Listens for as long as the store is open.
pub(super) async fn listen(shared: Weak<Shared>) {
    // The first stream begins later than the first wake was asked for.
    let mut next = None;
    while shared.strong_count() > 0 {
        match Box::pin(stream(&shared, next)).await {
            Ok(revision) => next = Some(revision + 1),
            Err(fault) => {
                tracing::debug!(?fault, "the stream of changes broke");
                next = None;
                pause(PAUSE).await;
            }
        }
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    result: Option<Told<'a>>,
}

#[derive(Deserialize)]
struct Told<'a> {
    header: Header,
    #[serde(default)]
    created: bool,
    #[serde(default)]
    canceled: bool,
    #[serde(default)]
    compact_revision: &'a str,
    #[serde(default, borrow)]
    events: Vec<Event<'a>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", default)]
    kind: &'a str,
    #[serde(borrow)]
    kv: KeyValue<'a>,
}

/// Tells of what happens, from a revision on, until nothing happens for a while. `None`: from now on, and changes may
/// have been missed. Returns the last revision.
///
/// While it waits it does not keep the store: whoever has dropped that has closed it.
async fn stream(store: &Weak<Shared>, from: Option<u64>) -> Result<u64, Fault> {
    let closed = || Fault::Lost("the store is closed".to_owned());
    let shared = store.upgrade().ok_or_else(closed)?;
    let space = shared.space().await.map_err(|error| Fault::Lost(error.to_string()))?;
    let (body, streams) = request(&shared, &space, from);
    let mut response = shared.client.stream("/v3/watch", body).await?;
    let (mut text, mut created, mut last) = (Vec::new(), 0, from.map_or(0, |from| from - 1));
    drop(shared);
    loop {
        let piece = match tokio::time::timeout(SILENCE, response.chunk()).await {
            Ok(piece) => piece.map_err(|error| Fault::of(&error))?,
            Err(_) if created == streams => return Ok(last),
            Err(_) => return Err(Fault::Lost("no watch was made".to_owned())),
        };
        let Some(piece) = piece else { return Err(Fault::Lost("it has ended".to_owned())) };
        let shared = store.upgrade().ok_or_else(closed)?;
        text.extend_from_slice(&piece);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let told = serde_json::from_slice::<Line<'_>>(&line).ok().and_then(|line| line.result);
            let told = told.ok_or_else(|| Fault::nonsense(&String::from_utf8_lossy(&line)))?;
            if told.canceled || !told.compact_revision.is_empty() {
                return Err(Fault::Lost("the changes since then are not kept any more".to_owned()));
            }
            let revision = told.header.revision().unwrap_or(last);
            if told.created {
                if revision < last {
                    return Err(Fault::Lost("the revision went back".to_owned()));
                }
                created += 1;
                if created == streams && from.is_none() {
                    last = revision;
                    shared.wakes.tell_all();
                }
            }
            last = last.max(revision);
            for event in &told.events {
                if tell(&shared, &space, event) {
                    // The store has moved to another part.
                    return Err(Fault::Lost("the store's own record has changed".to_owned()));
                }
            }
        }
    }
}

/// One request for each range of keys that is listened to.
fn request(shared: &Shared, space: &Keyspace, from: Option<u64>) -> (String, usize) {
    let ranges = [
        Range::one(&shared.charter_key()),
        Range::under(&space.leases(), 0),
        Range::under(&space.lives(), 0),
        Range::under(&space.alives(), 0),
    ];
    let mut body = String::new();
    for range in &ranges {
        body.push_str("{\"create_request\":{\"key\":\"");
        base64::write(&mut body, range.key.as_bytes());
        if range.end.is_some() {
            body.push_str("\",\"range_end\":\"");
            base64::write(&mut body, end_of(&range.key).as_bytes());
        }
        let from = from.unwrap_or(0);
        body.push_str(&format!("\",\"start_revision\":\"{from}\"}}}}"));
    }
    (body, ranges.len())
}

/// Whether it is the store's own record that has changed.
fn tell(shared: &Shared, space: &Keyspace, event: &Event<'_>) -> bool {
    let Some(entry) = event.kv.entry() else { return false };
    if let Some(resource) = rest(&entry.key, &space.leases()) {
        if let Ok(resource) = ResourceName::new(resource)
            && shared.wakes.is_watched(&resource)
        {
            // The stream tells all changes in their order, also this process's own.
            shared.wakes.tell(&resource, hint(event, &entry.value));
        }
        return false;
    }
    let ended = [space.lives(), space.alives()].into_iter().find_map(|prefix| rest(&entry.key, &prefix)?.parse().ok());
    match ended {
        Some(session) if event.kind == "DELETE" => tell_of_session(shared, space, session),
        Some(_) => {}
        None => return entry.key == shared.charter_key(),
    }
    false
}

/// What a change of a resource's record leaves behind.
fn hint(event: &Event<'_>, record: &str) -> Hint {
    match lease_raw(record) {
        _ if event.kind == "DELETE" => Hint::Free,
        Ok(lease) if lease.is_granted() => Hint::Taken,
        Ok(_) => Hint::Free,
        Err(_) => Hint::Unknown,
    }
}

/// A session has ended, or its holder is silent: whoever waits for what it holds looks again.
fn tell_of_session(shared: &Shared, space: &Keyspace, session: SessionId) {
    let prefix = space.leases();
    for key in shared.known.holding(&prefix, &session.to_string()) {
        let known = shared.known.get(&key).and_then(|sight| sight.entry);
        let stands_on_it = known.and_then(|entry| holder_of(&entry.value)) == Some(session);
        if let (true, Some(Ok(resource))) = (stands_on_it, rest(&key, &prefix).map(ResourceName::new)) {
            shared.wakes.tell(&resource, Hint::Unknown);
        }
    }
}
