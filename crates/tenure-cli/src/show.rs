mod story;

use crate::access::Access;
use crate::exit::Exit;
use crate::holder::time_of;
use crate::ls;
use crate::owner::Who;
use crate::problem::Problem;
use crate::screen::event::{About, Rows};
use crate::screen::state::{Seen, State};
use crate::screen::table::{Column, Table, mark};
use crate::screen::when::{Now, both, rfc3339};
use crate::screen::{Out, Tint, bar, clean, json, name, quoted, width};
use crate::span::Span;
use std::fmt::Write;
use tenure::authority::{Authority, Recorded};
use tenure::blocking::wait_for;
use tenure::core::ResourceName;
use tenure::core::record::{AuthorityRecord, LeaseRecord, Phase, Standing};

/// Show one resource: who holds it, since when, for how long still, its receivers, and what happened to it.
///
/// The history is a timeline with the newest step last. It tells when each epoch was granted and to whom, and how it
/// ended: released, completed, revoked by whom and why, or because its session ended.
///
/// With --json, one object: that of tenure ls, with "now", and the rows of the timeline in "history".
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The resource.
    resource: String,
    /// At most so many steps of its history, the newest ones.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    rows: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure show tenant-7
  tenure show tenant-7 --json | jq .remaining_ms

Exit status:
  0   shown
  1   the resource has never been granted here; names that are near to it are named
  69  the authority cannot be reached";

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let authority = setup.authority()?;
        let resource = ResourceName::new(&self.resource)?;
        let read = wait_for(authority.inspect(&resource))?;
        let now = Now::beside(read.now);
        let view = &read.view;
        let seen = view
            .lease
            .as_ref()
            .map(|lease| Seen::new(lease, view.holder.as_ref(), &view.authority, (read.now, time_of(&authority))));
        let ended = seen.as_ref().is_none_or(|seen| seen.standing != Standing::Valid);
        let story = story::read(&authority, &resource, self.rows, ended)?;
        let mut out = Out::new();
        match (seen, self.json) {
            (None, _) if story.is_empty() => return Err(unknown(&authority, &resource)),
            (Some(seen), true) => {
                let mut object = json::lease(&seen, &now, &setup.who);
                object["now"] = rfc3339(now.wall).into();
                object["history"] = story.iter().map(json::row).collect();
                out.json(&object)?;
            }
            (None, true) => out.json(&serde_json::json!({
                "resource": resource.as_str(),
                "state": "retired",
                "now": rfc3339(now.wall),
                "history": story.iter().map(json::row).collect::<Vec<_>>(),
            }))?,
            (seen, false) => {
                let mut text = match &seen {
                    Some(seen) => about(seen, &now),
                    None => format!("{}  {}\n", Tint::Strong.paint(&resource), Tint::Faint.paint("retired")),
                };
                text += &timeline(&story, &now, story.len() >= self.rows, &resource);
                for line in next(&resource, seen.as_ref(), &view.authority, &now) {
                    text += &format!("\n{line}\n");
                }
                out.write(&text)?;
            }
        }
        Ok(Exit::Success)
    }
}

fn unknown(authority: &Authority, resource: &ResourceName) -> Problem {
    let mut names = Vec::new();
    // That the names cannot be read is no reason not to say the rest.
    let _ = ls::each_page(authority, "", |page, _| {
        let found = name::near(resource.as_str(), page.iter().map(|row| row.lease.resource.as_str()));
        names.extend(found);
        Ok(true)
    });
    let near = name::near(resource.as_str(), names.iter().map(String::as_str));
    let near = if near.is_empty() { String::new() } else { format!("; near to it: {}", near.join(", ")) };
    Problem::new(Exit::Different, format_args!("{resource} has never been granted here{near}"))
}

/// What stands in the record.
fn about(seen: &Seen<'_>, now: &Now) -> String {
    let lease = seen.lease;
    let since = now.wall_of(lease.since);
    let mut text = format!(
        "{}  {}\n",
        Tint::Strong.paint(clean(lease.resource.as_str())),
        seen.state.tint().paint(seen.state.name())
    );
    let mut say = |what: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {what:<10}  {value}");
    };
    say("token", clean(&lease.token().to_string()));
    say(if seen.state.is_granted() { "owner" } else { "last owner" }, owner(lease));
    say("since", both(now.wall, since));
    if let Some((left, ttl)) = seen.left().filter(|_| seen.at_most) {
        let why = "renewals are known to this command only since it looked";
        say("time left", format!("at most {} of {}: {why}", Span(left), Span(ttl)));
    } else if let Some((left, ttl)) = seen.left() {
        let bar = bar::tint(left, ttl).paint(bar::bar(left, ttl, 24));
        say("time left", format!("{bar} {} of {}", Span(left), Span(ttl)));
    } else if seen.state == State::Expired {
        say("time left", Tint::Bad.paint(over(seen, now)));
    }
    match &lease.phase {
        Phase::Completed { outcome } => say("outcome", clean(outcome.as_str())),
        Phase::Retiring { cut, .. } => say("cut", format!("epochs up to {cut} will never be accepted again")),
        Phase::Free | Phase::Sealing | Phase::Held => {}
    }
    if !lease.sinks.is_empty() {
        text += "\n";
        text += &receivers(lease);
    }
    text
}

fn owner(lease: &LeaseRecord) -> String {
    let who = Who::parse(lease.owner.name.as_str());
    let process = match (who.pid, who.is_running()) {
        (None, _) => String::new(),
        (Some(pid), Some(true)) => format!(", pid {pid}, {}", Tint::Good.paint("running")),
        (Some(pid), Some(false)) => format!(", pid {pid}, {}", Tint::Bad.paint("not running any more")),
        (Some(pid), None) => format!(", pid {pid} there"),
    };
    format!("{}{process}", clean(&who.place))
}

fn over(seen: &Seen<'_>, now: &Now) -> String {
    let ended = |at| format!("since {}", both(now.wall, now.wall_of(at)));
    match (seen.standing, seen.holder) {
        (Standing::Overdue, Some(_)) if seen.at_most => "none: it was not renewed in time".to_owned(),
        (Standing::Overdue, Some(holder)) => format!("none: the deadline has passed, {}", ended(holder.deadline)),
        (Standing::Ended(why), _) => format!("none: {why}"),
        _ => "none: its session is gone".to_owned(),
    }
}

fn receivers(lease: &LeaseRecord) -> String {
    let columns = [Column::flexible("  RECEIVER"), Column::flexible("GENERATION"), Column::text("THIS GRANT")];
    let (mut table, excused) = (Table::new(width(), &columns), lease.excused());
    for (id, of) in &lease.sinks {
        let generation = of.bound.as_ref().map(|generation| clean(generation.as_str()));
        let sealed = match (of.sealed, excused.contains(id)) {
            (true, _) => mark(Tint::Good, "registered"),
            (false, true) => mark(Tint::Bad, "excused"),
            (false, false) => mark(Tint::Warn, "not registered"),
        };
        table.row(vec![format!("  {}", clean(id.as_str())), generation.unwrap_or_default(), sealed]);
    }
    table.draw()
}

fn timeline(story: &[Recorded], now: &Now, more: bool, resource: &ResourceName) -> String {
    let cut = if more { format!("  (all of it: tenure history {})", quoted(resource.as_str())) } else { String::new() };
    let story = Rows::new(About::One, width()).draw(story, now.wall);
    format!("\n{}{}\n{story}", Tint::Strong.paint("History"), Tint::Faint.paint(cut))
}

/// What an operator may want to do.
fn next(resource: &ResourceName, seen: Option<&Seen<'_>>, authority: &AuthorityRecord, now: &Now) -> Vec<String> {
    let word = quoted(resource.as_str());
    let mut lines = Vec::new();
    if let Some(left) = authority.quarantine(now.store) {
        let left = Span(left);
        lines.push(format!(
            "The authority went back in time, and is quarantined: nothing is granted for {left} more, whatever its state. \
             Let it learn meanwhile what its receivers know: tenure restore --learn-from URL --reason TEXT"
        ));
    }
    let Some(seen) = seen else {
        lines.push(format!("It was retired. A new grant begins above epoch {}.", floor(authority)));
        return lines;
    };
    let excused: Vec<_> = seen.lease.excused().iter().map(|sink| clean(sink.as_str())).collect();
    if !excused.is_empty() {
        lines.push(format!(
            "Announced without {}, by the holder's policy. Until it is sealed there, the holder is refused, and a former one \
             may still be accepted.",
            excused.join(", ")
        ));
    }
    let who = Who::parse(seen.lease.owner.name.as_str());
    let takeover = format!("tenure takeover {word} --reason TEXT");
    match (seen.state, seen.left()) {
        (State::Held | State::Sealing, Some((left, _))) if who.is_running() == Some(false) => lines.push(format!(
            "Its process is not there any more, and nobody renews it: free in {}{}. At once: {takeover}",
            if seen.at_most { "at most " } else { "" },
            Span(left)
        )),
        (State::Sealing, _) => lines.push(format!(
            "It is not announced before every receiver has it registered; missing: {}. See tenure sinks {word} ls; to take \
             the right away: {takeover}",
            missing(seen.lease)
        )),
        (State::Held, _) => lines.push(format!("To take the right away: {takeover}")),
        (State::Expired, _) => lines.push(format!(
            "Whoever asks next gets it, under epoch {}: tenure run --resource {word} -- COMMAND",
            seen.lease.epoch.next().map_or_else(|error| error.to_string(), |epoch| epoch.to_string())
        )),
        (State::Free, _) => lines.push(format!("Nobody holds it: tenure run --resource {word} -- COMMAND")),
        (State::Completed, _) => lines.push(format!("To have it done again: tenure reopen {word} --reason TEXT")),
        (State::Retiring, _) => {
            lines.push(format!("It goes when every receiver has forgotten it; to go on: tenure retire {word}"));
        }
    }
    lines
}

fn missing(lease: &LeaseRecord) -> String {
    let missing = lease.sinks.iter().filter(|(_, mark)| !mark.sealed).map(|(sink, _)| clean(sink.as_str()));
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() { "none".to_owned() } else { missing.join(", ") }
}

fn floor(authority: &AuthorityRecord) -> String {
    authority.floor.map_or_else(|| "0".to_owned(), |floor| floor.to_string())
}
