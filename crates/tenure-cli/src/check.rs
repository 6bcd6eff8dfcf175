use crate::access::{Access, Setup};
use crate::exit::Exit;
use crate::holder::{Holder, look, nobody, time_of};
use crate::problem::Problem;
use crate::screen::{Out, clean, say};
use crate::shown::Shown;
use crate::span::{self, Span};
use fate::Fate;
use serde_json::{Value, json};
use std::sync::mpsc;
use std::time::Duration;
use tenure::authority::Read;
use tenure::core::Token;

mod fate;

/// Ask whether this run still holds its resource: a checkpoint for a script.
///
/// It reads and never writes, and answers within a bound. A script goes on only after 0. What it wrote in between is
/// safe only at a receiver that checks the token itself: see `tenure put`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    shown: Shown,
    /// How long to wait for the authority's answer.
    #[arg(long, value_name = "SPAN", default_value = "5s", value_parser = span::parse)]
    within: Duration,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure run --resource nightly -- sh -c 'step1 && tenure check && step2'
  for file in *.csv; do tenure check --within 2s || exit; load \"$file\"; done

Exit status:
  0   owned
  69  no answer in time: treat it as lost
  75  granted, but not announced yet
  76  lost, for good";

/// How a token stands.
enum Standing {
    Owned(Holder),
    /// Granted, but its receivers are not all sealed.
    Sealing(Holder),
    Lost {
        why: String,
        holder: Option<Holder>,
        fate: Option<Fate>,
    },
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let token = match self.shown.token() {
            Ok(token) => token,
            Err(problem) => {
                if self.json && problem.exit() == Exit::Lost {
                    let lost = json!({ "owned": false, "standing": "lost", "why": problem.to_string() });
                    Out::new().json(&lost)?;
                }
                return Err(problem);
            }
        };
        match self.ask(setup, &token) {
            Ok(standing) => self.answer(&token, &standing),
            Err(problem) => {
                if self.json {
                    let why = problem.to_string();
                    Out::new().json(&said(&token, false, "unknown", &json!({ "why": why })))?;
                }
                Err(problem)
            }
        }
    }

    /// On a thread of its own, which is left behind when it hangs.
    fn ask(&self, setup: Setup, token: &Token) -> Result<Standing, Problem> {
        let (tell, told) = mpsc::channel();
        let asked = token.clone();
        let unknown = |why: &dyn std::fmt::Display| {
            format!("whether {} is still held is not known: {why}. Treat it as lost: stop here", token.resource)
        };
        let asks = move || {
            // Nobody listens any more after the bound.
            let _ = tell.send(standing(&setup, &asked));
        };
        std::thread::Builder::new()
            .spawn(asks)
            .map_err(|error| Problem::unavailable(unknown(&format_args!("no thread could be started: {error}"))))?;
        match told.recv_timeout(self.within) {
            Ok(Ok(standing)) => Ok(standing),
            Ok(Err(problem)) => Err(Problem::new(problem.exit(), unknown(&problem))),
            Err(_) => {
                let why = format!("the authority gave no answer within {}", Span(self.within));
                Err(Problem::unavailable(unknown(&why)))
            }
        }
    }

    fn answer(&self, token: &Token, standing: &Standing) -> Result<Exit, Problem> {
        let (resource, epoch) = (&token.resource, token.epoch);
        let (exit, json, text) = match standing {
            Standing::Owned(holder) => {
                let left = holder.left();
                let text = format!("owned: {resource}, epoch {epoch}, for {left} more unless it is renewed");
                (Exit::Success, said(token, true, "owned", &json!({ "holder": holder.json() })), text)
            }
            Standing::Sealing(holder) => {
                let text = format!("not yet: {resource}, epoch {epoch}: its receivers are still being sealed");
                (Exit::NotAcquired, said(token, false, "sealing", &json!({ "holder": holder.json() })), text)
            }
            Standing::Lost { why, holder, fate } => {
                let json = json!({
                    "why": why,
                    "holder": holder.as_ref().map(Holder::json),
                    "ended": fate.as_ref().map(Fate::json),
                });
                let fate = fate.as_ref().map_or_else(String::new, |fate| format!("; {fate}"));
                let text = format!("lost: {resource}, epoch {epoch}{fate}. Now: {why}. Stop here");
                (Exit::Lost, said(token, false, "lost", &json), text)
            }
        };
        if self.json {
            Out::new().json(&json)?;
        } else if exit == Exit::Success {
            Out::new().line(&clean(&text))?;
        } else {
            say("check", text);
        }
        Ok(exit)
    }
}

fn standing(setup: &Setup, token: &Token) -> Result<Standing, Problem> {
    let authority = setup.existing()?;
    let read = look(&authority, &token.resource)?;
    let holder = Holder::of(&read, time_of(&authority), &setup.who);
    let is_current = read.view.lease.as_ref().is_some_and(|lease| lease.is_current(token));
    match holder {
        Some(holder) if is_current && !holder.sealing => Ok(Standing::Owned(holder)),
        Some(holder) if is_current => Ok(Standing::Sealing(holder)),
        holder => {
            let fate = fate::of(&authority, token, &read);
            Ok(Standing::Lost { why: now(&read, holder.as_ref()), holder, fate })
        }
    }
}

fn now(read: &Read, holder: Option<&Holder>) -> String {
    holder.map_or_else(|| nobody(read), Holder::to_string)
}

/// The fields that every answer has, with those of this one.
fn said(token: &Token, owned: bool, standing: &str, more: &Value) -> Value {
    let mut said = json!({
        "resource": token.resource.as_str(),
        "epoch": token.epoch.get(),
        "owned": owned,
        "standing": standing,
    });
    if let (Some(said), Some(more)) = (said.as_object_mut(), more.as_object()) {
        said.extend(more.clone());
    }
    said
}
