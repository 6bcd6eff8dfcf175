use super::deadline::Since;
use crate::span::Span;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::time::Duration;

/// Tells on stderr what happens while it happens. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub(super) struct Narrator {
    quiet: bool,
    since: Since,
    bar: ProgressBar,
}

impl Narrator {
    pub(super) fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        Self { quiet, since: Since::now(), bar }
    }

    /// What the probe has just done.
    pub(super) fn tell(&self, text: &str) {
        let at = format!("{:>8}", Span(self.since.elapsed()).to_string());
        self.line(&format!("{at}  {text}"));
    }

    /// A line of a worker.
    pub(super) fn echo(&self, worker: &str, text: &str) {
        self.line(&format!("        {worker} | {text}"));
    }

    /// What is being waited for, on a terminal.
    pub(super) fn wait(&self, text: String) {
        self.bar.set_message(text);
        self.bar.reset();
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// Nothing is waited for any more.
    pub(super) fn done(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        // Nobody listens any more: the result is on stdout.
        let _ = self.bar.suspend(|| writeln!(anstream::stderr(), "{text}"));
    }
}
