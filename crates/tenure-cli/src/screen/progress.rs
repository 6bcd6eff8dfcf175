//! How far something has got, for whoever waits for more than a second.

use super::is_watched;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar on the standard error. It is drawn only on a terminal, and only after a second.
pub(crate) struct Progress {
    bar: ProgressBar,
    shown: bool,
}

impl Progress {
    /// `what` is being done to `total` things.
    pub(crate) fn new(what: &'static str, total: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden()).with_message(what);
        let style = ProgressStyle::with_template("{msg} {bar:30} {human_pos} of {human_len}, {eta} left");
        Self { bar: style.map(|style| bar.clone().with_style(style)).unwrap_or(bar), shown: !is_watched() }
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
