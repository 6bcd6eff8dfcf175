//! A store's whole content as lines of JSON.

pub(crate) mod line;

use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::progress::Progress;
use crate::screen::when::Now;
use crate::screen::{Out, say};
use line::{Header, Line, Resource, Row};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use tenure::authority::{Authority, HistoryQuery, Listed, Page, Read};
use tenure::blocking::wait_for;
use tenure::core::decide::Keys;
use tenure::core::record::{SessionRecord, Standing};

/// Write the history and the resources as JSON lines, for an archive or for another authority.
///
/// The first line says which store it was, its incarnation, its floor, and how many lines follow; then comes every row of
/// the history, oldest first, and then every resource. A file appears under its name only once it is whole; one that was
/// there is replaced.
///
/// To move an authority to another place, first stop everything that uses it, then export, then tenure import. What the
/// old authority still grants after its export is unknown to the new one, which may then grant the same epoch to somebody
/// else.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The file; - is the standard output.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure export archive.jsonl
  tenure export | gzip > archive.jsonl.gz";

/// So many rows are read at once.
const PAGE: usize = 5_000;

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let authority = self.access.setup()?.authority()?;
        let mut target = Target::open(&self.file)?;
        let content = Content::read(&authority)?;
        content.write(&authority, &mut target)?;
        target.finish()?;
        if content.steps > 0 {
            say(
                "export",
                format_args!(
                    "the authority was in use meanwhile: {} steps came after the last exported row. Before it moves to \
                     another place, stop what uses it and export again",
                    content.steps
                ),
            );
        }
        Ok(Exit::Success)
    }
}

/// What is exported. The resources are as they stood at one moment; the history goes up to a moment before it, and floor
/// and incarnation are of one after it. So whatever was granted up to the last row is covered by a resource's record or by
/// the floor, also when the authority was in use.
struct Content {
    header: Header,
    listed: Vec<Listed>,
    /// How many steps were taken while it was read.
    steps: u64,
}

impl Content {
    fn read(authority: &Authority) -> Result<Self, Problem> {
        let head = || wait_for(authority.store().read(&Keys::default()));
        let before = head()?;
        let listed = wait_for(authority.store().leases(Page { after: None, limit: usize::MAX }))?;
        let after = head()?;
        let header = header(&before, &listed, &after);
        Ok(Self { header, listed, steps: after.view.history - before.view.history })
    }

    fn write(&self, authority: &Authority, target: &mut Target) -> Result<(), Problem> {
        let mut progress = Progress::new("exporting", self.header.rows + self.header.resources);
        target.lines([Line::Export(self.header.clone())].into_iter())?;
        let mut done = 0;
        while done < self.header.rows && !target.is_closed() {
            let limit = PAGE.min(usize::try_from(self.header.rows - done).unwrap_or(PAGE));
            let query = HistoryQuery { after: Some(done), limit, ..HistoryQuery::default() };
            let rows = wait_for(authority.store().history(query))?;
            let last = rows.last().map(|row| row.number);
            // Rows are never removed.
            let gone = || Problem::failure(format_args!("the history ends after row {done}: is the store damaged?"));
            target.lines(rows.iter().map(|row| Line::Row(Row::of(row))))?;
            done = last.ok_or_else(gone)?;
            progress.at(done);
        }
        for piece in self.listed.chunks(PAGE) {
            let now = piece.first().map(|row| Now::beside(row.now));
            let resources = piece.iter().zip(now.iter().cycle());
            target.lines(resources.map(|(row, now)| Line::Resource(Resource::of(&row.lease, now))))?;
            done += piece.len() as u64;
            progress.at(done);
        }
        Ok(())
    }
}

fn header(before: &Read, listed: &[Listed], after: &Read) -> Header {
    let authority = &after.view.authority;
    let live = listed.iter().filter(|row| {
        let standing = SessionRecord::standing(row.holder.as_ref(), authority, after.now);
        matches!(standing, Standing::Valid | Standing::Overdue)
    });
    Header {
        format: line::FORMAT.to_owned(),
        version: line::VERSION,
        store: authority.identity.to_string(),
        incarnation: authority.incarnation,
        floor: authority.floor.map(tenure::Epoch::get),
        max_ttl_ms: line::millis_up(authority.max_ttl.get()),
        longest_live_ttl_ms: live
            .filter_map(|row| row.holder.as_ref())
            .map(|holder| line::millis_up(holder.ttl.get()))
            .max(),
        quarantine_ms: authority.quarantine(after.now).map(line::millis_up),
        rows: before.view.history,
        resources: listed.len() as u64,
        exported_at: crate::screen::when::rfc3339(tenure::authority::WallTime::now()),
    }
}

/// Where the lines go.
enum Target {
    Out(Out),
    /// Beside the file's place until it is whole.
    File(BufWriter<NamedTempFile>, PathBuf),
    /// A pipe or a device, which must stay what it is.
    Device(File, PathBuf),
}

impl Target {
    fn open(path: &Path) -> Result<Self, Problem> {
        if path.as_os_str() == "-" {
            return Ok(Self::Out(Out::new()));
        }
        // What a link points to is meant, not the link.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            let device = File::options().write(true).open(path).map_err(|error| unwritten(path, &error))?;
            return Ok(Self::Device(device, path.clone()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(folder).map_err(|error| unwritten(path, &error))?;
        Ok(Self::File(BufWriter::new(file), path.clone()))
    }

    fn lines(&mut self, lines: impl Iterator<Item = Line>) -> Result<(), Problem> {
        let mut text = String::new();
        for line in lines {
            text += &serde_json::to_string(&line).map_err(Problem::failure)?;
            text.push('\n');
        }
        match self {
            Self::Out(out) => out.write(&text),
            Self::File(file, path) => file.write_all(text.as_bytes()).map_err(|error| unwritten(path, &error)),
            Self::Device(file, path) => file.write_all(text.as_bytes()).map_err(|error| unwritten(path, &error)),
        }
    }

    fn is_closed(&self) -> bool {
        matches!(self, Self::Out(out) if out.is_closed())
    }

    fn finish(self) -> Result<(), Problem> {
        let Self::File(file, path) = self else { return Ok(()) };
        let file = file.into_inner().map_err(|error| unwritten(&path, error.error()))?;
        file.as_file().sync_all().map_err(|error| unwritten(&path, &error))?;
        file.persist(&path).map_err(|error| unwritten(&path, &error.error))?;
        Ok(())
    }
}

fn unwritten(path: &Path, error: &std::io::Error) -> Problem {
    Problem::failure(format_args!("{} cannot be written: {error}", path.display()))
}
