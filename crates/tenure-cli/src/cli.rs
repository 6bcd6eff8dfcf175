use crate::demo;
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use std::process::ExitCode;

/// Hands out the right to write, and shows what happens to a writer that has lost it.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, propagate_version = true)]
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
    /// Print a completion script for a shell, to be sourced there.
    Completion {
        /// The shell.
        shell: Shell,
    },
    /// One worker of the demo; the demo itself starts it.
    #[command(hide = true)]
    DemoWorker(demo::WorkerArgs),
}

impl Cli {
    pub(crate) fn run(self) -> ExitCode {
        match self.command {
            Command::Demo(args) => args.run().into(),
            Command::DemoWorker(args) => args.run().into(),
            Command::Completion { shell } => {
                clap_complete::generate(shell, &mut Self::command(), "tenure", &mut std::io::stdout());
                ExitCode::SUCCESS
            }
        }
    }
}
