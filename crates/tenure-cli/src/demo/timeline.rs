use std::fmt::Write;

/// What two workers did, side by side, from top to bottom.
#[derive(Debug)]
pub(super) struct Timeline {
    names: [&'static str; 2],
    moments: Vec<(Option<u32>, Lane, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Left,
    Right,
}

const LANE_WIDTH: usize = 40;

impl Timeline {
    pub(super) const fn new(left: &'static str, right: &'static str) -> Self {
        Self { names: [left, right], moments: Vec::new() }
    }

    pub(super) fn at(&mut self, tick: u32, lane: Lane, what: &str) {
        self.moments.push((Some(tick), lane, what.to_owned()));
    }

    pub(super) fn then(&mut self, lane: Lane, what: &str) {
        self.moments.push((None, lane, what.to_owned()));
    }

    pub(super) fn draw(&self) -> String {
        let [left, right] = self.names;
        let mut drawn = format!("  tick   {left:<LANE_WIDTH$} {right}\n");
        for (tick, lane, what) in &self.moments {
            let tick = tick.map(|tick| tick.to_string()).unwrap_or_default();
            // Writing to a String cannot fail.
            let _ = match lane {
                Lane::Left => writeln!(drawn, "  {tick:>4}   {what:<LANE_WIDTH$} |"),
                Lane::Right => writeln!(drawn, "  {tick:>4}   {:<LANE_WIDTH$} {what}", "|"),
            };
        }
        drawn
    }
}
