use crate::access::Access;
use crate::exit::Exit;
use crate::holder::{look, nobody};
use crate::problem::Problem;
use crate::receivers::Receivers;
use crate::screen::table::{Column, Table, mark};
use crate::screen::{Out, Tint, clean, say, width};
use serde_json::{Value, json};
use tenure::blocking::wait_for;
use tenure::core::record::{LeaseRecord, SinkMark};
use tenure::core::{ResourceName, SinkId};
use tenure::sink::Description;

/// List the receivers of a resource: what the authority knows, and what each says itself where it can be reached.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
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
  tenure sinks nightly-backup ls
  tenure sinks nightly-backup ls --sink 'sqlite:/srv/shop.db?id=shop' --json

Exit status:
  0   listed, also when a receiver cannot be reached
  1   there is no such resource
  69  the authority cannot be reached";

const COLUMNS: [Column; 3] = [Column::flexible("RECEIVER"), Column::text("SEALED"), Column::flexible("IT SAYS ITSELF")];

/// One receiver, seen from both sides.
struct Row<'a> {
    id: &'a SinkId,
    mark: &'a SinkMark,
    there: Result<Description, String>,
}

impl Args {
    pub(super) fn run(&self, resource: &ResourceName) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let read = look(&setup.existing()?, resource)?;
        let Some(lease) = &read.view.lease else {
            return Err(Problem::new(Exit::Different, format_args!("there is no {resource}: {}", nobody(&read))));
        };
        let reached = self.receivers.reach()?;
        let rows = lease.sinks.iter().map(|(id, mark)| {
            let described =
                reached.find(id).and_then(|sink| wait_for(sink.describe(resource)).map_err(|error| error.to_string()));
            Row { id, mark, there: described }
        });
        let rows: Vec<_> = rows.collect();
        if self.json {
            let rows: Vec<_> = rows.iter().map(|row| row.json(lease)).collect();
            Out::new().json(&json!({
                "resource": resource.as_str(),
                "phase": lease.phase.name(),
                "epoch": lease.epoch.get(),
                "receivers": rows,
            }))?;
            return Ok(Exit::Success);
        }
        if rows.is_empty() {
            say("sinks", format_args!("{resource} has no receivers"));
            return Ok(Exit::Success);
        }
        let mut table = Table::new(width(), &COLUMNS);
        for row in &rows {
            let (sealed, tint) = row.sealed(lease);
            table.row(vec![clean(row.id.as_str()), mark(tint, sealed), clean(&row.says(lease))]);
        }
        Out::new().write(&table.draw())?;
        Ok(Exit::Success)
    }
}

impl Row<'_> {
    /// What the authority knows.
    fn sealed(&self, lease: &LeaseRecord) -> (&'static str, Tint) {
        match (lease.is_granted(), self.mark.sealed, &self.mark.bound) {
            (true, false, _) if self.mark.excused => ("excused", Tint::Bad),
            (false, _, _) => ("-", Tint::Faint),
            (true, true, _) => ("sealed", Tint::Good),
            (true, false, Some(_)) => ("bound", Tint::Warn),
            (true, false, None) => ("unsealed", Tint::Warn),
        }
    }

    /// How its own row stands to the authority's newest grant; a word for machines.
    fn agreement(&self, lease: &LeaseRecord) -> &'static str {
        let Ok(there) = &self.there else { return "unreached" };
        let Some(row) = &there.row else { return "empty" };
        match row.epoch.cmp(&lease.epoch) {
            _ if row.generation != there.generation => "reopened",
            std::cmp::Ordering::Less => "behind",
            std::cmp::Ordering::Greater => "ahead",
            std::cmp::Ordering::Equal if row.grant == lease.grant => "same",
            std::cmp::Ordering::Equal => "conflict",
        }
    }

    fn says(&self, lease: &LeaseRecord) -> String {
        let there = match &self.there {
            Ok(there) => there,
            Err(why) => return format!("not reached: {why}"),
        };
        let epoch = there.row.as_ref().map_or_else(String::new, |row| row.epoch.to_string());
        match self.agreement(lease) {
            "same" => format!("has epoch {epoch}, as the authority"),
            "behind" => {
                format!("has epoch {epoch}, the authority {}: the newest grant was not sealed there", lease.epoch)
            }
            "ahead" => format!(
                "has epoch {epoch}, above the authority's {}: another authority uses it, or this one was restored",
                lease.epoch
            ),
            "conflict" => format!("has epoch {epoch} with another grant: another authority uses it"),
            "reopened" => format!("was reopened since epoch {epoch} was sealed: it accepts nothing until it is sealed"),
            _ => match there.floor {
                Some(floor) => format!("has no row; forgotten up to epoch {floor}"),
                None => "has no row: nothing was ever sealed there".to_owned(),
            },
        }
    }

    fn json(&self, lease: &LeaseRecord) -> Value {
        let there = self.there.as_ref().ok();
        let row = there.and_then(|there| there.row.as_ref());
        json!({
            "id": self.id.as_str(),
            "bound": self.mark.bound.as_ref().map(|generation| generation.as_str()),
            "sealed": lease.is_granted() && self.mark.sealed,
            "excused": lease.is_granted() && self.mark.excused,
            "agreement": self.agreement(lease),
            "there": there.map(|there| json!({
                "generation": there.generation.as_str(),
                "epoch": row.map(|row| row.epoch.get()),
                "grant": row.map(|row| row.grant.to_string()),
                "sealed_in": row.map(|row| row.generation.as_str()),
                "floor": there.floor.map(|floor| floor.get()),
            })),
            "unreached": self.there.as_ref().err(),
        })
    }
}
