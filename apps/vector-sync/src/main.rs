//! `vector-sync`: see `vector-sync --help`.

// What is printed goes through `cli::screen`, where a reader that has gone is no panic.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) => {
            let asked_for = !error.use_stderr();
            // A terminal that is gone cannot be told anything.
            let _ = error.print();
            if asked_for { ExitCode::SUCCESS } else { ExitCode::from(cli::USAGE) }
        }
    }
}
