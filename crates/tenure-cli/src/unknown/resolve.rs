use super::{Found, Ledgers, find, nothing_of};
use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::reason;
use crate::screen::{Out, clean};
use serde_json::json;
use tenure::blocking::wait_for;
use tenure::core::ledger::Unheard;
use tenure::core::operation::{Attempt, Illegal};
use tenure::core::{Actor, Epoch, OperationId, Outcome, Reason, ResourceName};
use tenure::sink::ledger::{AttemptRecord, Decision, Refused};

/// Say what became of a call that nobody knew about. It is final, and the ledger keeps who said it and why.
///
/// Say --not-applied only when the request cannot arrive any more, and the worker that made the mark is gone: nothing
/// can take it back, and the next holder makes the call again.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The operation's id.
    #[arg(value_name = "OP")]
    operation: OperationId,
    #[command(flatten)]
    ledgers: Ledgers,
    #[command(flatten)]
    answer: Answer,
    /// What it ended with, for whoever asks for the same operation again.
    #[arg(long, value_name = "TEXT", conflicts_with = "not_applied")]
    outcome: Option<Outcome>,
    /// Why you know, for whoever reads the ledger.
    #[arg(long, value_name = "TEXT", value_parser = reason::parse)]
    reason: Reason,
    /// Only what was made under this resource, where several have the id.
    #[arg(long, value_name = "NAME")]
    resource: Option<ResourceName>,
    /// Only the attempt of this epoch.
    #[arg(long, value_name = "N")]
    epoch: Option<Epoch>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

/// What became of it.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Answer {
    /// It took effect.
    #[arg(long)]
    applied: bool,
    /// It took no effect, and never will.
    #[arg(long)]
    not_applied: bool,
}

const AFTER_HELP: &str = "\
Examples:
  tenure unknown resolve order-81/charge/9f2c6e0b1d4a7753 --sink sqlite:/srv/shop.db \\
    --applied --outcome 'charge 4711' --reason 'in the statement of 3 May'
  tenure unknown resolve order-81/charge/9f2c6e0b1d4a7753 --sink sqlite:/srv/shop.db \\
    --not-applied --reason 'the bank refuses keys of yesterday; db3 was switched off'

Exit status:
  0   resolved, or resolved like that before
  1   there is no such operation
  64  several resources have it: name one
  65  it is known already, and otherwise
  69  a receiver cannot be reached, or has no ledger
  75  not now: its holder may still hear the answer";

impl Args {
    pub(super) fn run(&self) -> Result<Exit, Problem> {
        let actor = Actor::new(self.access.who()?.to_string())?;
        let places = self.ledgers.open()?;
        let mut found = find(&places, &self.operation, self.resource.as_ref())?;
        found.retain(|one| self.epoch.is_none_or(|only| one.attempt.key.epoch == only));
        let one = self.choose(&found)?.ok_or_else(|| nothing_of(&self.operation, &places))?;
        let decision = if self.answer.applied { Decision::Applied(self.outcome.clone()) } else { Decision::NotApplied };
        let decided = wait_for(one.place.ledger.decide(&one.attempt.key, &decision, &actor, &self.reason))?;
        decided.map_err(|refused| refusal(&one.attempt, &refused))?;
        // Somebody may have said the same in between: what counts is what stands there now.
        let stands = find(&places, &self.operation, Some(&one.attempt.key.resource))?;
        let stands =
            stands.into_iter().find(|now| now.place.word == one.place.word && now.attempt.key == one.attempt.key);
        let stands = stands.ok_or_else(|| nothing_of(&self.operation, &places))?.attempt;
        let fate = Fate::of(&one.attempt, &stands, (&actor, &self.reason));
        if self.json {
            Out::new().json(&json!({
                "operation": self.operation.as_str(),
                "resource": stands.key.resource.as_str(),
                "epoch": stands.key.epoch.get(),
                "receiver": one.place.name,
                "state": stands.state.name(),
                "resolved": fate.is_ours,
                "by": stands.decided_by.as_ref().map_or("", |by| by.as_str()),
                "reason": stands.why.as_ref().map_or("", |why| why.as_str()),
                "outcome": stands.outcome.as_ref().map(Outcome::as_str),
            }))?;
            return Ok(Exit::Success);
        }
        let (operation, resource) = (clean(self.operation.as_str()), clean(stands.key.resource.as_str()));
        Out::new().line(&format!("{operation} of {resource}, epoch {}: {}.", stands.key.epoch, clean(&fate.says)))?;
        Ok(Exit::Success)
    }

    /// The attempt that is meant: the unknown one, or else the newest.
    fn choose<'a>(&self, found: &'a [Found<'a>]) -> Result<Option<&'a Found<'a>>, Problem> {
        let unknown: Vec<_> = found.iter().filter(|one| one.attempt.state == Attempt::Unknown).collect();
        if let [one, _, ..] = unknown[..] {
            let places: Vec<_> = unknown
                .iter()
                .map(|one| {
                    format!("{} (epoch {}, at {})", one.attempt.key.resource, one.attempt.key.epoch, one.place.name)
                })
                .collect();
            return Err(Problem::usage(format_args!(
                "{} is unknown under several: {}. Name one with --resource or --epoch, and with one --sink",
                one.attempt.key.operation,
                places.join(", ")
            )));
        }
        Ok(unknown.first().copied().or(found.last()))
    }
}

/// What has become of an attempt that is known now, and whether this call has made it known.
struct Fate {
    is_ours: bool,
    says: String,
}

impl Fate {
    /// `read` before the ledger was asked, `stands` after it. Somebody else's word is there with somebody else's reason.
    fn of(read: &AttemptRecord, stands: &AttemptRecord, (actor, reason): (&Actor, &Reason)) -> Self {
        let said = (stands.decided_by.as_ref(), stands.why.as_ref());
        let is_ours = read.state != stands.state && said == (Some(actor), Some(reason));
        let what = if stands.state.may_run_again() { "not applied" } else { "applied" };
        let says = match (is_ours, said) {
            (true, _) if stands.state.may_run_again() => format!("{what}; it may run again under the next epoch"),
            (true, _) => format!("{what}; it is not made again"),
            (false, (Some(by), Some(why))) => format!("{what}, as {by} has said before: {why}"),
            (false, _) => format!("{what}, as it was known before"),
        };
        Self { is_ours, says }
    }
}

/// What the ledger did not take. Since the attempt was read, somebody else may have spoken: how it stands, the ledger says.
fn refusal(read: &AttemptRecord, refused: &Refused) -> Problem {
    let key = &read.key;
    let Refused::Unheard(Unheard::Illegal(Illegal { state, .. })) = refused else {
        return Problem::new(Exit::NotAcquired, format_args!("{key} was left as it is: {refused}"));
    };
    let by = read.decided_by.as_ref().filter(|_| read.state == *state);
    let who = by.map(|by| format!(", as {by} has said")).unwrap_or_default();
    Problem::new(Exit::Conflict, format_args!("{key} is {}{who}: that is final, and nothing was changed", state.name()))
}

#[cfg(test)]
mod tests;
