use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::{Out, clean, quoted, say};
use crate::shown::Shown;
use serde_json::json;
use spool::Spool;
use std::path::{Path, PathBuf};
use tenure::core::{Epoch, OperationId, Outcome, Token, Verdict};
use tenure::sink::file::Operation;
use tenure::sink::{ApplyError, FileSink, Opened, SinkError};

mod spool;

/// Move standard input into a file of a receiver, under the token of this run.
///
/// The receiver checks the token in the same step in which the file changes: a run that was overtaken changes nothing.
/// The file has its old content or the whole new one, never a part. With --op, repeating the command after a crash
/// writes once.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The receiver, such as file:/srv/out.
    #[arg(long, value_name = "URL")]
    sink: String,
    /// Which intent this is, the same whenever it is tried again: it is written at most once.
    #[arg(long, value_name = "ID")]
    op: Option<OperationId>,
    /// The file's name in the receiver's folder. Without it, the name of the resource.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
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
  pg_dump shop > dump.sql
  tenure put --sink file:/srv/out --op \"dump-$(date +%F)\" --name shop.sql < dump.sql

  tenure run --resource report --sink file:/srv/out -- \\
    sh -c 'make-report > r.html && tenure put --sink file:/srv/out < r.html'

It writes what it was given, up to the end of its input: in `a | tenure put`, a failure of `a`
halfway looks like an end. Write to a file first, as above, where that matters.

Exit status:
  0   written, or written before by the same operation
  64  what was asked makes no sense
  65  the operation stands there with other content
  69  the receiver cannot be reached
  75  this token is not sealed there
  76  a newer token is registered there";

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        self.access.who()?;
        let token = self.shown.token()?;
        let sink = self.sink()?;
        let (name, path) = self.target(&sink, &token)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        // On the receiver's own file system, so that the content need not travel twice.
        let mut spool = Spool::stdin(folder).map_err(|error| {
            Problem::failure(format_args!(
                "standard input was not kept in {} ({error}); nothing was written. Make room there, or give this user the \
                 right to write",
                folder.display()
            ))
        })?;
        let operation = match &self.op {
            Some(id) => Some(Operation { id: id.clone(), outcome: Outcome::new(spool.summary(&name))? }),
            None => None,
        };
        let (digest, bytes) = (spool.digest(), spool.bytes());
        let applied = sink.apply(&token, operation.as_ref(), &name, &digest, |file| spool.copy_to(file));
        let verdict = applied.map_err(|error| match error {
            ApplyError::Sink(error) => Problem::from(error),
            ApplyError::Effect(error) => Problem::failure(format_args!(
                "{} was not written ({error}); it is as it was. Make room, and repeat the command",
                path.display()
            )),
        })?;
        self.answer(&token, &verdict, &path, bytes)
    }

    fn sink(&self) -> Result<FileSink, Problem> {
        match tenure::sink::open(&self.sink)? {
            Opened::File(sink) => Ok(sink),
            _ => Err(Problem::usage(format_args!(
                "{} is no receiver of files: give --sink file:FOLDER. Into a database the worker writes itself, and checks \
                 the token in its own transaction",
                tenure::authority::store::shown(&self.sink)
            ))),
        }
    }

    fn target(&self, sink: &FileSink, token: &Token) -> Result<(String, PathBuf), Problem> {
        let name = self.name.as_deref().unwrap_or(token.resource.as_str());
        match sink.path_of(name) {
            Ok(path) => Ok((name.to_owned(), path)),
            Err(error @ SinkError::BadName { .. }) if self.name.is_none() => {
                Err(Problem::usage(format_args!("{error}. The resource's name is no file name here: give --name NAME")))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn answer(&self, token: &Token, verdict: &Verdict, path: &Path, bytes: u64) -> Result<Exit, Problem> {
        let (resource, epoch) = (&token.resource, token.epoch);
        if self.json {
            let current = match verdict {
                Verdict::Stale { current, .. } | Verdict::Conflict { current } => Some(current.get()),
                Verdict::Replay(replayed) => Some(replayed.epoch.get()),
                Verdict::Over(over) => over.current.map(Epoch::get),
                _ => None,
            };
            let outcome = match verdict {
                Verdict::Replay(replayed) => Some(replayed.outcome.as_str()),
                _ => None,
            };
            Out::new().json(&json!({
                "resource": resource.as_str(),
                "epoch": epoch.get(),
                "verdict": verdict.name(),
                "path": path.to_string_lossy(),
                "bytes": bytes,
                "operation": self.op.as_ref().map(OperationId::as_str),
                "current_epoch": current,
                "outcome": outcome,
            }))?;
        }
        let exit = match verdict {
            Verdict::Written | Verdict::Replay(_) => Exit::Success,
            Verdict::Stale { .. } | Verdict::Over(_) => Exit::Lost,
            Verdict::Conflict { .. } => Exit::Conflict,
            Verdict::Unsealed => Exit::NotAcquired,
        };
        let path = path.display();
        match verdict {
            _ if self.json => {}
            Verdict::Written => {
                let text = format!("written: {path}, {bytes} bytes, under epoch {epoch} of {resource}");
                Out::new().line(&clean(&text))?;
            }
            Verdict::Replay(replayed) => {
                let text =
                    format!("replay: {path} was written by this operation before, under epoch {}", replayed.epoch);
                Out::new().line(&clean(&text))?;
            }
            Verdict::Stale { current, .. } => say(
                "put",
                format_args!(
                    "stale: {path} was not changed: epoch {current} of {resource} is registered there, this run has {epoch}. \
                     It has lost: stop here"
                ),
            ),
            Verdict::Conflict { current } => say(
                "put",
                format_args!(
                    "conflict: {path} was not changed: under epoch {current} other content stands there, of the same \
                     operation or of another grant. Find out which is right, and give new content another --op"
                ),
            ),
            Verdict::Over(_) => say("put", format_args!("{verdict}; {path} was not changed")),
            Verdict::Unsealed => say(
                "put",
                format_args!(
                    "unsealed: {path} was not changed: the token of epoch {epoch} is not registered there. Give the run \
                     this receiver, so that it is sealed before the command starts: tenure run --resource {} --sink {}",
                    quoted(resource.as_str()),
                    quoted(&self.sink)
                ),
            ),
        }
        Ok(exit)
    }
}
