use super::{Found, Ledgers, find, nothing_of, tint};
use crate::access::Access;
use crate::exit::Exit;
use crate::owner::Who;
use crate::problem::Problem;
use crate::screen::when::{both, rfc3339};
use crate::screen::{Out, Tint, clean, quoted};
use serde_json::json;
use std::fmt::Write as _;
use tenure::authority::WallTime;
use tenure::core::operation::Attempt;
use tenure::core::{OperationId, ResourceName};

/// Show every attempt of one call: who made it, when, where it went, what is known, and what can be done.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// The operation's id, which is also the key that the other system was given.
    #[arg(value_name = "OP")]
    operation: OperationId,
    #[command(flatten)]
    ledgers: Ledgers,
    /// Only what was made under this resource.
    #[arg(long, value_name = "NAME")]
    resource: Option<ResourceName>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure unknown show order-81/charge/9f2c6e0b1d4a7753 --sink sqlite:/srv/shop.db

Exit status:
  0   shown
  1   there is no such operation
  69  a receiver cannot be reached, or has no ledger";

impl Args {
    pub(super) fn run(&self) -> Result<Exit, Problem> {
        self.access.who()?;
        let places = self.ledgers.open()?;
        let found = find(&places, &self.operation, self.resource.as_ref())?;
        if found.is_empty() {
            return Err(nothing_of(&self.operation, &places));
        }
        let now = WallTime::now();
        if self.json {
            Out::new().json(&json!({
                "now": rfc3339(now),
                "operation": self.operation.as_str(),
                "attempts": found.iter().map(|found| found.json(now)).collect::<Vec<_>>(),
            }))?;
            return Ok(Exit::Success);
        }
        let mut text = String::new();
        for one in &found {
            text += &about(one, now);
            text.push('\n');
        }
        // What is newest says what to do.
        text += &found.last().map(next).unwrap_or_default();
        Out::new().write(&text)?;
        Ok(Exit::Success)
    }
}

fn about(found: &Found<'_>, now: WallTime) -> String {
    let attempt = &found.attempt;
    let mut text = format!(
        "{}  {}\n",
        Tint::Strong.paint(clean(attempt.key.operation.as_str())),
        tint(attempt.state).paint(attempt.state.name())
    );
    let mut say = |what: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {what:<10}  {value}");
    };
    say("resource", format!("{}, epoch {}", clean(attempt.key.resource.as_str()), attempt.key.epoch));
    say("receiver", clean(&found.place.name));
    say("system", clean(attempt.system.as_str()));
    say("owner", owner(attempt.owner.as_str()));
    say("intended", both(now, WallTime::from_millis(attempt.intended_ms)));
    say("since", both(now, found.since(now)));
    if let Some(by) = &attempt.decided_by {
        say("decided by", clean(by.as_str()));
    }
    if let Some(why) = &attempt.why {
        say("because", clean(why.as_str()));
    }
    if let Some(outcome) = &attempt.outcome {
        say("outcome", clean(outcome.as_str()));
    }
    text
}

fn owner(name: &str) -> String {
    let who = Who::parse(name);
    let process = match (who.pid, who.is_running()) {
        (None, _) => String::new(),
        (Some(pid), Some(true)) => format!(", pid {pid}, {}", Tint::Good.paint("running")),
        (Some(pid), Some(false)) => format!(", pid {pid}, {}", Tint::Bad.paint("not running any more")),
        (Some(pid), None) => format!(", pid {pid} there"),
    };
    format!("{}{process}", clean(&who.place))
}

/// What an operator may want to do.
fn next(found: &Found<'_>) -> String {
    let attempt = &found.attempt;
    let word = |text: &str| quoted(&clean(text));
    let (operation, system) = (word(attempt.key.operation.as_str()), clean(attempt.system.as_str()));
    match attempt.state {
        Attempt::Unknown => format!(
            "Nobody knows whether it took effect, and it is not made again by itself. Look for its id at {system}, then say\n  \
             tenure unknown resolve {operation} --sink {sink} --applied --reason TEXT\n\
             or, once its request and the worker that may still send it are gone for good,\n  \
             tenure unknown resolve {operation} --sink {sink} --not-applied --reason TEXT\n",
            sink = word(&found.place.word),
        ),
        Attempt::Sent => {
            "It may have been sent, and its holder may still hear the answer. It becomes unknown when the holder says \
             so, or when the next one takes over.\n"
                .to_owned()
        }
        Attempt::Intent => {
            "Nothing was sent. Its holder goes on with it, or the next one finds that it was not applied.\n".to_owned()
        }
        Attempt::Done | Attempt::Applied => "It took effect, and is not made again.\n".to_owned(),
        Attempt::Failed | Attempt::NotApplied => {
            "It took no effect. It may run again under a new epoch, with the same id.\n".to_owned()
        }
    }
}
