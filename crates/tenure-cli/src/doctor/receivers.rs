//! The receivers: can they be reached, and do they agree with the authority.

use super::finding::Finding;
use crate::problem::Problem;
use crate::receivers::Reached;
use std::collections::BTreeMap;
use std::sync::Arc;
use tenure::authority::{Authority, Page};
use tenure::blocking::wait_for;
use tenure::core::record::{LeaseRecord, Phase};
use tenure::core::{ResourceName, SinkId};
use tenure::sink::Sink;

pub(super) fn look(reached: &Reached, authority: Option<&Authority>) -> Result<Vec<Finding>, Problem> {
    let mut findings: Vec<Finding> = reached
        .failed()
        .map(|(url, error)| Finding::fail("receiver", format!("{url}: {error}"), "correct the address, or mend it"))
        .collect();
    let enrolled = authority.map(enrolled).transpose()?.unwrap_or_default();
    for sink in reached.opened().filter(|sink| !enrolled.contains_key(sink.id())) {
        let says = format!("{} can be reached; no resource has enrolled it ({})", sink.id(), sink.rule().name());
        findings.push(Finding::ok("receiver", says));
        findings.extend(weaknesses(sink));
    }
    for (id, leases) in &enrolled {
        let sink = reached.find(id);
        findings.extend(sink.iter().flat_map(weaknesses));
        findings.push(match sink {
            Ok(sink) => agreement(&sink, leases),
            Err(why) => Finding::warn(
                "receiver",
                format!("{id} of {} resource(s) was not reached: {why}", leases.len()),
                "a takeover waits for each receiver: mend it, or take it out with tenure sinks RESOURCE remove",
            ),
        });
    }
    Ok(findings)
}

/// What the receiver's kind and its settings do to its promises.
fn weaknesses(sink: &Arc<dyn Sink>) -> Vec<Finding> {
    let id = sink.id();
    let kind = sink.may_lose().map(|how| Finding::ok("receiver", format!("{id} may lose: {how}")));
    let settings = match wait_for(sink.warnings()) {
        Ok(found) => found.iter().map(|warning| setting(id, warning)).collect(),
        // Whether it can be reached is told beside this.
        Err(_) => Vec::new(),
    };
    kind.into_iter().chain(settings).collect()
}

/// A warning ends with what to do.
fn setting(id: &SinkId, warning: &str) -> Finding {
    let (says, advice) = warning.rsplit_once("; ").unwrap_or((warning, "change it before the receiver is relied on"));
    Finding::warn("receiver", format!("{id}: {says}"), advice)
}

/// The receivers of all resources, each with the resources that have enrolled it.
fn enrolled(authority: &Authority) -> Result<BTreeMap<SinkId, Vec<LeaseRecord>>, Problem> {
    let mut enrolled: BTreeMap<SinkId, Vec<LeaseRecord>> = BTreeMap::new();
    let mut page: Page<ResourceName> = Page { after: None, limit: 1_000 };
    loop {
        let listed = wait_for(authority.store().leases(page.clone()))?;
        let Some(last) = listed.last() else { return Ok(enrolled) };
        page.after = Some(last.lease.resource.clone());
        for lease in listed.into_iter().map(|listed| listed.lease) {
            for id in lease.sinks.keys() {
                enrolled.entry(id.clone()).or_default().push(lease.clone());
            }
        }
    }
}

/// Compares the rows there with the records here.
fn agreement(sink: &Arc<dyn Sink>, leases: &[LeaseRecord]) -> Finding {
    let id = sink.id();
    for lease in leases {
        let resource = &lease.resource;
        let there = match wait_for(sink.describe(resource)) {
            Ok(there) => there,
            Err(error) => {
                return Finding::fail("receiver", format!("{id}: {error}"), "mend it: a takeover waits for it");
            }
        };
        let epoch = there.row.as_ref().map(|row| row.epoch);
        if epoch > Some(lease.epoch) {
            return Finding::fail(
                "receiver",
                format!("{id} has a higher epoch of {resource} ({epoch:?}) than the authority ({})", lease.epoch),
                "find out whether another authority uses it, or this one was restored, before anybody writes",
            );
        }
        let sealed = lease.phase == Phase::Held && lease.sinks.get(id).is_some_and(|mark| mark.sealed);
        let in_this =
            there.row.as_ref().is_some_and(|row| row.epoch == lease.epoch && row.generation == there.generation);
        if sealed && !in_this {
            return Finding::warn(
                "receiver",
                format!("{id} has lost the seal of {resource} that the authority knows of"),
                "the holder seals it again at its next write; after a restore there: tenure sinks RESOURCE reopen",
            );
        }
    }
    Finding::ok("receiver", format!("{id} agrees with the authority about {} resource(s)", leases.len()))
}
