//! What the receivers know and the authority does not.

use crate::problem::Problem;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tenure::authority::Authority;
use tenure::blocking::wait_for;
use tenure::core::decide::{Keys, Refusal, Request};
use tenure::core::fence::{FenceRow, Rule};
use tenure::core::{Actor, Epoch, ResourceName, SinkId};
use tenure::sink::{Sink, connect};

/// So many rows of a receiver are read at once.
const PAGE: usize = 500;

/// Reads receivers, and teaches the authority what is new to it.
pub(super) struct Teacher<'a> {
    pub(super) authority: &'a Authority,
    pub(super) actor: &'a Actor,
    /// Only looks.
    pub(super) dry_run: bool,
}

/// One thing that is new to the authority.
#[derive(Debug)]
pub(super) struct Lesson {
    /// The resource; `None` for the floor, which is every resource's.
    resource: Option<ResourceName>,
    epoch: Epoch,
    /// The epoch that the authority has.
    before: Option<Epoch>,
    /// The receivers that it did not know of.
    receivers: BTreeSet<SinkId>,
    /// Why it was not learnt.
    pub(super) held: Option<String>,
}

impl Teacher<'_> {
    /// Teaches all that one receiver knows. What was learnt before it failed stays learnt.
    pub(super) fn learn_from(&self, url: &str, lessons: &mut Vec<Lesson>) -> Result<(), Problem> {
        let sink = connect(url)?;
        let mut after: Option<ResourceName> = None;
        loop {
            let page = wait_for(sink.rows(after.as_ref(), PAGE))?;
            if after.is_none() {
                lessons.extend(page.floor.map(|floor| self.floor(floor)).transpose()?.flatten());
            }
            after = page.rows.last().map(|(resource, _)| resource.clone());
            let is_last = page.rows.len() < PAGE;
            for (resource, row) in &page.rows {
                lessons.extend(self.row(&sink, resource, row)?);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn floor(&self, floor: Epoch) -> Result<Option<Lesson>, Problem> {
        let before = wait_for(self.authority.store().read(&Keys::default()))?.view.authority.floor;
        if before >= Some(floor) {
            return Ok(None);
        }
        let mut lesson = Lesson { resource: None, epoch: floor, before, receivers: BTreeSet::new(), held: None };
        self.teach(&Request::LearnFloor { floor, actor: self.actor.clone() }, &mut lesson)?;
        Ok(Some(lesson))
    }

    fn row(&self, sink: &Arc<dyn Sink>, resource: &ResourceName, row: &FenceRow) -> Result<Option<Lesson>, Problem> {
        let sinks = enrolled(sink, resource, row)?;
        let known = wait_for(self.authority.inspect(resource))?.view.lease;
        let is_new = |id: &&SinkId| known.as_ref().is_none_or(|known| !known.sinks.contains_key(*id));
        let receivers: BTreeSet<SinkId> = sinks.iter().filter(is_new).cloned().collect();
        let before = known.map(|known| known.epoch);
        if receivers.is_empty() && before >= Some(row.epoch) {
            return Ok(None);
        }
        let mut lesson = Lesson { resource: Some(resource.clone()), epoch: row.epoch, before, receivers, held: None };
        let request = Request::Learn {
            resource: resource.clone(),
            epoch: row.epoch,
            grant: row.grant,
            sinks,
            actor: self.actor.clone(),
        };
        self.teach(&request, &mut lesson)?;
        Ok(Some(lesson))
    }

    fn teach(&self, request: &Request, lesson: &mut Lesson) -> Result<(), Problem> {
        if self.dry_run {
            return Ok(());
        }
        match wait_for(self.authority.execute(request))? {
            Ok(_) => Ok(()),
            Err(refusal @ Refusal::Busy { .. }) => {
                lesson.held = Some(refusal.to_string());
                Ok(())
            }
            Err(refusal) => Err(Problem::failure(refusal)),
        }
    }
}

/// The receivers that are to be enrolled for a row: those that it was given, and this one.
fn enrolled(sink: &Arc<dyn Sink>, resource: &ResourceName, row: &FenceRow) -> Result<BTreeSet<SinkId>, Problem> {
    let (id, mut sinks) = (sink.id(), row.enrolled.clone());
    if sink.rule() == Rule::HighWater {
        return Ok(BTreeSet::new());
    }
    // Under another id it would be a receiver that no worker knows, and nobody could acquire the resource any more.
    if !sinks.is_empty() && !sinks.contains(id) {
        let names: Vec<_> = sinks.iter().map(ToString::to_string).collect();
        return Err(Problem::usage(format_args!(
            "it is called {id} here, but its row of {resource} names {}: give the address with the id that the workers \
             use, as in URL?id=NAME",
            names.join(", ")
        )));
    }
    sinks.insert(id.clone());
    Ok(sinks)
}

impl Lesson {
    pub(super) fn json(&self) -> Value {
        json!({
            "resource": self.resource.as_ref().map(ResourceName::as_str),
            "epoch": self.epoch.get(),
            "epoch_before": self.before.map(Epoch::get),
            "receivers": self.receivers.iter().map(SinkId::as_str).collect::<Vec<_>>(),
            "why_not": self.held,
        })
    }
}

impl fmt::Display for Lesson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.resource {
            Some(resource) => write!(f, "{resource}: ")?,
            None => f.write_str("the floor: ")?,
        }
        match self.before {
            Some(before) if before >= self.epoch => write!(f, "epoch {before}")?,
            Some(before) => write!(f, "epoch {} instead of {before}", self.epoch)?,
            None => write!(f, "epoch {}, unknown before", self.epoch)?,
        }
        if !self.receivers.is_empty() {
            let names: Vec<_> = self.receivers.iter().map(ToString::to_string).collect();
            write!(f, "; receivers {}", names.join(", "))?;
        }
        Ok(())
    }
}
