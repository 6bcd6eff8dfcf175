//! Whether a key that etcd has removed was removed in time.
//!
//! A leader whose disk hangs for longer than a lease lasts takes the lease for ended, since it hears of nothing. Older
//! servers pass its order to revoke it on to the next leader, which had been told all the while that the holder lives. The
//! key of a living holder vanishes then. Since 3.4.31 and 3.5.13 such an order is refused.

use super::client::Client;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Members {
    #[serde(default)]
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    #[serde(rename = "ID", default)]
    id: String,
}

#[derive(Deserialize)]
struct Status {
    header: Header,
    #[serde(default)]
    version: String,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    member_id: String,
}

/// Why the keys of sessions say nothing; `None`: every member is known to remove them in time.
pub(super) async fn doubt(client: &Client) -> Option<String> {
    let members = client.ask("/v3/cluster/member/list", "{}").await.ok();
    let Some(members) = members.and_then(|text| serde_json::from_str::<Members>(&text).ok()) else {
        return Some("nobody tells which members there are".to_owned());
    };
    let mut versions = BTreeMap::new();
    for answer in client.ask_each("/v3/maintenance/status", "{}").await {
        if let Some(status) = answer.ok().and_then(|text| serde_json::from_str::<Status>(&text).ok()) {
            versions.insert(status.header.member_id, status.version);
        }
    }
    doubt_of(members.members.iter().map(|member| versions.get(&member.id).map(String::as_str)))
}

/// As [`doubt`], from the version of each member.
fn doubt_of<'text>(mut members: impl Iterator<Item = Option<&'text str>>) -> Option<String> {
    members.find_map(|version| match version {
        Some(version) if is_in_time(version) => None,
        Some(version) => Some(format!("a member is etcd {version}")),
        None => Some("the version of a member is not known: name every member in the address".to_owned()),
    })
}

fn is_in_time(version: &str) -> bool {
    let mut parts = version.split('.').map(str::parse::<u64>);
    // A version before a release has more than digits, and counts as unknown.
    let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    match (major, minor) {
        (3, 4) => patch >= 31,
        (3, 5) => patch >= 13,
        (major, minor) => (major, minor) > (3, 5),
    }
}

#[cfg(test)]
mod tests;
