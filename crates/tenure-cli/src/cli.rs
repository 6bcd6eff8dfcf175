use crate::exit::Exit;
use crate::problem::Problem;
use crate::{
    check, demo, doctor, export, history, import, ls, probe, put, release, reopen, retire, run, show, sinks, takeover,
};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::process::ExitCode;

/// Hands out the right to write, and shows what happens to a writer that has lost it.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the incident: a stopped worker wakes up and writes its old result over the new one.
    ///
    /// Two real worker processes fight over one document, in real SQLite files, in front of three receivers: one that
    /// checks nothing, one that remembers the highest epoch, one that is sealed before the takeover is announced.
    Demo(demo::Args),
    Run(run::Args),
    Probe(probe::Args),
    Ls(ls::Args),
    Show(show::Args),
    History(history::Args),
    Takeover(takeover::Args),
    Release(release::Args),
    Retire(retire::Args),
    Reopen(reopen::Args),
    Sinks(sinks::Args),
    Check(check::Args),
    Put(put::Args),
    Doctor(doctor::Args),
    Export(export::Args),
    Import(import::Args),
    /// Print a completion script for a shell, to be sourced there.
    #[command(visible_alias = "completion")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page, to be read with man -l - or put where man looks.
    Man,
    /// One worker of the demo; the demo itself starts it.
    #[command(hide = true)]
    DemoWorker(demo::WorkerArgs),
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
    RunCommand(run::CommandArgs),
}

impl Cli {
    pub(crate) fn run(self) -> ExitCode {
        let (verb, done) = match self.command {
            Command::Demo(args) => ("demo", Ok(args.run())),
            Command::DemoWorker(args) => ("demo-worker", Ok(args.run())),
            Command::RunWatchdog(args) => ("run", Ok(args.run())),
            Command::RunCommand(args) => ("run", Ok(args.run())),
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
            Command::Check(args) => ("check", args.run()),
            Command::Put(args) => ("put", args.run()),
            Command::Doctor(args) => ("doctor", args.run()),
            Command::Export(args) => ("export", args.run()),
            Command::Import(args) => ("import", args.run()),
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), "tenure", &mut std::io::stdout());
                ("completions", Ok(Exit::Success))
            }
            Command::Man => ("man", man()),
        };
        match done {
            Ok(exit) => exit.into(),
            Err(problem) => {
                eprintln!("tenure {verb}: {problem}");
                problem.exit().into()
            }
        }
    }
}

fn man() -> Result<Exit, Problem> {
    let page = clap_mangen::Man::new(Cli::command());
    page.render(&mut std::io::stdout()).map_err(Problem::failure)?;
    Ok(Exit::Success)
}
