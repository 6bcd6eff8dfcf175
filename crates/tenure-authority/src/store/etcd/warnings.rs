//! What in the server's state weakens the store.

use super::message::{Range, Txn};
use super::shared::Shared;
use crate::StoreError;
use serde::Deserialize;

/// Four fifths of the 2 GiB at which a server that was not told otherwise stops writing.
const LARGE: u64 = 1_700_000_000;

/// So many changes that are all still kept are a sign that nobody tidies up.
const MANY: u64 = 100_000;

#[derive(Deserialize)]
struct Members {
    #[serde(default)]
    members: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(rename = "dbSize", default)]
    size: String,
}

#[derive(Deserialize)]
struct Alarms {
    #[serde(default)]
    alarms: Vec<Alarm>,
}

#[derive(Deserialize)]
struct Alarm {
    #[serde(default)]
    alarm: String,
}

pub(super) async fn warnings(shared: &Shared) -> Result<Vec<String>, StoreError> {
    shared.space().await?;
    let mut found = Vec::new();
    let members: Members = ask(shared, "/v3/cluster/member/list", "{}").await?;
    if members.members.len() == 1 {
        found.push(
            "the cluster has one member: when it stops nothing is granted, and when its disk is lost so is all \
             that was ever granted; run three"
                .to_owned(),
        );
    }
    if let Some(doubt) = shared.doubt() {
        found.push(format!(
            "{doubt}: etcd before 3.4.31, and 3.5 before 3.5.13, may revoke the lease of a holder that lives. So nobody \
             looks at those leases, and whoever comes new waits for one ttl before it takes over from a dead holder; \
             upgrade every member"
        ));
    }
    let alarms: Alarms = ask(shared, "/v3/maintenance/alarm", r#"{"action":"GET"}"#).await?;
    for Alarm { alarm } in &alarms.alarms {
        found.push(format!(
            "a member has raised the alarm {alarm}, and nothing can be written: compact and defragment it, or raise \
             --quota-backend-bytes, then `etcdctl alarm disarm`"
        ));
    }
    let status: Status = ask(shared, "/v3/maintenance/status", "{}").await?;
    if status.size.parse().unwrap_or(0) > LARGE {
        found.push(format!(
            "the database has {} bytes, and a server stops writing at 2 GiB unless it was told otherwise: defragment \
             it (`etcdctl defrag`), or raise --quota-backend-bytes",
            status.size
        ));
    }
    let oldest = Range { revision: 1, ..Range::one(&shared.charter_key()) };
    // An error means that it is not kept any more, as it should be.
    if shared.identity.highest() > MANY && shared.read(&Txn::reading([oldest])).await.is_ok() {
        found.push(
            "etcd keeps every change since its beginning, each renewal among them, until it is full: start it with \
             --auto-compaction-retention=1h"
                .to_owned(),
        );
    }
    Ok(found)
}

async fn ask<T: for<'text> Deserialize<'text>>(shared: &Shared, path: &str, body: &str) -> Result<T, StoreError> {
    let text = shared.client.ask(path, body).await.map_err(|fault| shared.error(fault))?;
    serde_json::from_str(&text).map_err(|error| StoreError::Corrupt(format!("the answer to {path}: {error}")))
}
