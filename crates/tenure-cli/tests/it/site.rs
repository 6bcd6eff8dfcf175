use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use tenure::blocking::{Lease, Tenure, wait_for};
use tenure::core::record::Transition;

/// A folder with an authority and receivers, and the command as a user types it there.
pub(crate) struct Site {
    folder: TempDir,
    /// The authority's address, unless it is a file in the folder.
    url: Option<String>,
}

impl Site {
    /// With an authority that has held nothing yet.
    pub(crate) fn new() -> Self {
        Self::of(None)
    }

    /// The same on the authority at an address.
    pub(crate) fn on(url: String) -> Self {
        Self::of(Some(url))
    }

    fn of(url: Option<String>) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap(), url };
        drop(site.worker("maker"));
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn authority(&self) -> String {
        self.url.clone().unwrap_or_else(|| format!("sqlite:{}", self.path("authority.db").display()))
    }

    /// The address of a receiver of files, which is made here; it is also its id.
    pub(crate) fn files(&self, name: &str) -> String {
        let url = format!("file:{}", self.path(name).display());
        tenure::sink::connect(&format!("{url}?create=true")).unwrap();
        url
    }

    /// A script in the folder.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// A worker in this process, which holds on until it is dropped.
    pub(crate) fn worker(&self, name: &str) -> Tenure {
        let url = made(&self.authority());
        wait_for(tenure::Tenure::builder().owner(name).connect(&url)).unwrap().into()
    }

    /// The command, in an environment that nothing leaks into.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_tenure"), self.folder.path());
        command.args(args).env("COLUMNS", "160").env("TENURE_AUTHORITY", self.authority()).env("USER", "op");
        command
    }

    pub(crate) fn tenure(&self, args: &[&str]) -> Said {
        Said::of(self.command(args).output().unwrap())
    }

    /// The same with a token in the environment, as a run's command has it.
    pub(crate) fn inside(&self, token: &impl ToString, args: &[&str]) -> Said {
        Said::of(self.command(args).env("TENURE_TOKEN", token.to_string()).output().unwrap())
    }

    /// The same with something on standard input.
    pub(crate) fn fed(&self, token: &impl ToString, input: &[u8], args: &[&str]) -> Said {
        let mut command = self.command(args);
        command.env("TENURE_TOKEN", token.to_string()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A command that refuses at once does not read.
        let _ = child.stdin.take().unwrap().write_all(input);
        Said::of(child.wait_with_output().unwrap())
    }

    pub(crate) fn history(&self) -> Vec<Transition> {
        let worker = self.worker("reader");
        let rows = wait_for(worker.authority().store().history(tenure::authority::HistoryQuery::default())).unwrap();
        rows.into_iter().map(|row| row.transition).collect()
    }
}

/// An address that makes its store.
pub(crate) fn made(url: &str) -> String {
    format!("{url}{}create=true", if url.contains('?') { '&' } else { '?' })
}

/// A program to which every signal does what it usually does: whoever runs the tests in the background may have some
/// ignored, and programs inherit that.
pub(crate) fn undisturbed(name: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", name]);
    command
}

/// A program in a folder, which reads nothing and finds no settings but what is in that folder.
pub(crate) fn program(name: &str, folder: &Path) -> Command {
    let mut command = undisturbed(name);
    let ours = |name: &str| {
        ["TENURE_", "CLICOLOR"].iter().any(|ours| name.starts_with(ours)) || ["COLUMNS", "NO_COLOR"].contains(&name)
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        command.env_remove(name);
    }
    for variable in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"] {
        command.env(variable, folder.join(variable));
    }
    command.env("HOME", folder).current_dir(folder).stdin(Stdio::null());
    command
}

/// Acquires with receivers that are sealed first.
pub(crate) fn hold(worker: &Tenure, resource: &str, sinks: &[&str]) -> Lease {
    let wish = sinks.iter().fold(worker.wish(resource), |wish, url| wish.sink(tenure::sink::connect(url).unwrap()));
    worker.acquire(wish).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its exit status was this one.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// All of these stand in what it said, on either stream.
    #[track_caller]
    pub(crate) fn with(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.out.contains(part) || self.err.contains(part), "{part:?} is not in {self:#?}");
        }
        self
    }

    /// Its output as one JSON value, on however many lines.
    #[track_caller]
    pub(crate) fn whole_json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// Its one line of JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:#?}");
        self.whole_json()
    }
}
