//! The `tenure` command.

mod cli;
mod demo;
mod exit;

use clap::Parser;
use exit::Exit;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            let asked_for = !error.use_stderr();
            // A terminal that is gone cannot be told anything.
            let _ = error.print();
            if asked_for { Exit::Success.into() } else { Exit::Usage.into() }
        }
    }
}
