use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{Holder, look, nobody, time_of};
use crate::problem::Problem;
use crate::reason;
use crate::receivers::Receivers;
use crate::screen::{Out, clean};
use serde_json::json;
use tenure::authority::{Authority, Page, Read};
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Request};
use tenure::core::fence::Forgetting;
use tenure::core::record::LeaseRecord;
use tenure::core::{Reason, ResourceName, SinkId};

mod list;

/// How often the resource may change hands while a receiver is taken out.
const TURNS_MAX: usize = 16;

/// The receivers of a resource: list them, take one out that is gone, or have one sealed again after a restore.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure sinks nightly-backup ls
  tenure sinks nightly-backup remove file:/srv/old --reason 'moved to /srv/new'
  tenure sinks nightly-backup remove sqlite:/mnt/dead.db --unreachable --reason 'the disk is gone'
  tenure sinks nightly-backup reopen file:/srv/out --reason 'restored from the backup of Monday'")]
pub(crate) struct Args {
    /// The resource.
    resource: ResourceName,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Ls(list::Args),
    Remove(Remove),
    Reopen(Reopen),
}

/// Take a receiver out, after it has forgotten the resource.
///
/// Candidates need no adapter for it any more. It is first told to forget, so that no old token is accepted there
/// later; whoever holds the resource now is refused there from then on.
#[derive(Debug, clap::Args)]
#[command(after_help = REMOVE_HELP)]
struct Remove {
    /// The receiver's id, as `ls` shows it.
    id: SinkId,
    /// Why, for the history.
    #[arg(long, value_name = "TEXT", value_parser = reason::parse)]
    reason: Reason,
    #[command(flatten)]
    receivers: Receivers,
    /// Do not tell it to forget, because it is gone. The history says so.
    #[arg(long)]
    unreachable: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const REMOVE_HELP: &str = "\
Examples:
  tenure sinks nightly-backup remove file:/srv/old --reason 'moved to /srv/new'
  tenure sinks nightly-backup remove shop --sink 'sqlite:/srv/shop.db?id=shop' \\
    --reason 'not written any more'
  tenure sinks nightly-backup remove sqlite:/mnt/dead.db --unreachable --reason 'the disk is gone'

Exit status:
  0   taken out
  1   it is not enrolled
  65  it has a higher epoch than the authority
  69  the authority, or the receiver, cannot be reached";

/// Start a new generation at a receiver after a restore that it cannot notice: nothing counts as sealed there any more.
///
/// Stop the workers first. It concerns every resource that this receiver is enrolled for, and is recorded for each.
#[derive(Debug, clap::Args)]
#[command(after_help = REOPEN_HELP)]
struct Reopen {
    /// The receiver's id, as `ls` shows it.
    id: SinkId,
    /// Why, for the history.
    #[arg(long, value_name = "TEXT", value_parser = reason::parse)]
    reason: Reason,
    #[command(flatten)]
    receivers: Receivers,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const REOPEN_HELP: &str = "\
Examples:
  tenure sinks nightly-backup reopen file:/srv/out --reason 'restored from the backup of Monday'

Exit status:
  0   reopened
  1   it is not enrolled
  69  the authority, or the receiver, cannot be reached";

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        match &self.verb {
            Verb::Ls(args) => args.run(&self.resource),
            Verb::Remove(args) => args.run(&self.resource),
            Verb::Reopen(args) => args.run(&self.resource),
        }
    }
}

impl Remove {
    fn run(&self, resource: &ResourceName) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let (authority, actor) = (setup.existing()?, setup.actor()?);
        for _ in 0..TURNS_MAX {
            let read = look(&authority, resource)?;
            let lease = enrolled(&read, resource, &self.id)?;
            let (forgotten, reason) = if self.unreachable {
                (None, Reason::new(format!("{} (without its forgetting: it was not asked)", self.reason))?)
            } else if self.forget(resource, lease, &authority)? {
                (Some(lease.epoch), self.reason.clone())
            } else {
                continue;
            };
            let (resource, sink, actor) = (resource.clone(), self.id.clone(), actor.clone());
            let request = Request::Unenrol { resource, sink, forgotten, actor, reason };
            match wait_for(authority.execute(&request))? {
                Ok(_) => return self.removed(lease, Holder::of(&read, time_of(&authority), &setup.who).as_ref()),
                // The next grant was sealed there in between.
                Err(Refusal::OldCut { .. }) => {}
                Err(refusal) => return Err(Problem::failure(refusal)),
            }
        }
        Err(Problem::unavailable(format_args!(
            "{resource} changed hands {TURNS_MAX} times meanwhile, and {} stays enrolled: try again",
            self.id
        )))
    }

    fn removed(&self, lease: &LeaseRecord, holder: Option<&Holder>) -> Result<Exit, Problem> {
        let (mut out, epoch) = (Out::new(), lease.epoch);
        if self.json {
            out.json(&json!({
                "resource": lease.resource.as_str(),
                "receiver": self.id.as_str(),
                "removed": true,
                "forgotten": !self.unreachable,
                "holder": holder.map(Holder::json),
            }))?;
            return Ok(Exit::Success);
        }
        let (id, resource) = (clean(self.id.as_str()), clean(lease.resource.as_str()));
        out.line(&format!("Taken out: {id} is no receiver of {resource} any more."))?;
        if self.unreachable {
            out.line(&format!(
                "It was not told to forget: if it comes back, it may still accept the token of epoch {epoch} or of an \
                 older grant. Reopen it before any worker writes there."
            ))?;
        } else if let Some(holder) = holder {
            let who = clean(&holder.who.to_string());
            out.line(&format!("{who} holds {resource}: its writes to {id} are refused from now on."))?;
        }
        Ok(Exit::Success)
    }

    /// Whether it has forgotten; otherwise a later grant was sealed there in between.
    fn forget(&self, resource: &ResourceName, lease: &LeaseRecord, authority: &Authority) -> Result<bool, Problem> {
        let id = &self.id;
        let away = |why: String| {
            Problem::unavailable(format_args!(
                "{id} stays enrolled, because it has not said that it forgot {resource}: {why}. If it is gone for good, take \
                 it out with --unreachable"
            ))
        };
        let sink = self.receivers.reach()?.find(id).map_err(away)?;
        match wait_for(sink.forget(resource, lease.epoch)).map_err(|error| away(error.to_string()))? {
            Forgetting::Forget { .. } => Ok(true),
            Forgetting::Above { epoch, .. }
                if look(authority, resource)?.view.lease.is_some_and(|now| now.epoch >= epoch) =>
            {
                Ok(false)
            }
            Forgetting::Above { epoch, .. } => Err(Problem::new(
                Exit::Conflict,
                format_args!(
                    "{id} has epoch {epoch} of {resource}, above the authority's {}: another authority uses it, or this \
                     one was restored from a backup. Nothing was changed; find out which, before anybody writes there",
                    lease.epoch
                ),
            )),
        }
    }
}

impl Reopen {
    fn run(&self, resource: &ResourceName) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let (authority, actor) = (setup.existing()?, setup.actor()?);
        let read = look(&authority, resource)?;
        enrolled(&read, resource, &self.id)?;
        let id = &self.id;
        let away = |why: String| Problem::unavailable(format_args!("{id} has not said that it was reopened: {why}"));
        let sink = self.receivers.reach()?.find(id).map_err(away)?;
        // There first: were it recorded before, a seal of the old generation could be marked in between.
        let generation = wait_for(sink.reopen()).map_err(|error| away(error.to_string()))?;
        let concerned = concerned(&authority, id)?;
        for resource in &concerned {
            let (resource, sink) = (resource.clone(), id.clone());
            let request = Request::ReopenSink { resource, sink, actor: actor.clone(), reason: self.reason.clone() };
            // A refusal: it was taken out, or the resource retired, in between.
            if let Err(why) = wait_for(authority.execute(&request)) {
                return Err(Problem::unavailable(format_args!(
                    "{id} is reopened, but that is not recorded: {why}. Repeat the command"
                )));
            }
        }
        if self.json {
            let concerned: Vec<_> = concerned.iter().map(ResourceName::as_str).collect();
            Out::new().json(&json!({
                "resource": resource.as_str(),
                "receiver": id.as_str(),
                "reopened": true,
                "generation": generation.as_str(),
                "resources": concerned,
            }))?;
        } else {
            let (id, names, number) = (clean(id.as_str()), clean(&joined(&concerned)), concerned.len());
            Out::new().write(&format!(
                "Reopened: {id}, now in generation {generation}.\n\
                 Nothing is sealed there any more. It accepts writes again once a holder has sealed it.\n\
                 Recorded for {number} resource(s): {names}.\n"
            ))?;
        }
        Ok(Exit::Success)
    }
}

/// The record of the resource, if this receiver is enrolled there.
fn enrolled<'read>(read: &'read Read, resource: &ResourceName, id: &SinkId) -> Result<&'read LeaseRecord, Problem> {
    let Some(lease) = &read.view.lease else {
        return Err(Problem::new(Exit::Different, format_args!("there is no {resource}: {}", nobody(read))));
    };
    if lease.sinks.contains_key(id) {
        return Ok(lease);
    }
    let names: Vec<_> = lease.sinks.keys().collect();
    let names = if names.is_empty() { "none is".to_owned() } else { joined(&names) };
    Err(Problem::new(Exit::Different, format_args!("{id} is no enrolled receiver of {resource}; enrolled: {names}")))
}

/// Every resource that the receiver is enrolled for.
fn concerned(authority: &Authority, id: &SinkId) -> Result<Vec<ResourceName>, Problem> {
    let mut found = Vec::new();
    let mut page = Page { after: None, limit: 1_000 };
    loop {
        let listed = wait_for(authority.store().leases(page.clone()))?;
        let Some(last) = listed.last() else { return Ok(found) };
        page.after = Some(last.lease.resource.clone());
        let concerned = listed.into_iter().filter(|listed| listed.lease.sinks.contains_key(id));
        found.extend(concerned.map(|listed| listed.lease.resource));
    }
}

fn joined(names: &[impl std::fmt::Display]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
