use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::{Out, say};
#[cfg(feature = "postgres")]
use crate::sql;
use crate::{
    check, demo, doctor, export, history, import, keys, ls, man, migrate, probe, put, release, reopen, restore, retire,
    run, show, sinks, takeover, unknown,
};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Exit status:
  0   success
  1   another result than it should be: a probe that failed, a run of the demo that differs
  2   undecided: a probe found no evidence either way
  64  the command line, or a file that it names, makes no sense
  65  conflict: the same operation or epoch stands there with other content
  69  the authority, or a receiver, cannot be reached or used
  70  something on this machine did not work
  75  not now: somebody else holds the resource, or it was not acquired in time
  76  the right to write is lost, for good
  tenure run ends with its command's own status, or with one of these.

Authorities:
  sqlite:/var/lib/tenure.db                one file, for the processes of one machine
  postgres://USER@HOST:PORT/DATABASE       PostgreSQL
  redis://HOST:PORT/DB, rediss://…         Redis; with TLS
  redis+sentinel://HOST,HOST/PRIMARY       Redis, wherever its Sentinels say
  etcd://HOST:PORT,HOST:PORT, etcds://…    etcd; with TLS
  ?create=true at the end makes the store when it is first used; tenure doctor says what it promises.

Environment:
  TENURE_AUTHORITY  the authority's address, as --authority; the place for one with a password, as is
                    the file below: everybody on this machine can read the words of a command
  TENURE_OWNER      who you are, as --owner
  TENURE_CONFIG     the configuration file, as --config
  TENURE_KEYS       the folder with the keys that grants are signed with, for receivers that ask for
                    it; without it, tenure/keys in your folder for state
  NO_COLOR          no colours, whatever its value

Files:
  tenure.toml, in this folder, else in tenure/ in your folder for settings. All keys are optional:

    authority = \"sqlite:/var/lib/tenure.db\"    # or \"postgres://tenure:PASSWORD@db1/jobs\"
    owner = \"alice\"
    ttl = \"120s\"
    color = \"auto\"    # or \"always\", \"never\"

  A flag goes before the environment, and the environment before the file.";

/// Hands out the right to write, and shows what happens to a writer that has lost it.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, propagate_version = true, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    // In the order in which help lists them: to work under a lease, to look, to step in, to move, to set up.
    Run(run::Args),
    Check(check::Args),
    Put(put::Args),
    Probe(probe::Args),
    /// Show the incident: a stopped worker wakes up and writes its old result over the new one.
    ///
    /// Two real worker processes fight over one document, in front of three receivers, which are real SQLite files: one
    /// that checks nothing, one that remembers the highest epoch, one that is sealed before the takeover is announced.
    ///
    /// The authority is a file as well, on a clock that the demo moves; or with --authority the one named, in real time.
    Demo(demo::Args),
    Ls(ls::Args),
    Show(show::Args),
    History(history::Args),
    Takeover(takeover::Args),
    Release(release::Args),
    Retire(retire::Args),
    Reopen(reopen::Args),
    Sinks(sinks::Args),
    Unknown(unknown::Args),
    Restore(restore::Args),
    Keys(keys::Args),
    Doctor(doctor::Args),
    Export(export::Args),
    Import(import::Args),
    Migrate(migrate::Args),
    #[cfg(feature = "postgres")]
    Sql(sql::Args),
    /// Print a completion script for a shell, to be sourced there.
    #[command(visible_alias = "completion")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    Man(man::Args),
    /// One worker of the demo; the demo itself starts it.
    #[command(hide = true)]
    DemoWorker(demo::WorkerArgs),
    /// One process of `demo receipts`; the demo itself starts it.
    #[command(hide = true)]
    DemoReceipts(demo::PlayerArgs),
    /// Who holds the lease of a worker of the probe; the probe itself starts it.
    #[command(hide = true)]
    ProbeHolder(probe::HolderArgs),
    /// What ends the workers of a probe that was killed; the probe itself starts it.
    #[command(hide = true)]
    ProbeGuard(probe::GuardArgs),
    /// What ends the command of a run in time; the run itself starts it.
    #[command(hide = true)]
    RunWatchdog(run::WatchdogArgs),
    /// What becomes the command of a run; its watchdog starts it.
    #[command(hide = true)]
    #[command(name = "run-command")]
    RunChild(run::CommandArgs),
}

impl Cli {
    pub(crate) fn run(self) -> ExitCode {
        let (verb, done) = match self.command {
            Command::Demo(args) => ("demo", args.run()),
            Command::DemoWorker(args) => ("demo-worker", Ok(args.run())),
            Command::DemoReceipts(args) => ("demo-receipts", Ok(args.run())),
            Command::RunWatchdog(args) => ("run", Ok(args.run())),
            Command::RunChild(args) => ("run", Ok(args.run())),
            Command::Run(args) => ("run", args.run()),
            Command::Probe(args) => ("probe", args.run()),
            Command::ProbeGuard(args) => ("probe-guard", args.run()),
            Command::ProbeHolder(args) => ("probe-holder", args.run()),
            Command::Ls(args) => ("ls", args.run()),
            Command::Show(args) => ("show", args.run()),
            Command::History(args) => ("history", args.run()),
            Command::Takeover(args) => ("takeover", args.run()),
            Command::Release(args) => ("release", args.run()),
            Command::Retire(args) => ("retire", args.run()),
            Command::Reopen(args) => ("reopen", args.run()),
            Command::Sinks(args) => ("sinks", args.run()),
            Command::Unknown(args) => ("unknown", args.run()),
            Command::Check(args) => ("check", args.run()),
            Command::Put(args) => ("put", args.run()),
            Command::Restore(args) => ("restore", args.run()),
            Command::Keys(args) => ("keys", args.run()),
            Command::Doctor(args) => ("doctor", args.run()),
            Command::Export(args) => ("export", args.run()),
            Command::Import(args) => ("import", args.run()),
            Command::Migrate(args) => ("migrate", args.run()),
            #[cfg(feature = "postgres")]
            Command::Sql(args) => ("sql", args.run()),
            Command::Completions { shell } => ("completions", completions(shell)),
            Command::Man(args) => ("man", args.run(Self::command())),
        };
        match done {
            Ok(exit) => exit.into(),
            Err(problem) => {
                say(verb, &problem);
                problem.exit().into()
            }
        }
    }
}

fn completions(shell: Shell) -> Result<Exit, Problem> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(), "tenure", &mut script);
    Out::new().write(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}

/// Without the verbs that are hidden: a completion script would offer them.
fn shown() -> clap::Command {
    let all = Cli::command();
    let verbs = all.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    clap::Command::new("tenure").version(env!("CARGO_PKG_VERSION")).propagate_version(true).subcommands(verbs)
}

#[cfg(test)]
mod tests;
