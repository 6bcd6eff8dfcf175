//! The command line.

mod demo;
mod fetch;
mod gc;
mod log;
mod place;
mod rollback;
mod rounds;
mod screen;
mod search;
mod status;
mod sync;
mod tenants;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::process::ExitCode;

/// The command line, or what it names, makes no sense.
pub(crate) const USAGE: u8 = 64;
/// Something on this machine, or the index, did not work.
const FAILURE: u8 = 70;

const AFTER_HELP: &str = "\
Indexes:
  sqlite:DIR                      one file per tenant in this folder, made when it is first used
  postgres://USER@HOST/DATABASE   PostgreSQL with pgvector
  chroma:http://HOST:PORT?catalog=INDEX
                                  a Chroma server; which version is live is kept in one of the above

Exit status:
  0   success: published, or nothing had changed
  64  the command line makes no sense
  65  nothing was published: these documents were rolled back from
  69  unknown: the answer to a step was lost, and could not be found out
  70  failed; the version that was live is live
  75  not now: somebody else has the tenant
  76  lost or superseded: the lease went away, and nothing of the round was published

Environment:
  VECTOR_SYNC_INDEX, VECTOR_SYNC_MODEL, TENURE_AUTHORITY, TENURE_OWNER
                      as the options; an address with a password belongs here
  VECTOR_SYNC_LOG     trace events on the standard error: warn, info, debug or trace
  VECTOR_SYNC_STOP, VECTOR_SYNC_KILL
                      for drills: stop (SIGSTOP) or kill the process at a point of its round: listed,
                      chunked, embedded, written, verified, before-switch or before-record; `:N`
                      behind it is the N-th time";

/// Keeps a searchable vector index per tenant in step with its documents: rebuilt by whoever holds the tenant's lease,
/// published all or nothing, never touched by a worker that lost it.
#[derive(Debug, Parser)]
#[command(name = "vector-sync", version, propagate_version = true, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Sync(sync::Args),
    Watch(watch::Args),
    Search(search::Args),
    Status(status::Args),
    Rollback(rollback::Args),
    Gc(gc::Args),
    Fetch(fetch::Args),
    Demo(demo::Args),
    /// Print a completion script.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// What a verb could not do, for a person.
#[derive(Debug)]
pub(crate) struct Problem {
    status: u8,
    what: String,
}

impl Problem {
    #[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
    pub(crate) fn usage(what: impl ToString) -> Self {
        Self { status: USAGE, what: what.to_string() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
    pub(crate) fn failure(what: impl ToString) -> Self {
        Self { status: FAILURE, what: what.to_string() }
    }
}

impl Cli {
    pub(crate) fn run(self) -> ExitCode {
        log::start();
        let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                screen::complain(&format!("no threads could be started: {error}"));
                return FAILURE.into();
            }
        };
        let status = runtime.block_on(async {
            match self.command {
                Command::Sync(args) => args.run().await,
                Command::Watch(args) => args.run().await,
                Command::Search(args) => args.run().await,
                Command::Status(args) => args.run().await,
                Command::Rollback(args) => args.run().await,
                Command::Gc(args) => args.run().await,
                Command::Fetch(args) => args.run().await,
                Command::Demo(args) => args.run().await,
                Command::Completions { shell } => {
                    clap_complete::generate(shell, &mut Self::command(), "vector-sync", &mut std::io::stdout());
                    Ok(0)
                }
            }
        });
        // A model's call that nobody waits for any more must not hold the end up.
        runtime.shutdown_background();
        match status {
            Ok(status) => status.into(),
            Err(Problem { status, what }) => {
                screen::complain(&what);
                status.into()
            }
        }
    }
}
