//! Test binaries: built by cargo, asked for their tests, and run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use crate::workspace;

/// A test that has not ended by then hangs. The slowest one takes a tenth of it.
const LIMIT: Duration = Duration::from_mins(4);

/// The binary of every package's integration tests.
const INTEGRATION: &str = "it";

/// The test binaries of one package, by the name of their target.
#[derive(Debug, Default)]
pub(super) struct Binaries {
    dir: PathBuf,
    paths: BTreeMap<String, PathBuf>,
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    Passed,
    /// With what it said.
    Failed(String),
    /// It was ended by us.
    Hung,
}

impl Binaries {
    /// Builds a package's unit tests and its integration tests, or only those of these targets.
    ///
    /// # Errors
    ///
    /// What the compiler says.
    pub(super) fn build(tree: &Path, package: &str, targets: Option<&BTreeSet<&str>>) -> Result<Self, String> {
        let wants = |wanted: fn(&str) -> bool| targets.is_none_or(|targets| targets.iter().any(|name| wanted(name)));
        let is_library = workspace::packages(tree)?.iter().any(|one| one.name == package && one.is_library);
        let units = if is_library { &["--lib"][..] } else { &["--bins"] };
        let which =
            [(wants(|name| name != INTEGRATION), units), (wants(|name| name == INTEGRATION), &["--test", INTEGRATION])];
        let which = which.into_iter().filter(|(wanted, _)| *wanted).flat_map(|(_, args)| args);
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["test", "--package", package, "--all-features", "--no-run"])
            .args(which)
            .args(["--message-format", "json-render-diagnostics", "--quiet"])
            .env("CARGO_TARGET_DIR", tree.with_file_name("target"))
            .current_dir(tree)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cargo could not be started: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let mut found = Self::default();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            let (Some(path), Some(name)) = (message["executable"].as_str(), message["target"]["name"].as_str()) else {
                continue;
            };
            if message["profile"]["test"].as_bool() == Some(true) {
                found.paths.insert(name.to_owned(), PathBuf::from(path));
                let manifest = message["manifest_path"].as_str().unwrap_or_default();
                found.dir = Path::new(manifest).parent().map(Path::to_path_buf).unwrap_or_default();
            }
        }
        Ok(found)
    }

    /// Where a test is: the binary's target and the test's full name in it. `path` is as GUARANTEES.md writes it, without
    /// the modules that only say that it is a test.
    ///
    /// # Errors
    ///
    /// No test fits, or several do.
    pub(super) fn find(&self, path: &str) -> Result<(String, String), String> {
        let mut found = Vec::new();
        for (target, binary) in &self.paths {
            let output = Command::new(binary)
                .args(["--list", "--format", "terse"])
                .output()
                .map_err(|error| format!("{} could not be started: {error}", binary.display()))?;
            let listed = String::from_utf8_lossy(&output.stdout).into_owned();
            let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
            found.extend(tests.filter(|test| fits(path, test)).map(|test| (target.clone(), test.to_owned())));
        }
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(format!("no test is called {path}")),
            many => Err(format!("{} tests are called {path}", many.len())),
        }
    }

    /// Runs one test alone.
    ///
    /// # Errors
    ///
    /// It could not be run at all.
    pub(super) fn run(&self, target: &str, test: &str) -> Result<Ended, String> {
        let binary = self.paths.get(target).ok_or_else(|| format!("cargo has built no test binary {target}"))?;
        let failed = |error: std::io::Error| format!("{} could not be run: {error}", binary.display());
        let mut command = Command::new(binary);
        command.args(["--exact", test]).current_dir(&self.dir).stdin(Stdio::null()).stderr(Stdio::null());
        // The functions on the way to a failure tell which clause of a suite it was.
        let mut child = command.env("RUST_BACKTRACE", "1").stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (tell, told) = mpsc::channel();
        if let Some(mut stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut said = Vec::new();
                let _ = stdout.read_to_end(&mut said);
                let _ = tell.send(String::from_utf8_lossy(&said).into_owned());
            });
        }
        let Ok(said) = told.recv_timeout(LIMIT) else {
            child.kill().map_err(failed)?;
            child.wait().map_err(failed)?;
            return Ok(Ended::Hung);
        };
        let status = child.wait().map_err(failed)?;
        Ok(if status.success() { Ended::Passed } else { Ended::Failed(said) })
    }
}

/// Whether `test` is the one that is written as `path`: the same function, in at least these modules in this order.
pub(super) fn fits(path: &str, test: &str) -> bool {
    let (path, test): (Vec<&str>, Vec<&str>) = (path.split("::").collect(), test.split("::").collect());
    let mut modules = test.iter();
    path.last() == test.last() && path.iter().all(|part| modules.any(|module| module == part))
}

#[cfg(test)]
mod tests;
