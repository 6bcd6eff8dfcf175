//! Calls whose outcome nobody knows: they are looked at and decided here, and never made again.

mod list;
mod resolve;
mod show;

use crate::exit::Exit;
use crate::owner::Who;
use crate::problem::Problem;
use crate::screen::when::{earlier, rfc3339};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tenure::authority::WallTime;
use tenure::blocking::wait_for;
use tenure::core::operation::Attempt;
use tenure::core::{Actor, OperationId, Outcome, Reason, ResourceName};
use tenure::sink::ledger::{AttemptRecord, Ledger};

/// Calls to other systems whose outcome nobody knows: list them, look at one, say what became of it.
///
/// A worker writes each call down in the ledger of a receiver before it makes it. Where the answer is lost, or the
/// worker is overtaken after it may have sent, the call is unknown: it is never made again by itself. A probe of the
/// next holder finds out what it can; what is left waits here for a person.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure unknown ls --sink sqlite:/srv/shop.db
  tenure unknown show order-81/charge/9f2c6e0b1d4a7753 --sink sqlite:/srv/shop.db
  tenure unknown resolve order-81/charge/9f2c6e0b1d4a7753 --sink sqlite:/srv/shop.db \\
    --applied --reason 'in the statement of 3 May'")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Ls(list::Args),
    Show(show::Args),
    Resolve(resolve::Args),
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        match &self.verb {
            Verb::Ls(args) => args.run(),
            Verb::Show(args) => args.run(),
            Verb::Resolve(args) => args.run(),
        }
    }
}

/// Whose ledgers are looked into.
#[derive(Clone, Debug, clap::Args)]
struct Ledgers {
    /// The receiver that keeps the ledger, such as sqlite:/srv/shop.db?id=shop, or shop=sqlite:/srv/shop.db to call it
    /// shop here. May be given more than once.
    #[arg(long = "sink", value_name = "URL", required = true)]
    urls: Vec<String>,
}

/// A ledger with the name that it is called by, and the words that name it.
#[derive(Debug)]
struct Named {
    name: String,
    word: String,
    ledger: Arc<dyn Ledger>,
}

impl Ledgers {
    fn open(&self) -> Result<Vec<Named>, Problem> {
        let open = |word: &String| {
            let (name, url) = named(word);
            let ledger = tenure::sink::open(url)?.into_ledger()?;
            let name = name.map_or_else(|| ledger.id().to_string(), str::to_owned);
            Ok(Named { name, word: word.clone(), ledger })
        };
        self.urls.iter().map(open).collect()
    }
}

/// `NAME=URL`; an equals sign behind the kind of the receiver belongs to the address.
fn named(word: &str) -> (Option<&str>, &str) {
    match word.split_once('=') {
        Some((name, url)) if !name.is_empty() && !name.contains([':', '/', '?']) => (Some(name), url),
        _ => (None, word),
    }
}

/// An attempt with the ledger in which it stands.
#[derive(Debug)]
struct Found<'a> {
    place: &'a Named,
    attempt: AttemptRecord,
}

/// Every attempt of an operation, in every ledger, of one resource or of any.
fn find<'a>(
    places: &'a [Named],
    operation: &OperationId,
    resource: Option<&ResourceName>,
) -> Result<Vec<Found<'a>>, Problem> {
    let mut found = Vec::new();
    for place in places {
        let attempts = wait_for(place.ledger.attempts(operation))?;
        let wanted = attempts.into_iter().filter(|attempt| resource.is_none_or(|only| attempt.key.resource == *only));
        found.extend(wanted.map(|attempt| Found { place, attempt }));
    }
    Ok(found)
}

fn nothing_of(operation: &OperationId, places: &[Named]) -> Problem {
    let places: Vec<_> = places.iter().map(|place| place.name.as_str()).collect();
    Problem::new(Exit::Different, format_args!("there is no {operation} in the ledger of {}", places.join(", ")))
}

impl Found<'_> {
    /// Since when it stands as it stands, on this machine's wall clock.
    fn since(&self, now: WallTime) -> WallTime {
        earlier(now, Duration::from_millis(self.attempt.age_ms))
    }

    fn json(&self, now: WallTime) -> Value {
        let AttemptRecord { key, seal_no, digest, state, outcome, system, owner, decided_by, why, .. } = &self.attempt;
        let who = Who::parse(owner.as_str());
        let hex = digest.0.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        json!({
            "operation": key.operation.as_str(),
            "resource": key.resource.as_str(),
            "epoch": key.epoch.get(),
            "seal": seal_no,
            "receiver": self.place.name,
            "state": state.name(),
            "system": system.as_str(),
            "owner": { "name": owner.as_str(), "place": who.place, "pid": who.pid, "running": who.is_running() },
            "digest": hex,
            "outcome": outcome.as_ref().map(Outcome::as_str),
            "intended": rfc3339(WallTime::from_millis(self.attempt.intended_ms)),
            "since": rfc3339(self.since(now)),
            "age_ms": self.attempt.age_ms,
            "decided_by": decided_by.as_ref().map(Actor::as_str),
            "why": why.as_ref().map(Reason::as_str),
        })
    }
}

/// How a state looks to whoever reads it.
const fn tint(state: Attempt) -> crate::screen::Tint {
    use crate::screen::Tint;
    match state {
        Attempt::Unknown => Tint::Bad,
        Attempt::Sent | Attempt::Intent => Tint::Warn,
        Attempt::Done | Attempt::Applied => Tint::Good,
        Attempt::Failed | Attempt::NotApplied => Tint::Faint,
    }
}

#[cfg(test)]
mod tests;
