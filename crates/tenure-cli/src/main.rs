//! The `tenure` command.

// What is printed goes through `screen`, where a reader that has gone is no panic.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod access;
mod check;
mod cli;
mod demo;
mod doctor;
mod exit;
mod export;
mod history;
mod holder;
mod import;
mod keys;
mod ls;
mod man;
mod migrate;
mod owner;
mod probe;
mod problem;
mod put;
mod reason;
mod receivers;
mod release;
mod reopen;
mod restore;
mod retire;
mod run;
mod screen;
mod settings;
mod show;
mod shown;
mod sinks;
mod span;
#[cfg(feature = "postgres")]
mod sql;
mod takeover;
mod unknown;

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
