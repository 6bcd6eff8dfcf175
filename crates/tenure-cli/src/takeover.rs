use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{Holder, look, nobody, time_of};
use crate::problem::Problem;
use crate::reason;
use crate::screen::{Out, clean, quoted, say};
use crate::span::{Span, millis};
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
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
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

const AFTER_HELP: &str = "\
Examples:
  tenure takeover nightly-backup --reason 'host db3 is being rebuilt'
  tenure takeover nightly-backup --if-epoch 41 --reason 'hangs since 02:00, ticket 7312'

Exit status:
  0   taken
  1   there was nothing to take: nobody holds it, or under another epoch than --if-epoch says
  69  the authority cannot be reached";

/// How often the holder may change between the look and the revocation.
const LOOKS_MAX: usize = 16;

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let (authority, actor) = (setup.existing()?, setup.actor()?);
        for _ in 0..LOOKS_MAX {
            let read = look(&authority, &self.resource)?;
            let Some(holder) = Holder::of(&read, time_of(&authority), &setup.who) else {
                return self.nothing(&read, None);
            };
            if self.if_epoch.is_some_and(|epoch| epoch != holder.epoch) {
                return self.nothing(&read, Some(&holder));
            }
            // The epoch that was read is judged in the revocation itself: who came in between is not hit.
            match self.revoke(&authority, &actor, holder.epoch)? {
                Ok(Reply::Revoked { .. }) => return self.taken(&actor, &read, &holder),
                Ok(_) | Err(Refusal::NotCurrent { .. } | Refusal::WrongPhase { .. }) => {}
                Err(refusal) => return Err(Problem::failure(refusal)),
            }
        }
        Err(Problem::unavailable(format_args!(
            "{} changed hands {LOOKS_MAX} times meanwhile: look at it with tenure show {}, and try again",
            self.resource,
            quoted(self.resource.as_str())
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

    fn nothing(&self, read: &Read, other: Option<&Holder>) -> Result<Exit, Problem> {
        let resource = &self.resource;
        let why = other.map_or_else(|| nobody(read), Holder::to_string);
        if self.json {
            let holder = other.map(Holder::json);
            let answer = json!({ "resource": resource.as_str(), "taken": false, "why": why, "holder": holder });
            Out::new().json(&answer)?;
        } else if other.is_some() {
            say("takeover", format_args!("nothing was taken: {why}"));
        } else {
            say("takeover", format_args!("there is nothing to take over of {resource}: {why}"));
        }
        Ok(Exit::Different)
    }

    fn taken(&self, actor: &Actor, read: &Read, holder: &Holder) -> Result<Exit, Problem> {
        let mut out = Out::new();
        let (resource, epoch) = (&self.resource, holder.epoch);
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
            out.json(&answer)?;
            return Ok(Exit::Success);
        }
        let (who, left) = (clean(&holder.who.to_string()), holder.left());
        out.line(&format!("Taken from {who}: {}, epoch {epoch}.", clean(resource.as_str())))?;
        out.line(&format!("Held since {}, and for {left} more without a renewal.", holder.since()))?;
        out.line(&format!(
            "Nobody is stopped by this: the old holder hears of it with its next renewal, at most {} from now.",
            Span(holder.remaining)
        ))?;
        out.line(&match sinks.as_slice() {
            [] => "No receiver is enrolled: nothing refuses what it still sends.".to_owned(),
            sinks => {
                format!("Its receivers refuse it once the next holder is announced: {}.", clean(&sinks.join(", ")))
            }
        })?;
        Ok(Exit::Success)
    }
}
