//! One call of another program.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program with its arguments and the variables that it needs. Its [`Display`](fmt::Display) form can be pasted into
/// a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Call {
    /// A call of `program`.
    #[must_use]
    pub fn new(program: &str, args: &[&str]) -> Self {
        Self { program: program.to_owned(), args: args.iter().map(|&arg| arg.to_owned()).collect(), env: Vec::new() }
    }

    /// A call of cargo.
    #[must_use]
    pub fn cargo(args: &[&str]) -> Self {
        Self::new("cargo", args)
    }

    /// The same call with one more variable in its environment.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Runs the call in `dir` with this process's output and no input. `true` when it ended with success.
    ///
    /// # Errors
    ///
    /// The program could not be started; the caller reports it as a failed step.
    pub fn run(&self, dir: &Path) -> io::Result<bool> {
        Ok(self.command(dir).status()?.success())
    }

    /// Whether the call succeeds; its output is thrown away. A program that is not there does not succeed.
    #[must_use]
    pub fn succeeds(&self, dir: &Path) -> bool {
        self.command(dir).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    fn command(&self, dir: &Path) -> Command {
        // Under `cargo xtask` this is the very cargo that started us.
        let program = match self.program.as_str() {
            "cargo" => std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            other => other.into(),
        };
        let mut command = Command::new(program);
        command.args(&self.args).envs(self.env.iter().map(|(k, v)| (k, v))).current_dir(dir).stdin(Stdio::null());
        command
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, value) in &self.env {
            write!(f, "{key}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
