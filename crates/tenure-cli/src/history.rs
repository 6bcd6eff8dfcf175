use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::event::{About, Rows};
use crate::screen::{Out, json, say, width};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenure::authority::{Authority, HistoryQuery, Order, Recorded, WallTime};
use tenure::blocking::wait_for;
use tenure::core::ResourceName;
use tenure::core::decide::Keys;

/// Print what happened, oldest first: who was granted what, when, and how it ended.
///
/// Each step that the authority takes is a row: granted, announced, released, completed, revoked, and so on. Renewals have
/// none: nothing changes hands. Times are those of the wall clock of the machine that took the step.
///
/// With --json, one object per line and row.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Only the rows about this resource.
    resource: Option<String>,
    /// Go on with new rows as they come. Without --rows, begins with the newest ten.
    #[arg(short, long)]
    follow: bool,
    /// Only the newest so many rows. Without it, all.
    #[arg(short = 'n', long, value_name = "N")]
    rows: Option<usize>,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure history tenant-7 --rows 20
  tenure history --follow --json | jq 'select(.event == \"revoked\")'

Exit status:
  0   also when --follow is interrupted (SIGINT, SIGTERM), or when nobody reads its output any more
  69  the authority cannot be reached";

/// So many rows are read at once.
const PAGE: usize = 1_000;

/// How often --follow looks for new rows: one short read each time.
const LOOK: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 300_000_000 };

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let resource = self.resource.as_ref().map(ResourceName::new).transpose()?;
        let interrupted = Arc::new(AtomicBool::new(false));
        if self.follow {
            for signal in [SIGINT, SIGTERM] {
                signal_hook::flag::register(signal, Arc::clone(&interrupted)).map_err(Problem::failure)?;
            }
        }
        let mut reader = Reader { authority: setup.authority()?, resource, at: 0 };
        let mut list = List::new(self.json, self.follow);
        let newest = self.rows.or_else(|| self.follow.then_some(10));
        if let Some(rows) = newest {
            list.show(&reader.newest(rows)?)?;
        }
        let mut shown = reader.go_on(&mut list)?;
        while self.follow && !list.out.is_closed() && !interrupted.load(Ordering::Acquire) && is_read() {
            shown |= reader.go_on(&mut list)?;
        }
        if !shown && newest.is_none() {
            let about = reader.resource.as_ref().map(|resource| format!(" about {resource}")).unwrap_or_default();
            say("history", format_args!("the history has no row{about}"));
        }
        Ok(Exit::Success)
    }
}

/// Waits a little. Whether somebody may still read the output: a pipe says by itself when its reader has gone.
fn is_read() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    match poll(&mut fds, Some(&LOOK)) {
        Ok(_) => !fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL),
        // A signal: whether it means the end is judged elsewhere.
        Err(_) => true,
    }
}

/// Where the reading has got to.
struct Reader {
    authority: Authority,
    resource: Option<ResourceName>,
    /// Every row up to this number was looked at.
    at: u64,
}

impl Reader {
    /// The newest rows, oldest first.
    fn newest(&mut self, limit: usize) -> Result<Vec<Recorded>, Problem> {
        let head = self.head()?;
        let after = Some(head + 1);
        let query = HistoryQuery { resource: self.resource.clone(), order: Order::NewestFirst, after, limit };
        let mut rows = wait_for(self.authority.store().history(query))?;
        rows.reverse();
        self.at = head;
        Ok(rows)
    }

    /// Shows the rows that were not looked at yet. Whether there were any.
    fn go_on(&mut self, list: &mut List) -> Result<bool, Problem> {
        let head = self.head()?;
        let mut shown = false;
        while self.at < head && !list.out.is_closed() {
            let query = HistoryQuery {
                resource: self.resource.clone(),
                after: Some(self.at),
                limit: PAGE,
                ..Default::default()
            };
            let rows = wait_for(self.authority.store().history(query))?;
            // A short page has come to the end, which was at the head or is beyond it by now.
            let newest = rows.last().map_or(0, |row| row.number);
            self.at = if rows.len() < PAGE { newest.max(head) } else { newest };
            list.show(&rows)?;
            shown |= !rows.is_empty();
        }
        Ok(shown)
    }

    fn head(&self) -> Result<u64, Problem> {
        Ok(wait_for(self.authority.store().read(&Keys::default()))?.view.history)
    }
}

/// What is printed.
struct List {
    out: Out,
    /// For people.
    rows: Option<Rows>,
}

impl List {
    fn new(json: bool, follow: bool) -> Self {
        let about = if follow { About::Now } else { About::Everything };
        Self { out: Out::new(), rows: (!json).then(|| Rows::new(about, width())) }
    }

    /// Each piece is written at once, so that a reader never has half a row.
    fn show(&mut self, rows: &[Recorded]) -> Result<(), Problem> {
        let text = match &mut self.rows {
            None => rows.iter().map(|row| format!("{}\n", json::row(row))).collect(),
            Some(list) => list.draw(rows, WallTime::now()),
        };
        self.out.write(&text)
    }
}
