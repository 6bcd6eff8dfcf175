use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{Holder, local, look, millis, nobody};
use crate::problem::Problem;
use crate::reason;
use crate::span::Span;
use serde_json::json;
use tenure::authority::{Authority, Read};
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::{Actor, Epoch, Reason, ResourceName};

/// Take the right to write away from whoever holds it, with a reason that the history keeps.
///
/// The resource is free afterwards: whoever asks next gets a higher epoch. The old holder is not killed. It hears of it
/// with its next renewal, and stops believing at its deadline at the latest; its receivers refuse it once the next
/// holder is announced.
///
/// Exit status: 0 taken, 1 there was nothing to take over (nobody holds it, or under another epoch than --if-epoch).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure takeover nightly-backup --reason 'host db3 is being rebuilt'
  tenure takeover nightly-backup --if-epoch 41 --reason 'hangs since 02:00, ticket 7312'")]
pub(crate) struct Args {
    /// The resource.
    resource: ResourceName,
    /// Why, for the history.
    #[arg(long, value_name = "TEXT", value_parser = reason::parse)]
    reason: Reason,
    /// Only if it is still held under this epoch: whoever looked first does not hit the next holder.
    #[arg(long, value_name = "N")]
    if_epoch: Option<Epoch>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

/// How often the holder may change between the look and the revocation.
const LOOKS_MAX: usize = 16;

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let (authority, actor) = (setup.existing()?, setup.actor()?);
        for _ in 0..LOOKS_MAX {
            let read = look(&authority, &self.resource)?;
            let Some(holder) = Holder::of(&read) else { return Ok(self.nothing(&read, None)) };
            if self.if_epoch.is_some_and(|epoch| epoch != holder.token.epoch) {
                return Ok(self.nothing(&read, Some(&holder)));
            }
            // The epoch that was read is judged in the revocation itself: who came in between is not hit.
            match self.revoke(&authority, &actor, holder.token.epoch)? {
                Ok(Reply::Revoked { .. }) => return Ok(self.taken(&actor, &read, &holder)),
                Ok(_) | Err(Refusal::NotCurrent { .. } | Refusal::WrongPhase { .. }) => {}
                Err(refusal) => return Err(Problem::failure(refusal)),
            }
        }
        Err(Problem::unavailable(format_args!(
            "{} changed hands {LOOKS_MAX} times meanwhile: look at it with tenure show {0}, and try again",
            self.resource
        )))
    }

    fn revoke(&self, authority: &Authority, actor: &Actor, epoch: Epoch) -> Result<Result<Reply, Refusal>, Problem> {
        let request = Request::Revoke {
            resource: self.resource.clone(),
            only: Some(epoch),
            actor: actor.clone(),
            reason: self.reason.clone(),
        };
        Ok(wait_for(authority.execute(&request))?)
    }

    fn nothing(&self, read: &Read, other: Option<&Holder>) -> Exit {
        let resource = &self.resource;
        let why = match other {
            Some(holder) => holder.to_string(),
            None => nobody(read),
        };
        if self.json {
            let holder = other.map(Holder::json);
            println!("{}", json!({ "resource": resource.as_str(), "taken": false, "why": why, "holder": holder }));
        } else {
            eprintln!("tenure takeover: there is nothing to take over of {resource}: {why}");
        }
        Exit::Different
    }

    fn taken(&self, actor: &Actor, read: &Read, holder: &Holder) -> Exit {
        let (resource, epoch) = (&self.resource, holder.token.epoch);
        let lease = read.view.lease.as_ref();
        let sinks: Vec<_> = lease.iter().flat_map(|lease| lease.sinks.keys()).map(ToString::to_string).collect();
        if self.json {
            let answer = json!({
                "resource": resource.as_str(),
                "taken": true,
                "from": holder.json(),
                "old_holder_hears_within_ms": millis(holder.remaining),
                "receivers": sinks,
                "actor": actor.as_str(),
                "reason": self.reason.as_str(),
            });
            println!("{answer}");
            return Exit::Success;
        }
        println!("Taken from {}: {resource}, epoch {epoch}.", holder.owner);
        println!(
            "Held since {} ({}), and for {} more without a renewal.",
            local(crate::holder::ago(holder.held_for)),
            Span(holder.held_for),
            Span(holder.remaining)
        );
        println!(
            "Nobody is stopped by this: the old holder hears of it with its next renewal, at most {} from now.",
            Span(holder.remaining)
        );
        match sinks.as_slice() {
            [] => println!("No receiver is enrolled: nothing refuses what it still sends."),
            sinks => println!("Its receivers refuse it once the next holder is announced: {}.", sinks.join(", ")),
        }
        Exit::Success
    }
}
