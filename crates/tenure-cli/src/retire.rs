use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{Holder, look, standing, time_of};
use crate::problem::Problem;
use crate::receivers::{Reached, Receivers};
use crate::screen::{Out, clean, quoted, say};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tenure::authority::Authority;
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::fence::Forgetting;
use tenure::core::record::Standing;
use tenure::core::{Epoch, ResourceName, SinkId};

/// Forget a resource: first at each of its receivers, then at the authority.
///
/// From the first step on nobody can acquire it, and no step lets an old token in again. When a receiver cannot be
/// reached, the retirement stays as it is: repeat the command when it can be, or take the receiver out with
/// `tenure sinks RESOURCE remove`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The resource.
    resource: ResourceName,
    #[command(flatten)]
    receivers: Receivers,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure retire import-2025
  tenure retire import-2025 --sink 'sqlite:/srv/shop.db?id=shop'

Exit status:
  0   gone
  69  the authority, or a receiver, cannot be reached
  75  somebody holds it";

/// How a retirement stands after every receiver was tried.
enum Progress {
    Gone,
    Waiting { cut: Epoch, unreached: BTreeMap<SinkId, String> },
}

/// How often the cut may rise: each time a receiver has shown a higher epoch.
const CUTS_MAX: usize = 64;

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let reached = self.receivers.reach()?;
        let authority = setup.existing()?;
        let resource = &self.resource;
        let known = look(&authority, resource)?.view.lease.is_some();
        let retire = Request::Retire { resource: resource.clone(), actor: setup.actor()? };
        let begun = match wait_for(authority.execute(&retire))? {
            // The deadline has passed, and nobody has ended the session yet.
            Err(Refusal::WrongPhase { .. }) if self.end_overdue(&authority)? => wait_for(authority.execute(&retire))?,
            begun => begun,
        };
        let begun = match begun {
            Err(refusal @ Refusal::WrongPhase { .. }) => {
                let read = look(&authority, resource)?;
                let why = Holder::of(&read, time_of(&authority), &setup.who)
                    .map_or_else(|| refusal.to_string(), |holder| holder.to_string());
                return Err(Problem::new(
                    Exit::NotAcquired,
                    format_args!(
                        "nothing was retired: {why}. Wait, or take it over first: tenure takeover {} --reason TEXT",
                        quoted(resource.as_str())
                    ),
                ));
            }
            begun => begun.map_err(Problem::failure)?,
        };
        match self.drive(&authority, &reached, &retire, begun)? {
            Progress::Gone => {
                let (mut out, name) = (Out::new(), clean(resource.as_str()));
                if self.json {
                    out.json(&json!({ "resource": resource.as_str(), "retired": true, "was_known": known }))?;
                } else if known {
                    out.line(&format!("Gone: {name}. Tokens from before stay refused."))?;
                } else {
                    out.line(&format!("There is no {name}: nobody ever held it, or it was retired before."))?;
                }
                Ok(Exit::Success)
            }
            Progress::Waiting { cut, unreached } => {
                if self.json {
                    let unreached: BTreeMap<_, _> = unreached.iter().map(|(id, why)| (id.as_str(), why)).collect();
                    let answer = json!({
                        "resource": resource.as_str(), "retired": false, "cut": cut.get(), "unreached": unreached,
                    });
                    Out::new().json(&answer)?;
                }
                let names: Vec<_> = unreached.iter().map(|(id, why)| format!("{id}: {why}")).collect();
                Err(Problem::unavailable(format_args!(
                    "{resource} stays on its way to be forgotten (at epoch {cut}), and nobody can acquire it: {}. Repeat \
                     the command once that works, or take a receiver out that is gone for good: tenure sinks {} remove \
                     ID --unreachable --reason TEXT",
                    names.join("; "),
                    quoted(resource.as_str())
                )))
            }
        }
    }

    /// Ends the session of a holder whose deadline has passed.
    fn end_overdue(&self, authority: &Authority) -> Result<bool, Problem> {
        let read = look(authority, &self.resource)?;
        match &read.view.holder {
            Some(session) if standing(&read) == Standing::Overdue => {
                let ended = wait_for(authority.execute(&Request::Sweep { id: session.id }))?;
                Ok(ended.is_ok())
            }
            _ => Ok(false),
        }
    }

    fn drive(
        &self,
        authority: &Authority,
        reached: &Reached,
        retire: &Request,
        begun: Reply,
    ) -> Result<Progress, Problem> {
        let mut reply = begun;
        for _ in 0..CUTS_MAX {
            let (cut, waiting) = match reply {
                Reply::Retired => return Ok(Progress::Gone),
                Reply::Retiring { cut, waiting } => (cut, waiting),
                other => return Err(Problem::failure(format_args!("the authority answered {other:?}"))),
            };
            let mut unreached = BTreeMap::new();
            let mut next = None;
            for id in &waiting {
                let request = match self.forget(reached, id, cut) {
                    Ok(request) => request,
                    Err(why) => {
                        say("retire", format_args!("not reached: {id}"));
                        unreached.insert(id.clone(), why);
                        continue;
                    }
                };
                let raised = matches!(request, Request::ForgetRefused { .. });
                let told = match wait_for(authority.execute(&request))? {
                    Ok(reply) => reply,
                    // Somebody else drives the same retirement.
                    Err(Refusal::OldCut { .. }) => wait_for(authority.execute(retire))?.map_err(Problem::failure)?,
                    Err(refusal) => return Err(Problem::failure(refusal)),
                };
                let moved = !matches!(&told, Reply::Retiring { cut: present, .. } if *present == cut);
                if raised {
                    say("retire", format_args!("{id} has a higher epoch: every receiver forgets again"));
                } else {
                    say("retire", format_args!("forgotten at {id} (up to epoch {cut})"));
                }
                next = Some(told);
                if moved {
                    break;
                }
            }
            match next {
                Some(told) if !is_only(&told, cut, &unreached) => reply = told,
                _ => return Ok(Progress::Waiting { cut, unreached }),
            }
        }
        Err(Problem::unavailable("the receivers' epochs keep rising: stop whoever writes there, and try again"))
    }

    /// Forgets at one receiver, and says what to report.
    fn forget(&self, reached: &Reached, id: &SinkId, cut: Epoch) -> Result<Request, String> {
        let sink = reached.find(id)?;
        let resource = self.resource.clone();
        match wait_for(sink.forget(&resource, cut)) {
            Ok(Forgetting::Forget { .. }) => Ok(Request::Forgotten { resource, cut, sink: id.clone() }),
            Ok(Forgetting::Above { epoch, .. }) => Ok(Request::ForgetRefused { resource, cut, row: epoch }),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Whether nothing is left but what could not be reached.
fn is_only(reply: &Reply, tried: Epoch, unreached: &BTreeMap<SinkId, String>) -> bool {
    match reply {
        Reply::Retiring { cut, waiting } => {
            let unreached: BTreeSet<_> = unreached.keys().cloned().collect();
            *cut == tried && *waiting == unreached
        }
        _ => false,
    }
}
