//! How far something has got, for whoever waits for more than a second.

use super::is_watched;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::time::Duration;

/// A bar on the standard error. It is drawn only on a terminal, and only after a second.
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
}

/// So many things may take more than a second.
const ONE_STEP_LONG: u64 = 20_000;

impl Progress {
    /// `what` is being done to `total` things.
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        Self::styled(what, Some(total), "{msg} {bar:30} {human_pos} of {human_len}, {eta} left")
    }

    /// `what` is being done to so many bytes; nobody knows how many a pipe brings.
    pub(crate) fn of_bytes(what: &'static str, total: Option<u64>) -> Self {
        let style = match total {
            Some(_) => "{msg} {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            None => "{spinner} {msg} {bytes}, {bytes_per_sec}",
        };
        Self::styled(what, total, style)
    }

    /// Waiting for `what`, for so long at most.
    pub(crate) fn of_waiting(what: String, most: Duration) -> Self {
        let style = "waiting for {msg} {bar:30} {elapsed}, at most {human_len} s";
        Self::styled(what, Some(most.as_secs()), style)
    }

    fn styled(what: impl Into<Cow<'static, str>>, total: Option<u64>, style: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden()).with_message(what);
        // The template is a constant; without it, the usual style does as well.
        let bar = match ProgressStyle::with_template(style) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, shown: !is_watched() }
    }

    /// `what` is being done to `total` things in one step, which nobody can look into. Shown at once, since nothing tells
    /// when a second is over.
    pub(crate) fn of_one_step(what: &'static str, total: u64) -> Self {
        let progress = Self::new(what, total);
        if is_watched() && total > ONE_STEP_LONG {
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {human_len}, for {elapsed}") {
                progress.bar.set_style(style);
            }
            progress.bar.set_draw_target(ProgressDrawTarget::stderr());
            progress.bar.enable_steady_tick(Duration::from_millis(200));
        }
        progress
    }

    /// So many are done.
    pub(crate) fn at(&mut self, done: u64) {
        if !self.shown && self.bar.elapsed() > Duration::from_secs(1) {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
