//! The leases of etcd that stand beside sessions.

use super::client::{LONE_ATTEMPT as PATIENCE, all};
use super::fault::Fault;
use super::shared::Shared;
use super::writer::{Job, lease_of};
use crate::store::{StoreError, Version};
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::decide::{Change, Swap};
use tenure_core::record::SessionState;

/// The lease that a swap needs before it is made: for a session that is opened, and for a quarantine that begins.
/// `None`: none is needed, or there is none to be had, and everybody has to watch for themselves.
pub(super) async fn before(shared: &Shared, swap: &Swap, expected: Option<Version>) -> Result<Option<i64>, StoreError> {
    match &swap.change {
        Change::Session(session) if expected.is_none() && session.state == SessionState::Live => {
            Ok(if shared.trusts_keys() { grant(shared, session.ttl.get()).await } else { None })
        }
        Change::Authority(record) => match record.quarantine(shared.observed.now()?) {
            // It may be made so much later (see `Swap::made_before`).
            Some(left) => Ok(grant_quarantine(shared, left + record.max_ttl.get() / 20).await),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Keeps the leases of the sessions alive that are to be renewed, *before* the renewals are made: when a renewal is
/// granted, etcd has heard of its holder after the holder has sent it. A session whose lease is not there any more gets
/// another one; when nobody can tell, the record will name none, and says nothing about it.
pub(super) async fn keep(shared: &Arc<Shared>, jobs: &mut VecDeque<Job>) {
    if !shared.trusts_keys() {
        return;
    }
    let Ok(space) = shared.space().await else { return };
    let mut body = String::new();
    for job in jobs.iter_mut() {
        let Change::Session(session) = &job.swap.change else { continue };
        let key = space.session(session.id);
        let mut known = shared.known.get(&key).and_then(|sight| sight.entry);
        if known.as_ref().map(|entry| Version(entry.changed)) != job.expected {
            known = shared.look([key.clone()]).await.ok().and_then(|facts| facts.get(&key).cloned());
        }
        job.lease = known.and_then(|entry| lease_of(&entry.value));
        if let Some(lease) = job.lease {
            let _ = write!(body, "{{\"ID\":\"{lease}\"}}");
        }
    }
    let left = if body.is_empty() { Ok(HashMap::new()) } else { keep_alive(shared, &body).await };
    let left = left.map_err(|_| jobs.iter_mut().for_each(|job| job.lease = None));
    let Ok(left) = left else { return };
    let is_kept = |job: &Job| job.lease.is_some_and(|lease| left.get(&lease).is_some_and(|left| *left > 0));
    let mut lost: Vec<(&mut Job, Duration)> = Vec::new();
    for job in jobs.iter_mut().filter(|job| !is_kept(job)) {
        if let Change::Session(session) = &job.swap.change {
            let ttl = session.ttl.get();
            lost.push((job, ttl));
        }
    }
    for some in lost.chunks_mut(AT_ONCE) {
        let leases = all(some.iter().map(|(_, ttl)| grant(shared, *ttl))).await;
        for ((job, _), lease) in some.iter_mut().zip(leases) {
            job.lease = lease;
            job.is_new_lease = true;
        }
    }
}

/// So many leases are asked for at once, each over a connection of its own.
const AT_ONCE: usize = 16;

/// How many seconds each of the leases has now; 0 or nothing: it is not there.
async fn keep_alive(shared: &Shared, body: &str) -> Result<HashMap<i64, u64>, Fault> {
    #[derive(Deserialize)]
    struct Line {
        result: Kept,
    }
    #[derive(Deserialize)]
    struct Kept {
        #[serde(rename = "ID", default)]
        id: String,
        #[serde(rename = "TTL", default)]
        ttl: String,
    }
    let text = shared.client.tell("/v3/lease/keepalive", body).await?;
    let mut left = HashMap::new();
    for line in serde_json::Deserializer::from_str(&text).into_iter::<Line>() {
        let kept = line.map_err(|_| Fault::nonsense(&text))?.result;
        if let Ok(id) = kept.id.parse() {
            left.insert(id, kept.ttl.parse().unwrap_or(0));
        }
    }
    Ok(left)
}

/// The lease that stands for a quarantine. It begins before the quarantine does, which may be on its way for as long as a
/// member is waited for. Nobody keeps this lease alive, so what `revokes.rs` tells of does not end it early.
pub(super) async fn grant_quarantine(shared: &Shared, left: Duration) -> Option<i64> {
    if !shared.observed.is_real() {
        return None;
    }
    grant(shared, left + PATIENCE).await
}

/// A lease of at least this span.
pub(super) async fn grant(shared: &Shared, span: Duration) -> Option<i64> {
    #[derive(Deserialize)]
    struct Granted {
        #[serde(rename = "ID")]
        id: String,
    }
    // Never shorter than what it stands for; etcd counts whole seconds, and makes two of one.
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    match shared.client.tell("/v3/lease/grant", &format!("{{\"TTL\":\"{seconds}\"}}")).await {
        Ok(text) => serde_json::from_str::<Granted>(&text).ok()?.id.parse().ok(),
        Err(fault) => {
            tracing::debug!(?fault, "etcd gave no lease: everybody has to watch for themselves");
            None
        }
    }
}
