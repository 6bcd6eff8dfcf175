use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::reason;
use crate::screen::when::{Now, both, rfc3339};
use crate::screen::{Out, clean, say};
use crate::span::{self, Span, millis};
use lessons::{Lesson, Teacher};
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::time::Duration;
use tenure::authority::Authority;
use tenure::blocking::wait_for;
use tenure::core::decide::{Keys, Reply, Request};
use tenure::core::{Actor, Reason, Ttl};

mod lessons;

/// Say that the authority's store was put back, and let it learn from the receivers what it has forgotten.
///
/// After a backup was put back, or a replica was promoted that lacks the newest grants, the authority would grant again
/// what somebody holds already. It mostly notices that by itself. This says it in any case: every session ends, and nothing
/// is granted for as long as a holder of what was lost may still believe. In a quarantine that lasts already, there is
/// nothing more to say, and it stays as it is.
///
/// The receivers remember what the store has forgotten. With --learn-from it raises the epochs, the enrolments and the
/// floor to what they know. It lowers nothing, and may be repeated. Name every receiver: what is not learnt now is learnt
/// by the next holder of each resource, which is then refused once.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The address of a receiver to learn from, such as file:/srv/out or sqlite:/srv/shop.db?id=shop. May be given more
    /// than once.
    #[arg(long, value_name = "URL")]
    learn_from: Vec<String>,
    /// Only learn: the store was not put back, or all that follows from it is done.
    #[arg(long, requires = "learn_from")]
    learn_only: bool,
    /// Show what would be learnt, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// What was put back and why, for the history.
    #[arg(long, value_name = "TEXT", value_parser = reason::parse, required_unless_present_any = ["learn_only", "dry_run"])]
    reason: Option<Reason>,
    /// No worker was given a longer ttl than this: the quarantine lasts no longer. Without it, it lasts for the longest ttl
    /// that the authority allows. Say it only if you know it.
    #[arg(long, value_name = "SPAN", value_parser = span::parse, conflicts_with_all = ["learn_only", "dry_run"])]
    longest_ttl: Option<Duration>,
    /// Do not ask whether every session is to end.
    #[arg(long, short)]
    yes: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure restore --reason 'the backup of Monday, the disk is gone' \\
    --learn-from file:/srv/out --learn-from 'sqlite:/srv/shop.db?id=shop'
  tenure restore --reason 'replica b was promoted' --longest-ttl 2m
  tenure restore --dry-run --learn-from file:/srv/out
  tenure restore --learn-only --learn-from file:/mnt/other/out

Exit status:
  0   done, also when there was nothing new to learn
  69  the authority, or a receiver, cannot be reached; what the others know is learnt
  75  something was not learnt, because somebody holds the resource";

/// How the authority stands afterwards.
struct Standing {
    incarnation: u64,
    quarantine: Option<Duration>,
    /// Whether this command began the quarantine.
    declared: bool,
    now: Now,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let (authority, actor) = (setup.existing()?, setup.actor()?);
        let standing = self.declare(&authority, &actor)?;
        if !self.json {
            self.tell(&standing)?;
        }
        let teacher = Teacher { authority: &authority, actor: &actor, dry_run: self.dry_run };
        let mut lessons = Vec::new();
        let mut unread = Vec::new();
        for url in &self.learn_from {
            let learnt = lessons.len();
            if let Err(why) = teacher.learn_from(url, &mut lessons) {
                say("restore", format_args!("not learnt from {url}: {why}"));
                unread.push(json!({ "receiver": url, "why": why.to_string() }));
            } else if !self.json {
                self.tell_lessons(url, lessons.get(learnt..).unwrap_or_default())?;
            }
        }
        let held = lessons.iter().filter(|lesson| lesson.held.is_some()).count();
        if self.json {
            Out::new().json(&self.object(&standing, &lessons, &unread))?;
        }
        Ok(match (unread.is_empty(), held) {
            (false, _) => Exit::Unavailable,
            (true, 0) => Exit::Success,
            (true, _) => Exit::NotAcquired,
        })
    }

    /// Says that the store was put back, unless it is known or is not to be said.
    fn declare(&self, authority: &Authority, actor: &Actor) -> Result<Standing, Problem> {
        let read = wait_for(authority.store().read(&Keys::default()))?;
        let record = &read.view.authority;
        let (now, quarantine) = (Now::beside(read.now), record.quarantine(read.now));
        let standing = Standing { incarnation: record.incarnation, quarantine, declared: false, now };
        let Some(reason) = self.reason.clone().filter(|_| !self.dry_run && !self.learn_only && quarantine.is_none())
        else {
            return Ok(standing);
        };
        let longest_ttl = self.longest_ttl.map(Ttl::new).transpose().map_err(Problem::usage)?;
        self.ask(longest_ttl.unwrap_or(record.max_ttl).min(record.max_ttl).get())?;
        match wait_for(authority.execute(&Request::Restore { longest_ttl, actor: actor.clone(), reason }))? {
            Ok(Reply::Restored { incarnation, remaining }) => {
                Ok(Standing { incarnation, quarantine: Some(remaining), declared: true, now })
            }
            Ok(other) => Err(Problem::failure(format_args!("the authority answered {other:?}"))),
            Err(refusal) => Err(Problem::failure(refusal)),
        }
    }

    fn ask(&self, span: Duration) -> Result<(), Problem> {
        if self.yes {
            return Ok(());
        }
        let what = format!("every session ends, and nothing is granted for {}", Span(span));
        if !std::io::stdin().is_terminal() {
            return Err(Problem::usage(format_args!("{what}: say --yes if that is meant")));
        }
        say("restore", format_args!("{what}. Go on? [y/N]"));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map_err(Problem::failure)?;
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            return Ok(());
        }
        Err(Problem::usage("nothing was changed"))
    }

    fn tell(&self, standing: &Standing) -> Result<(), Problem> {
        let mut out = Out::new();
        let incarnation = standing.incarnation;
        match standing.quarantine {
            Some(left) => {
                let until = standing.now.wall_of(standing.now.store.after(left));
                let begun = if standing.declared { "Quarantined" } else { "In quarantine already" };
                let until = both(standing.now.wall, until);
                out.line(&format!(
                    "{begun}: every session from before has ended, and nothing is granted until {until}."
                ))?;
                out.line(&format!(
                    "Incarnation {incarnation}. Learn meanwhile what the receivers know: --learn-from URL."
                ))
            }
            None if self.dry_run => out.line("Not in quarantine: without --dry-run it would be now."),
            None => out.line(&format!("Not in quarantine; incarnation {incarnation}.")),
        }
    }

    fn tell_lessons(&self, url: &str, lessons: &[Lesson]) -> Result<(), Problem> {
        let mut out = Out::new();
        let learnt = lessons.iter().filter(|lesson| lesson.held.is_none()).count();
        let would = if self.dry_run { "Would learn" } else { "Learnt" };
        match learnt {
            0 => out.line(&format!("Nothing new from {}.", clean(url)))?,
            _ => out.line(&format!("{would} from {}:", clean(url)))?,
        }
        for lesson in lessons {
            match &lesson.held {
                None => out.line(&format!("  {}", clean(&lesson.to_string())))?,
                Some(why) => say("restore", format_args!("not learnt, {lesson}: {why}")),
            }
        }
        Ok(())
    }

    fn object(&self, standing: &Standing, lessons: &[Lesson], unread: &[Value]) -> Value {
        let until = |left: Duration| rfc3339(standing.now.wall_of(standing.now.store.after(left)));
        let (learnt, held): (Vec<_>, Vec<_>) = lessons.iter().partition(|lesson| lesson.held.is_none());
        json!({
            "incarnation": standing.incarnation,
            "declared": standing.declared,
            "quarantine_ms": standing.quarantine.map(millis),
            "quarantined_until": standing.quarantine.map(until),
            "learnt": learnt.iter().map(|lesson| lesson.json()).collect::<Vec<_>>(),
            "held": held.iter().map(|lesson| lesson.json()).collect::<Vec<_>>(),
            "unread": unread,
            "dry_run": self.dry_run,
        })
    }
}
