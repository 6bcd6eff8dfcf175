use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{Holder, look, nobody, time_of};
use crate::problem::Problem;
use crate::screen::{Out, clean};
use crate::shown::Shown;
use serde_json::json;
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Reply, Request};

/// Give a grant up by its token, so that the next one need not wait.
///
/// Repeating it is the same success. A token that is not the current one gives nothing up: its release never hits the
/// next holder.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    shown: Shown,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure release
  tenure release --token nightly-backup@41:0f3c…

Exit status:
  0   released
  69  the authority cannot be reached
  76  the token is not the current one";

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let token = self.shown.token()?;
        let authority = setup.existing()?;
        let (resource, epoch) = (&token.resource, token.epoch);
        let answer = wait_for(authority.execute(&Request::Release { token: token.clone() }))?;
        let refusal = match answer {
            Ok(Reply::Released) => {
                if self.json {
                    let said = json!({ "resource": resource.as_str(), "epoch": epoch.get(), "released": true });
                    Out::new().json(&said)?;
                } else {
                    Out::new().line(&format!("Released: {}, epoch {epoch}.", clean(resource.as_str())))?;
                }
                return Ok(Exit::Success);
            }
            Ok(_) => return Err(Problem::failure("the authority gave the answer to another question")),
            Err(refusal) => refusal,
        };
        if !matches!(refusal, Refusal::NotCurrent { .. } | Refusal::Completed { .. }) {
            return Err(Problem::failure(refusal));
        }
        let read = look(&authority, resource)?;
        let holder = Holder::of(&read, time_of(&authority), &setup.who);
        let now = holder.as_ref().map_or_else(|| nobody(&read), Holder::to_string);
        let why = format!("epoch {epoch} of {resource} is not the current grant, nothing was released: {now}");
        if self.json {
            Out::new().json(&json!({
                "resource": resource.as_str(),
                "epoch": epoch.get(),
                "released": false,
                "why": why,
                "holder": holder.as_ref().map(Holder::json),
            }))?;
        }
        Err(Problem::new(Exit::Lost, why))
    }
}
