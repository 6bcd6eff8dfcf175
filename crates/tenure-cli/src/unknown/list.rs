use super::{Found, Ledgers, Named, tint};
use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::table::{Column, Table, mark};
use crate::screen::when::rfc3339;
use crate::screen::{Out, clean, say, width};
use crate::span::Span;
use std::time::Duration;
use tenure::authority::WallTime;
use tenure::blocking::wait_for;
use tenure::core::ResourceName;
use tenure::sink::ledger::Which;

/// List the calls that nobody knows about: whose they are, where they went, and for how long that is so.
///
/// With --json, one object: "now", and in "attempts" one object each.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    ledgers: Ledgers,
    /// Only those that were made under this resource.
    #[arg(long, value_name = "NAME")]
    resource: Option<ResourceName>,
    /// Also those that are not over yet: written down, or marked as sent, by a holder that may still be at work.
    #[arg(long, conflicts_with = "all")]
    open: bool,
    /// All of them, also those that are known.
    #[arg(long)]
    all: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure unknown ls --sink sqlite:/srv/shop.db
  tenure unknown ls --sink shop=sqlite:/srv/shop.db --sink depot=sqlite:/srv/depot.db --json

Exit status:
  0   listed, also when there are none
  69  a receiver cannot be reached, or has no ledger";

/// So many attempts are read at once.
const PAGE: usize = 1_000;

const COLUMNS: [Column; 8] = [
    // It is copied into the next command, and so stays in one piece.
    Column::text("OPERATION"),
    Column::text("STATE"),
    Column::text("FOR"),
    Column::flexible("SYSTEM"),
    Column::flexible("OWNER"),
    Column::flexible("RESOURCE"),
    Column::number("EPOCH"),
    Column::flexible("RECEIVER"),
];

impl Args {
    pub(super) fn run(&self) -> Result<Exit, Problem> {
        self.access.who()?;
        let places = self.ledgers.open()?;
        let now = WallTime::now();
        let mut list = List { out: Out::new(), table: Table::new(width(), &COLUMNS), begun: false, json: self.json };
        for place in &places {
            self.each_page(place, |page| list.show(&page, now))?;
        }
        list.end(now)?;
        if !list.begun {
            let names: Vec<_> = places.iter().map(|place| place.name.as_str()).collect();
            let what = match (self.all, self.open) {
                (true, _) => "no call was ever written down",
                (_, true) => "no call is open",
                _ => "nothing is unknown",
            };
            let of = self.resource.as_ref().map(|resource| format!(" of {resource}")).unwrap_or_default();
            say("unknown", format_args!("{what}{of} at {}", names.join(", ")));
        }
        Ok(Exit::Success)
    }

    fn each_page<'a>(
        &self,
        place: &'a Named,
        mut show: impl FnMut(Vec<Found<'a>>) -> Result<bool, Problem>,
    ) -> Result<(), Problem> {
        let which = match (self.all, self.open) {
            (true, _) => Which::All,
            (_, true) => Which::Open,
            _ => Which::Unknown,
        };
        let mut after = None;
        loop {
            let page = wait_for(place.ledger.list(which, self.resource.as_ref(), after.as_ref(), PAGE))?;
            let is_last = page.len() < PAGE;
            after = page.last().map(|last| last.key.clone());
            if !show(page.into_iter().map(|attempt| Found { place, attempt }).collect())? || is_last {
                return Ok(());
            }
        }
    }
}

/// What is printed, page by page.
struct List {
    out: Out,
    table: Table,
    /// Whether there was one.
    begun: bool,
    json: bool,
}

impl List {
    /// Whether more is wanted.
    fn show(&mut self, page: &[Found<'_>], now: WallTime) -> Result<bool, Problem> {
        let mut text = String::new();
        for found in page {
            let first = !std::mem::replace(&mut self.begun, true);
            if self.json {
                text += &if first { head(now) } else { ",\n".to_owned() };
                text += &found.json(now).to_string();
            } else {
                self.table.row(cells(found));
            }
        }
        if !self.json && self.begun {
            text = self.table.draw();
        }
        self.out.write(&text)?;
        Ok(!self.out.is_closed())
    }

    fn end(&mut self, now: WallTime) -> Result<(), Problem> {
        match (self.json, self.begun) {
            (false, _) => Ok(()),
            (true, true) => self.out.line("\n]}"),
            (true, false) => self.out.line(&(head(now) + "]}")),
        }
    }
}

fn head(now: WallTime) -> String {
    format!("{{\"now\":\"{}\",\"attempts\":[\n", rfc3339(now))
}

fn cells(found: &Found<'_>) -> Vec<String> {
    let attempt = &found.attempt;
    vec![
        clean(attempt.key.operation.as_str()),
        mark(tint(attempt.state), attempt.state.name()),
        Span(Duration::from_millis(attempt.age_ms)).to_string(),
        clean(attempt.system.as_str()),
        clean(attempt.owner.as_str()),
        clean(attempt.key.resource.as_str()),
        attempt.key.epoch.to_string(),
        clean(&found.place.name),
    ]
}
