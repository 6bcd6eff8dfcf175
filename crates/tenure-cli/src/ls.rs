use crate::access::Access;
use crate::exit::Exit;
use crate::holder::time_of;
use crate::owner::Who;
use crate::problem::Problem;
use crate::screen::state::{Seen, State};
use crate::screen::table::{Column, Table, mark};
use crate::screen::when::{Now, rfc3339, short};
use crate::screen::{Out, Tint, bar, clean, json, say, width};
use crate::span::Span;
use tenure::authority::{Authority, Listed, Page, WallTime};
use tenure::blocking::wait_for;
use tenure::core::ResourceName;
use tenure::core::decide::Keys;
use tenure::core::record::AuthorityRecord;

/// List the resources: who holds each, since when, and for how long still.
///
/// A resource is listed from its first grant until it is retired. Its state is free, sealing (granted, its receivers are
/// being sealed), held, expired (granted, but its holder's session is overdue or has ended: whoever asks next gets it),
/// completed or retiring. A store without a clock of its own (etcd) is watched for as long as a ttl before a holder counts
/// as overdue: there the time left is the most that it can be, as in "≤ 120 s". SEALED is how many of its enrolled receivers have the grant registered.
///
/// With --json, one object: "now", and in "resources" one object each. There, owner, epoch, grant, since and session are
/// those of the newest grant, whether it stands or not; state says whether it does, and holder is null unless it does.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Only resources whose names begin with it.
    prefix: Option<String>,
    /// Only those that are held, or about to be.
    #[arg(long, conflicts_with = "expired")]
    held: bool,
    /// Only those whose holder's session is overdue or has ended.
    #[arg(long)]
    expired: bool,
    /// Only those that are granted to you, on whatever process (see --owner).
    #[arg(long)]
    mine: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure ls                                what there is
  tenure ls tenant/ --expired              what begins with tenant/ and has lost its holder
  tenure ls --held --json | jq -r '.resources[].owner.name'";

/// So many resources are read at once.
const PAGE: usize = 1_000;

/// The least width with room for bars, and for both ways to say since when.
const ROOMY: usize = 100;

const COLUMNS: [Column; 7] = [
    Column::flexible("RESOURCE"),
    Column::text("STATE"),
    Column::flexible("OWNER"),
    Column::number("EPOCH"),
    Column::text("SINCE"),
    Column::text("TIME LEFT"),
    Column::text("SEALED"),
];

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let authority = setup.authority()?;
        let record = wait_for(authority.store().read(&Keys::default()))?.view.authority;
        let source = time_of(&authority);
        let mut list = List::new(self.json);
        let mut listed = 0;
        each_page(&authority, self.prefix.as_deref().unwrap_or(""), |page, now| {
            let seen = page.iter().map(|row| Seen::new(&row.lease, row.holder.as_ref(), &record, (row.now, source)));
            let wanted: Vec<_> = seen.filter(|seen| self.wants(seen, &setup.who)).collect();
            listed += wanted.len();
            list.show(&wanted, now, &setup.who)
        })?;
        list.end()?;
        if listed == 0 {
            say("ls", self.nothing(&setup.who, &record));
        }
        let now = wait_for(authority.store().read(&Keys::default()))?.now;
        if let Some(left) = record.quarantine(now) {
            say(
                "ls",
                format_args!(
                    "the authority went back in time, and is quarantined: nothing is granted for {} more. Let it learn \
                     meanwhile what its receivers know: tenure restore --learn-from URL --reason TEXT",
                    Span(left)
                ),
            );
        }
        Ok(Exit::Success)
    }

    fn wants(&self, seen: &Seen<'_>, me: &Who) -> bool {
        let is_mine = || Who::parse(seen.lease.owner.name.as_str()).place == me.place;
        (!self.held || matches!(seen.state, State::Held | State::Sealing))
            && (!self.expired || seen.state == State::Expired)
            && (!self.mine || (seen.state.is_granted() && is_mine()))
    }

    fn nothing(&self, me: &Who, record: &AuthorityRecord) -> String {
        let which = match (self.held, self.expired) {
            (true, _) => "no resource is held",
            (_, true) => "no resource has lost its holder",
            _ if self.mine => "no resource is granted",
            _ => "no resource was ever granted",
        };
        let whose = if self.mine { format!(" to {}", me.place) } else { String::new() };
        let whose = if self.mine && (self.held || self.expired) { format!(" of those granted{whose}") } else { whose };
        let beginning = self.prefix.as_ref().map(|prefix| format!(" whose name begins with {prefix:?}"));
        format!("{which}{whose}{} at {}", beginning.unwrap_or_default(), record.identity)
    }
}

/// Reads the resources whose names begin with `prefix`, page by page, until `show` says that this is enough.
pub(crate) fn each_page(
    authority: &Authority,
    prefix: &str,
    mut show: impl FnMut(&[Listed], &Now) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let mut after = before(prefix);
    loop {
        let mut page = wait_for(authority.store().leases(Page { after, limit: PAGE }))?;
        let is_last = page.len() < PAGE;
        let read = page.len();
        after = page.last().map(|row| row.lease.resource.clone());
        let begins = |row: &Listed| row.lease.resource.as_str().starts_with(prefix);
        let is_past = page.last().is_some_and(|row| !begins(row) && row.lease.resource.as_str() > prefix);
        page.retain(begins);
        if let Some(first) = page.first()
            && !show(&page, &Now::beside(first.now))?
        {
            return Ok(());
        }
        if is_last || is_past || read == 0 {
            return Ok(());
        }
    }
}

/// A name that is before all that begin with the prefix, and after nearly all others: names come in the order of their
/// letters' numbers. `None`: from the first one on.
fn before(prefix: &str) -> Option<ResourceName> {
    let mut letters = prefix.chars();
    let last = letters.next_back()?;
    let one_less = u32::from(last).checked_sub(1).and_then(char::from_u32);
    let near = one_less.and_then(|less| ResourceName::new(format!("{}{less}\u{10ffff}", letters.as_str())).ok());
    // The last letter may be the first one that a name can hold, or the prefix as long as a name can be.
    near.or_else(|| ResourceName::new(letters.as_str()).ok())
}

/// What is printed.
struct List {
    out: Out,
    form: Form,
}

enum Form {
    Table(Box<Table>),
    /// Whether the object has begun, and with it its first line.
    Json(bool),
}

impl List {
    fn new(json: bool) -> Self {
        let form = if json { Form::Json(false) } else { Form::Table(Box::new(Table::new(width(), &COLUMNS))) };
        Self { out: Out::new(), form }
    }

    /// Whether more is wanted.
    fn show(&mut self, page: &[Seen<'_>], now: &Now, me: &Who) -> Result<bool, Problem> {
        let mut text = String::new();
        match &mut self.form {
            _ if page.is_empty() => {}
            Form::Table(table) => {
                page.iter().for_each(|seen| table.row(cells(seen, now, width() >= ROOMY)));
                text = table.draw();
            }
            Form::Json(begun) => {
                for seen in page {
                    text += &if std::mem::replace(begun, true) { ",\n".to_owned() } else { head(now.wall) };
                    text += &json::lease(seen, now, me).to_string();
                }
            }
        }
        self.out.write(&text)?;
        Ok(!self.out.is_closed())
    }

    fn end(&mut self) -> Result<(), Problem> {
        match self.form {
            Form::Table(_) => Ok(()),
            Form::Json(true) => self.out.line("\n]}"),
            Form::Json(false) => self.out.line(&(head(WallTime::now()) + "]}")),
        }
    }
}

fn head(now: WallTime) -> String {
    format!("{{\"now\":\"{}\",\"resources\":[\n", rfc3339(now))
}

fn cells(seen: &Seen<'_>, now: &Now, roomy: bool) -> Vec<String> {
    let lease = seen.lease;
    let granted = seen.state.is_granted();
    let since = now.wall_of(lease.since);
    let for_so_long = Span(now.store.since(&lease.since)).to_string();
    let sealed = match lease.sinks.len() {
        0 => String::new(),
        all if granted && !lease.excused().is_empty() => {
            mark(Tint::Bad, &format!("{}/{all}, {} excused", seen.sealed(), lease.excused().len()))
        }
        all if granted => format!("{}/{all}", seen.sealed()),
        all => format!("-/{all}"),
    };
    vec![
        clean(lease.resource.as_str()),
        mark(seen.state.tint(), seen.state.name()),
        if granted { clean(lease.owner.name.as_str()) } else { String::new() },
        lease.epoch.to_string(),
        if granted {
            if roomy { format!("{} ({for_so_long})", short(now.wall, since)) } else { for_so_long }
        } else {
            String::new()
        },
        left(seen, now, roomy),
        sealed,
    ]
}

fn left(seen: &Seen<'_>, now: &Now, roomy: bool) -> String {
    match (seen.left(), seen.holder) {
        // A bar would say how much of it is gone, and that is not known.
        (Some((left, _)), _) if seen.at_most => format!("≤ {}", Span(left)),
        (Some((left, ttl)), _) if roomy => {
            format!("{} {}", mark(bar::tint(left, ttl), &bar::bar(left, ttl, 5)), Span(left))
        }
        (Some((left, ttl)), _) => mark(bar::tint(left, ttl), &Span(left).to_string()),
        (None, Some(holder)) if seen.state == State::Expired => {
            let over = now.store.since(&holder.deadline);
            let text = if over.is_zero() { "session ended".to_owned() } else { format!("over for {}", Span(over)) };
            mark(Tint::Bad, &text)
        }
        (None, None) if seen.state == State::Expired => mark(Tint::Bad, "session gone"),
        _ => String::new(),
    }
}
