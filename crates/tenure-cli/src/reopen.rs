use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{Holder, look, nobody};
use crate::problem::Problem;
use crate::reason;
use serde_json::json;
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::record::Phase;
use tenure::core::{Reason, ResourceName};

/// Open a completed resource again, so that it can be held once more.
///
/// Prints the outcome with which it was completed; the history keeps it with your reason. The next holder gets a higher
/// epoch.
///
/// Exit status: 0 opened again, 1 it is not completed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  tenure reopen import-2026-11 --reason 'the source was corrected, import it again'")]
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
                    println!(
                        "{}",
                        json!({
                            "resource": resource.as_str(),
                            "reopened": true,
                            "completed_by": owner.name.as_str(),
                            "epoch": epoch.get(),
                            "outcome": outcome.as_str(),
                        })
                    );
                } else {
                    println!("Open again: {resource}.");
                    println!("{owner} had completed it under epoch {epoch} with the outcome {:?}.", outcome.as_str());
                }
                Ok(Exit::Success)
            }
            (Ok(_) | Err(Refusal::WrongPhase { .. }), _) => {
                let read = look(&authority, resource)?;
                let why = Holder::of(&read).map_or_else(|| nobody(&read), |holder| holder.to_string());
                if self.json {
                    println!("{}", json!({ "resource": resource.as_str(), "reopened": false, "why": why }));
                } else {
                    eprintln!("tenure reopen: {resource} is not completed, there is nothing to open again: {why}");
                }
                Ok(Exit::Different)
            }
            (Err(refusal), _) => Err(Problem::failure(refusal)),
        }
    }
}
