use crate::access::{Access, Setup};
use crate::exit::Exit;
use crate::export::line::{Header, Line};
use crate::problem::Problem;
use crate::screen::progress::Progress;
use crate::screen::{Out, say};
use crate::span::{Span, millis};
use serde_json::json;
use std::fmt::Display;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure::authority::{Clock, Import, ImportError, Recorded, Store, StoreError, SwapOutcome, store};
use tenure::blocking::wait_for;
use tenure::core::Epoch;
use tenure::core::decide::Keys;
use tenure::core::record::LeaseRecord;

/// Take over what tenure export wrote, into an authority that has no history yet.
///
/// Everything is checked before anything is changed, and the import is one step: all of it, or nothing. The history is
/// taken over as it is. Each resource keeps its epoch, its outcome and its receivers, but nobody holds it: the next holder
/// seals the receivers anew. Nothing is granted for as long as a holder of the old authority may still believe, which is
/// the longest ttl that was live at the export.
///
/// So epochs never go back, no receiver is forgotten, and no old holder is overtaken, provided that the old authority is
/// stopped, and was so before the export: what it grants later, the new one does not know.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The file; - is the standard input.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Check everything, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object about what was done.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure import archive.jsonl --authority 'sqlite:/srv/tenure.db?create=true'
  zcat archive.jsonl.gz | tenure import --dry-run
  tenure export --authority sqlite:/srv/tenure.db |
    TENURE_AUTHORITY='postgres://tenure:PASSWORD@db1/jobs?create=true' tenure import

Exit status:
  0   imported, or with --dry-run: it could be
  64  the file cannot be read
  65  the authority has a history already, or the file does not fit together; nothing was changed
  69  the authority cannot be reached";

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let content = self.content(&setup)?;
        let identity = if self.dry_run {
            match target(&setup)? {
                Some(store) => Some(empty(&*store, None)?),
                None => None,
            }
        } else {
            let authority = setup.authority()?;
            let store = authority.store();
            let identity = empty(&**store, None)?;
            let progress = Progress::of_one_step("writing", content.rows().len() as u64);
            let made = wait_for(store.import(content.clone()))?;
            drop(progress);
            match made {
                SwapOutcome::Done => Some(identity),
                SwapOutcome::Changed => Some(empty(&**store, Some("somebody used it in this moment"))?),
                SwapOutcome::Unknown => {
                    return Err(Problem::unavailable(
                        "the store did not say whether the import was made: look with tenure history. It has all rows or \
                         none; if none, import again",
                    ));
                }
            }
        };
        self.tell(&content, identity.as_deref())
    }

    /// What the file holds, checked.
    fn content(&self, setup: &Setup) -> Result<Import, Problem> {
        let (input, name): (Box<dyn BufRead>, String) = if self.file.as_os_str() == "-" {
            if std::io::stdin().is_terminal() {
                say("import", "reading an export from the terminal; give a FILE otherwise");
            }
            (Box::new(std::io::stdin().lock()), "the standard input".to_owned())
        } else {
            (Box::new(BufReader::new(open(&self.file)?)), self.file.display().to_string())
        };
        let mut reader = Reader { input, name, line: 0, progress: None };
        let header = reader.header()?;
        let (rows, leases) = reader.content(&header)?;
        let source = header.source().map_err(|why| reader.wrong(1, why))?;
        Import::new(source, rows, leases, setup.actor()?).map_err(|error| reader.wrong(place(&error, &header), error))
    }

    fn tell(&self, content: &Import, identity: Option<&str>) -> Result<Exit, Problem> {
        let source = content.source();
        let resources = content.leases(tenure::core::Instant::from_nanos(0)).count();
        if self.json {
            let object = json!({
                "store": identity,
                "from": source.identity.as_str(),
                "incarnation": source.incarnation + 1,
                "floor": source.floor.map(Epoch::get),
                "rows": content.rows().len(),
                "resources": resources,
                "quarantine_ms": source.belief.map(millis),
                "dry_run": self.dry_run,
            });
            Out::new().json(&object)?;
            return Ok(Exit::Success);
        }
        let what = format!("{} rows and {resources} resources of {}", content.rows().len(), source.identity);
        let wait = match source.belief {
            Some(belief) => {
                format!("nothing is granted for {}, in which its last holders stop believing", Span(belief))
            }
            None => "nobody held anything, so grants may begin at once".to_owned(),
        };
        let (done, whom) = (if self.dry_run { "would import" } else { "imported" }, identity);
        say("import", format_args!("{done} {what} into {}; {wait}", whom.unwrap_or("a new store")));
        Ok(Exit::Success)
    }
}

/// The store that a dry run looks at; `None` when it would be made.
fn target(setup: &Setup) -> Result<Option<Arc<dyn Store>>, Problem> {
    let opened = store::connect(&setup.shared_url(), Clock::from_env()?);
    // A store on a network is looked for when it is first asked.
    match opened.and_then(|store| wait_for(store.read(&Keys::default())).map(|_| store)) {
        Ok(store) => Ok(Some(store)),
        Err(StoreError::Missing(_)) if setup.url != setup.shared_url() && setup.url.contains("create=true") => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The store's identity, if its history is empty.
fn empty(store: &dyn Store, otherwise: Option<&str>) -> Result<String, Problem> {
    let view = wait_for(store.read(&Keys::default()))?.view;
    if view.history == 0 && otherwise.is_none() {
        return Ok(view.authority.identity.to_string());
    }
    let why = otherwise.map(|why| format!(" ({why})")).unwrap_or_default();
    Err(Problem::new(
        Exit::Conflict,
        format_args!(
            "{} has a history of {} rows already{why}: import into a new authority. Nothing was changed",
            view.authority.identity, view.history
        ),
    ))
}

fn open(path: &Path) -> Result<std::fs::File, Problem> {
    std::fs::File::open(path)
        .map_err(|error| Problem::usage(format_args!("{} cannot be read: {error}", path.display())))
}

/// The line on which what does not fit stands.
fn place(error: &ImportError, header: &Header) -> u64 {
    match error {
        ImportError::Incarnation(_) | ImportError::Belief { .. } => 1,
        ImportError::Number { at, .. } | ImportError::Absent { at, .. } => 2 + *at as u64,
        ImportError::Twice { at, .. } | ImportError::Behind { at, .. } => 2 + header.rows + *at as u64,
    }
}

/// Reads an export line by line.
struct Reader {
    input: Box<dyn BufRead>,
    name: String,
    /// The number of the last line that was read.
    line: u64,
    progress: Option<Progress>,
}

impl Reader {
    fn wrong(&self, line: u64, why: impl Display) -> Problem {
        let name = &self.name;
        Problem::new(Exit::Conflict, format_args!("{name}, line {line}: {why}. Nothing was changed"))
    }

    /// The next line; `None` at the end.
    fn next(&mut self) -> Result<Option<Line>, Problem> {
        let mut bytes = Vec::new();
        let read = self.input.read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| Problem::failure(format_args!("{} cannot be read: {error}", self.name)))?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        let line = serde_json::from_slice(&bytes).map_err(|error| self.wrong(self.line, unread(&error)))?;
        if let Some(progress) = &mut self.progress {
            progress.at(self.line);
        }
        Ok(Some(line))
    }

    fn header(&mut self) -> Result<Header, Problem> {
        let none = "an export begins with a line that says {\"kind\":\"export\",…}";
        match self.next()? {
            Some(Line::Export(header)) => {
                header.source().map_err(|why| self.wrong(1, why))?;
                let lines = header.rows.saturating_add(header.resources).saturating_add(1);
                self.progress = Some(Progress::new("reading", lines));
                Ok(header)
            }
            Some(_) => Err(self.wrong(1, none)),
            None => Err(self.wrong(1, format_args!("it is empty; {none}"))),
        }
    }

    /// As many rows and resources as the header says, and nothing else.
    fn content(&mut self, header: &Header) -> Result<(Vec<Recorded>, Vec<LeaseRecord>), Problem> {
        let (mut rows, mut leases) = (Vec::new(), Vec::<LeaseRecord>::new());
        let mut number = 0;
        while let Some(line) = self.next()? {
            let misplaced = |what: &str| {
                Err(self.wrong(
                    self.line,
                    format_args!(
                        "{what} is too many here: the first line says {} rows, then {} resources",
                        header.rows, header.resources
                    ),
                ))
            };
            match line {
                Line::Row(row) if number < header.rows => {
                    rows.push(row.recorded().map_err(|why| self.wrong(self.line, why))?);
                    number += 1;
                }
                Line::Resource(resource) if number == header.rows && (leases.len() as u64) < header.resources => {
                    let lease = resource.lease().map_err(|why| self.wrong(self.line, why))?;
                    leases.push(lease);
                }
                Line::Row(_) => return misplaced("a row"),
                Line::Resource(_) if number < header.rows => {
                    let why = format!("a resource after {number} of {} rows: some are missing", header.rows);
                    return Err(self.wrong(self.line, why));
                }
                Line::Resource(_) => return misplaced("a resource"),
                Line::Export(_) => return Err(self.wrong(self.line, "a second export begins here")),
            }
        }
        if number < header.rows || (leases.len() as u64) < header.resources {
            let why = format!(
                "it ends here, with {number} of {} rows and {} of {} resources: the rest is missing",
                header.rows,
                leases.len(),
                header.resources
            );
            return Err(self.wrong(self.line, why));
        }
        Ok((rows, leases))
    }
}

/// What is wrong with a line, without the line number that a parser of many lines would give.
fn unread(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    if error.is_eof() { format!("it is cut off ({text})") } else { text.to_owned() }
}
