use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{Holder, look, nobody, time_of};
use crate::problem::Problem;
use crate::reason;
use crate::screen::{Out, clean, say};
use serde_json::json;
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::record::Phase;
use tenure::core::{Reason, ResourceName};

/// Open a completed resource again, so that it can be held once more.
///
/// Prints the outcome with which it was completed; the history keeps it with your reason. The next holder gets a higher
/// epoch.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The resource.
    resource: ResourceName,
    /// Why, for the history.
    #[arg(long, value_name = "TEXT", value_parser = reason::parse)]
    reason: Reason,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure reopen import-2026-11 --reason 'the source was corrected, import it again'

Exit status:
  0   opened again
  1   it is not completed
  69  the authority cannot be reached";

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let (authority, actor) = (setup.existing()?, setup.actor()?);
        let read = look(&authority, &self.resource)?;
        let resource = &self.resource;
        let request = Request::Reopen { resource: resource.clone(), actor, reason: self.reason.clone() };
        let completed = read.view.lease.as_ref().and_then(|lease| match &lease.phase {
            Phase::Completed { outcome } => Some((lease, outcome)),
            _ => None,
        });
        let done = match completed {
            Some(_) => wait_for(authority.execute(&request))?,
            None => Err(Refusal::WrongPhase { phase: "not completed" }),
        };
        match (done, completed) {
            (Ok(Reply::Reopened), Some((lease, outcome))) => {
                let (owner, epoch) = (&lease.owner, lease.epoch);
                if self.json {
                    Out::new().json(&json!({
                        "resource": resource.as_str(),
                        "reopened": true,
                        "completed_by": owner.name.as_str(),
                        "epoch": epoch.get(),
                        "outcome": outcome.as_str(),
                    }))?;
                } else {
                    let (resource, owner) = (clean(resource.as_str()), clean(owner.name.as_str()));
                    Out::new().write(&format!(
                        "Open again: {resource}.\n{owner} had completed it under epoch {epoch} with the outcome {:?}.\n",
                        outcome.as_str()
                    ))?;
                }
                Ok(Exit::Success)
            }
            (Ok(_) | Err(Refusal::WrongPhase { .. }), _) => {
                let read = look(&authority, resource)?;
                let why = Holder::of(&read, time_of(&authority), &setup.who)
                    .map_or_else(|| nobody(&read), |holder| holder.to_string());
                if self.json {
                    Out::new().json(&json!({ "resource": resource.as_str(), "reopened": false, "why": why }))?;
                } else {
                    let why = format!("{resource} is not completed, there is nothing to open again: {why}");
                    say("reopen", why);
                }
                Ok(Exit::Different)
            }
            (Err(refusal), _) => Err(Problem::failure(refusal)),
        }
    }
}
