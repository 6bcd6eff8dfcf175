use std::fmt::Write;

/// What two workers did, side by side, from top to bottom.
#[derive(Debug)]
pub(super) struct Timeline {
    names: [&'static str; 2],
    /// What its first column counts.
    unit: &'static str,
    moments: Vec<(&'static str, Lane, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Left,
    Right,
}

const LANE_WIDTH: usize = 40;

impl Timeline {
    pub(super) const fn new(unit: &'static str, left: &'static str, right: &'static str) -> Self {
        Self { names: [left, right], unit, moments: Vec::new() }
    }

    pub(super) fn at(&mut self, when: &'static str, lane: Lane, what: &str) {
        self.moments.push((when, lane, what.to_owned()));
    }

    pub(super) fn then(&mut self, lane: Lane, what: &str) {
        self.moments.push(("", lane, what.to_owned()));
    }

    pub(super) fn draw(&self) -> String {
        let [left, right] = self.names;
        let mut drawn = format!("  {}   {left:<LANE_WIDTH$} {right}\n", self.unit);
        for (tick, lane, what) in &self.moments {
            // Writing to a String cannot fail.
            let _ = match lane {
                Lane::Left => writeln!(drawn, "  {tick:>4}   {what:<LANE_WIDTH$} |"),
                Lane::Right => writeln!(drawn, "  {tick:>4}   {:<LANE_WIDTH$} {what}", "|"),
            };
        }
        drawn
    }
}
