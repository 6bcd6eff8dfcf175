//! The command line. Exit codes: 0 passed, 1 something failed, 2 not understood.

use std::path::Path;
use std::process::ExitCode;

use crate::call::Call;
use crate::workspace::Package;
use crate::{mutants, runner, steps, workspace};

const HELP: &str = "\
cargo xtask test                 everything that must pass; also sets up what the tests need
cargo xtask test --only STEP     one step (may be repeated)
cargo xtask test --list          the steps
cargo xtask bench [-- ARGS]      the benches; ARGS go to each of them
cargo xtask break [ID...]        breaks each guarantee of GUARANTEES.md (or these) on purpose, in a copy of the tree, and
                                 watches whether its tests notice; takes some ten minutes
cargo xtask break --list [ID...] what would be broken
cargo xtask help                 this text
";

/// What the caller wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Print the help.
    Help,
    /// Print the steps.
    List,
    /// Run all steps, or only the named ones.
    Test {
        /// Names of steps; empty means all.
        only: Vec<String>,
    },
    /// Run the benches.
    Bench {
        /// Passed on to each bench.
        args: Vec<String>,
    },
    /// Break guarantees on purpose.
    Break {
        /// Which; empty means all.
        ids: Vec<String>,
        /// Only say what would be broken.
        list: bool,
    },
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let order = match parse(&args) {
        Ok(order) => order,
        Err(what) => return misunderstood(&what),
    };
    let (root, packages) = match workspace::root().and_then(|root| Ok((root.clone(), workspace::packages(&root)?))) {
        Ok(found) => found,
        Err(what) => {
            eprintln!("{what}");
            return ExitCode::FAILURE;
        }
    };
    match order {
        Order::Help => print!("{HELP}"),
        Order::List => {
            for step in steps::steps(&packages) {
                println!("{:<9} {}", step.name, step.what);
            }
        }
        Order::Test { only } => return test(&root, &packages, &only),
        Order::Bench { args } => return bench(&root, &packages, &args),
        Order::Break { ids, list } => return break_guarantees(&root, &ids, list),
    }
    ExitCode::SUCCESS
}

/// Understands the arguments after the program's name.
///
/// # Errors
///
/// The text says what was not understood.
pub fn parse(args: &[String]) -> Result<Order, String> {
    let mut rest = args.iter().map(String::as_str);
    let order = match rest.next() {
        None | Some("help" | "--help" | "-h") => Order::Help,
        Some("bench") => match rest.next() {
            None => Order::Bench { args: Vec::new() },
            Some("--") => return Ok(Order::Bench { args: rest.map(ToOwned::to_owned).collect() }),
            Some(other) => {
                return Err(format!("`bench` does not know `{other}`; arguments for the benches follow `--`"));
            }
        },
        Some("break") => {
            let (mut ids, mut list) = (Vec::new(), false);
            for word in rest.by_ref() {
                match word {
                    "--list" => list = true,
                    _ if word.starts_with('-') => return Err(format!("`break` does not know `{word}`")),
                    _ => ids.push(word.to_owned()),
                }
            }
            Order::Break { ids, list }
        }
        Some("test") => {
            let mut only = Vec::new();
            loop {
                match rest.next() {
                    None => break Order::Test { only },
                    Some("--list") if only.is_empty() => break Order::List,
                    Some("--only") => only.push(rest.next().ok_or("`--only` needs the name of a step")?.to_owned()),
                    Some(other) => return Err(format!("`test` does not know `{other}`")),
                }
            }
        }
        Some(other) => return Err(format!("there is no command `{other}`")),
    };
    match rest.next() {
        None => Ok(order),
        Some(other) => Err(format!("`{other}` is one argument too many")),
    }
}

fn test(root: &Path, packages: &[Package], only: &[String]) -> ExitCode {
    let mut steps = steps::steps(packages);
    if let Some(unknown) = only.iter().find(|name| !steps.iter().any(|step| step.name == name.as_str())) {
        return misunderstood(&format!("there is no step `{unknown}`; `cargo xtask test --list` names them"));
    }
    if !only.is_empty() {
        steps.retain(|step| only.iter().any(|name| name == step.name));
    }
    let report = runner::run(&steps, root);
    eprintln!("\n{}", report.summary());
    if report.passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn bench(root: &Path, packages: &[Package], args: &[String]) -> ExitCode {
    let calls = bench_calls(packages, args);
    if calls.is_empty() {
        eprintln!("no package of this workspace has a bench");
        return ExitCode::FAILURE;
    }
    for call in calls {
        eprintln!("\n$ {call}");
        if !call.run(root).is_ok_and(|passed| passed) {
            eprintln!("The bench failed. To repeat: {call}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn break_guarantees(root: &Path, ids: &[String], list: bool) -> ExitCode {
    let mut mutants = mutants::all();
    if let Some(unknown) = ids.iter().find(|id| !mutants.iter().any(|mutant| mutant.id == id.as_str())) {
        return misunderstood(&format!("there is no guarantee `{unknown}`; `cargo xtask break --list` names them"));
    }
    mutants.retain(|mutant| ids.is_empty() || ids.iter().any(|id| id == mutant.id));
    if list {
        for mutant in &mutants {
            println!("{:<4} {} ({})", mutant.id, mutant.what, mutant.file);
        }
        return ExitCode::SUCCESS;
    }
    match mutants::run::run(root, &mutants) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// Each bench by its name: a bare `cargo bench` would also run the unit tests of the libraries as benches.
fn bench_calls(packages: &[Package], args: &[String]) -> Vec<Call> {
    let benches = packages.iter().flat_map(|package| package.benches.iter().map(move |bench| (&package.name, bench)));
    benches
        .map(|(package, bench)| {
            let mut call = vec!["bench", "--package", package, "--all-features", "--bench", bench];
            if !args.is_empty() {
                call.push("--");
                call.extend(args.iter().map(String::as_str));
            }
            Call::cargo(&call)
        })
        .collect()
}

fn misunderstood(what: &str) -> ExitCode {
    eprintln!("{what}\n\n{HELP}");
    ExitCode::from(2)
}

#[cfg(test)]
mod tests;
