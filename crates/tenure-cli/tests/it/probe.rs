//! `tenure probe` on workers that write late, that are refused, that do not try, and that come to no end.

mod endings;
mod workers;

use crate::site::{self, stderr};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The marker of a shell worker. A goes on only after it was stopped and woken, however slow this machine is.
const READY: &str =
    "trap woken=1 CONT; echo ready; [ $TENURE_PROBE_WORKER = B ] || until [ $woken ]; do sleep 0.01; done";

/// A script with that marker where it says READY.
fn script(text: &str) -> String {
    text.replace("READY", READY)
}

/// A folder with a target in it, and the probe that is run there.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The probe with these words before the worker's.
    fn probe(&self, words: &[&str], worker: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_tenure"));
        command.arg("probe").args(words).arg("--").args(worker);
        command
    }

    /// A line for the shell.
    fn shell(&self, line: &str) -> Command {
        let mut command = self.command("sh");
        command.args(["-c", line]);
        command
    }

    /// A program in the scene's folder that knows nothing of the user's own settings.
    fn command(&self, program: &str) -> Command {
        let mut command = site::program(program, self.folder.path());
        command.env("TMPDIR", self.folder.path());
        command
    }

    /// Runs it, with its result as JSON.
    fn judge(&self, words: &[&str], worker: &[&str]) -> Judged {
        let words: Vec<&str> = ["--json"].into_iter().chain(words.iter().copied()).collect();
        let output = self.probe(&words, worker).output().unwrap();
        let told = stderr(&output);
        let json = serde_json::from_slice(&output.stdout).expect(&told);
        Judged { exit: output.status.code(), json, told }
    }

    /// A shell worker.
    fn judge_shell(&self, words: &[&str], text: &str) -> Judged {
        self.judge(words, &["sh", "-c", &script(text)])
    }
}

/// What a probe said.
struct Judged {
    exit: Option<i32>,
    json: Value,
    told: String,
}

impl Judged {
    #[track_caller]
    fn expect(&self, verdict: &str, exit: i32) -> &Self {
        assert_eq!((self.json["verdict"].as_str(), self.exit), (Some(verdict), Some(exit)), "{}", self.told);
        self
    }

    #[track_caller]
    fn because(&self, why: &str) -> &Self {
        let reason = self.json["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}\n{}", self.told);
        self
    }

    fn round(&self) -> &Value {
        &self.json["rounds"][0]
    }

    /// What the receiver held before B, after B, and after A went on.
    fn texts(&self) -> [Option<&str>; 3] {
        ["before_b", "after_b", "after_a"].map(|when| self.round()["values"][when]["text"].as_str())
    }

    fn evidence(&self) -> Vec<&str> {
        self.round()["evidence"].as_array().unwrap().iter().map(|evidence| evidence["kind"].as_str().unwrap()).collect()
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/probe").canonicalize().unwrap()
}
