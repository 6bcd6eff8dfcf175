//! What the store promises, and what in its server weakens that.

use super::finding::{Finding, Verdict};
use crate::span::Span;
use std::time::Duration;
use tenure::authority::{Authority, Capabilities, Durability, Read, Scope, Store, TimeSource, WallTime};
use tenure::blocking::wait_for;
use tenure::core::decide::Keys;

/// How far the server's clock may be from this machine's. No lease depends on it; whoever compares two logs does.
const APART_MAX: Duration = Duration::from_secs(1);

pub(super) fn look(url: &str, authority: &Authority) -> Vec<Finding> {
    let store = &**authority.store();
    let can = store.capabilities();
    let mut findings = vec![identity(store)];
    if can.scope == Scope::Network {
        findings.push(schema(url));
        findings.push(clock(store, can.clock));
        findings.extend(settings(store));
    }
    let weakened = findings.iter().any(|finding| finding.name == "settings" && finding.verdict != Verdict::Ok);
    findings.push(durability(can.durability, weakened));
    findings.push(waking(can));
    findings
}

fn identity(store: &dyn Store) -> Finding {
    match wait_for(store.read(&Keys::default())) {
        Ok(read) => Finding::ok("identity", read.view.authority.identity.to_string()),
        Err(error) => unread("identity", &error.to_string()),
    }
}

fn unread(name: &'static str, why: &str) -> Finding {
    Finding::unseen(name, format!("it could not be looked at: {why}"), "mend that, and look again")
}

fn schema(url: &str) -> Finding {
    match crate::migrate::standing(url) {
        Ok(standing) if standing.is_present() => Finding::ok("schema", standing.to_string()),
        Ok(standing) => Finding::warn("schema", standing.to_string(), "bring it up to date: tenure migrate"),
        Err(problem) => unread("schema", &problem.to_string()),
    }
}

/// Reads both clocks, this machine's before and after the server's.
fn clock(store: &dyn Store, source: TimeSource) -> Finding {
    if source == TimeSource::Observed {
        return Finding::ok(
            "server's clock",
            "none is asked: each process watches for how long a session is not renewed, so that a takeover may come one \
             ttl after the first look",
        );
    }
    let before = WallTime::now();
    match wait_for(store.read(&Keys::default())) {
        Ok(read) => apart(before, &read, WallTime::now()),
        Err(error) => unread("server's clock", &error.to_string()),
    }
}

fn apart(before: WallTime, read: &Read, after: WallTime) -> Finding {
    let there = read.now.as_nanos() / 1_000_000;
    let (ahead, behind) = (there.saturating_sub(after.as_millis()), before.as_millis().saturating_sub(there));
    let (by, side) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
    let by = Duration::from_millis(by);
    if by > APART_MAX {
        return Finding::warn(
            "server's clock",
            format!("it is {} {side} this machine's", Span(by)),
            "let both follow the same time: leases depend on the server's alone, but whoever compares two logs is misled",
        );
    }
    let says = if by.is_zero() {
        "it agrees with this machine's".to_owned()
    } else {
        format!("{} {side} this machine's", Span(by))
    };
    Finding::ok("server's clock", says)
}

fn settings(store: &dyn Store) -> Vec<Finding> {
    match wait_for(store.warnings()) {
        Ok(none) if none.is_empty() => {
            vec![Finding::ok("settings", "no setting of the server weakens what the store promises")]
        }
        Ok(warnings) => warnings.iter().map(|warning| setting(warning)).collect(),
        Err(error) => vec![unread("settings", &error.to_string())],
    }
}

/// A warning ends with what to do.
fn setting(warning: &str) -> Finding {
    let (says, advice) = warning.rsplit_once("; ").unwrap_or((warning, "change it, or live with what it may cost"));
    Finding::warn("settings", says, advice)
}

fn durability(durability: Durability, weakened: bool) -> Finding {
    match durability {
        Durability::Durable if weakened => Finding::ok(
            "durability",
            "what was granted stays, also after a crash, but for what the settings above cost",
        ),
        Durability::Durable => Finding::ok("durability", "what was granted stays, also after a crash"),
        Durability::MayLose => Finding::ok(
            "durability",
            "a failover may undo what was granted last; the store notices, and grants nothing until the old leases are over",
        ),
        Durability::Process => Finding::warn(
            "durability",
            "everything is gone with the process",
            "use it for tests only: receivers refuse the epochs of an authority that forgets",
        ),
    }
}

fn waking(can: Capabilities) -> Finding {
    Finding::ok(
        "waiting",
        if can.wakes {
            "whoever waits for a resource is woken when it becomes free"
        } else {
            "whoever waits for a resource looks again after a while: nobody wakes it when another process gives it up"
        },
    )
}

#[cfg(test)]
mod tests;
