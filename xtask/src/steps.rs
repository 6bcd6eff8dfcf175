//! What `cargo xtask test` runs, in order.

use crate::call::Call;
use crate::workspace::Package;

/// The version of cargo-deny that the rules in `deny.toml` are written for.
pub const CARGO_DENY: &str = "0.20.2";

/// One named step.
#[derive(Debug, Clone)]
pub struct Step {
    /// The word for `--only`.
    pub name: &'static str,
    /// What it shows when it passes.
    pub what: &'static str,
    /// What it does.
    pub work: Work,
}

/// What a step does.
#[derive(Debug, Clone)]
pub enum Work {
    /// See [`setup`](crate::setup).
    SetUp,
    /// Each call must succeed.
    Calls(Vec<Call>),
    /// As [`Work::Calls`], but left out, and reported as left out, when `probe` fails.
    Optional {
        /// Succeeds when the tool is there.
        probe: Call,
        /// What a person types to get the tool.
        install: String,
        /// The calls.
        calls: Vec<Call>,
    },
}

/// The steps for these packages.
#[must_use]
pub fn steps(packages: &[Package]) -> Vec<Step> {
    let calls = |args: &[&str]| Work::Calls(vec![Call::cargo(args)]);
    let step = |name, what, work| Step { name, what, work };
    vec![
        step("setup", "the machine has what the tests need", Work::SetUp),
        step("fmt", "the code is formatted", calls(&["fmt", "--all", "--check"])),
        step("tidy", "the rules of the tree hold, and xtask's own tests", calls(&["test", "--package", "xtask"])),
        step(
            "clippy",
            "no warning anywhere, with every feature",
            calls(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]),
        ),
        // Benches are compiled by `clippy` and run by `cargo xtask bench`: a test is never a matter of time.
        step(
            "test",
            "unit and integration tests, with every feature",
            calls(&["test", "--workspace", "--exclude", "xtask", "--all-features", "--tests"]),
        ),
        step(
            "doctest",
            "the examples in the documentation",
            calls(&["test", "--workspace", "--all-features", "--doc"]),
        ),
        // The binary shares its name with a library: only one of them can have the page.
        step(
            "doc",
            "the documentation builds without a warning",
            Work::Calls(vec![
                Call::cargo(&["doc", "--workspace", "--lib", "--no-deps", "--all-features"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            ]),
        ),
        step("features", "each library compiles with each of its features alone", Work::Calls(feature_calls(packages))),
        step(
            "deny",
            "licences, banned crates and sources of dependencies",
            Work::Optional {
                probe: Call::cargo(&["deny", "--version"]),
                install: format!("cargo install cargo-deny --locked --version {CARGO_DENY}"),
                calls: vec![Call::cargo(&["deny", "--all-features", "check", "bans", "licenses", "sources"])],
            },
        ),
    ]
}

/// Each library without features, then with each of its features alone. Clippy rather than `check`: code that is dead
/// under one feature is a warning, and a warning is an error.
fn feature_calls(packages: &[Package]) -> Vec<Call> {
    let mut calls = Vec::new();
    for package in packages.iter().filter(|package| package.is_library && package.name != "xtask") {
        let bare = ["clippy", "--package", &package.name, "--no-default-features"];
        calls.push(Call::cargo(&[&bare[..], &["--", "-D", "warnings"]].concat()));
        for feature in &package.features {
            calls.push(Call::cargo(&[&bare[..], &["--features", feature, "--", "-D", "warnings"]].concat()));
        }
    }
    calls
}

#[cfg(test)]
mod tests;
