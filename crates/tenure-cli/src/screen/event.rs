//! Rows of the history, as people read them.

use super::table::{Column, Table, mark};
use super::when::{absolute, short};
use super::{Tint, clean};
use crate::span::Span;
use std::time::Duration;
use tenure::authority::{Recorded, WallTime};
use tenure::core::record::Event;

/// What the rows are about, which leaves out what would be the same or wrong in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Everything,
    /// One resource, which is named elsewhere.
    One,
    /// What is happening: how long ago it was would be wrong in a moment.
    Now,
}

/// A list of rows.
#[derive(Debug)]
pub(crate) struct Rows {
    about: About,
    /// Where there is little room, the time alone says when it was.
    ago: bool,
    table: Table,
}

/// The least width with room for both ways to say when something was.
const ROOMY: usize = 100;

impl Rows {
    pub(crate) fn new(about: About, width: usize) -> Self {
        let ago = about != About::Now && width >= ROOMY;
        let columns = [
            Some(Column::number("NUMBER")),
            Some(Column::text("TIME")),
            ago.then_some(Column::number("AGO")),
            Some(Column::text("EVENT")),
            (about != About::One).then_some(Column::flexible("RESOURCE")),
            Some(Column::number("EPOCH")),
            Some(Column::flexible("WHO")),
            Some(Column::flexible("WHY")),
        ];
        let columns: Vec<_> = columns.into_iter().flatten().collect();
        Self { about, ago, table: Table::new(width, &columns) }
    }

    /// Draws some rows, which may go on below those that were drawn before.
    pub(crate) fn draw(&mut self, rows: &[Recorded], now: WallTime) -> String {
        for row in rows {
            let cells = self.cells(row, now);
            self.table.row(cells);
        }
        if rows.is_empty() { String::new() } else { self.table.draw() }
    }

    fn cells(&self, row: &Recorded, now: WallTime) -> Vec<String> {
        let ago = || Span(Duration::from_millis(now.as_millis().saturating_sub(row.wall.as_millis()))).to_string();
        let step = &row.transition;
        let event = step.event.name();
        let cells = [
            Some(row.number.to_string()),
            Some(if self.about == About::Now { absolute(row.wall) } else { short(now, row.wall) }),
            self.ago.then(ago),
            Some(tint(step.event).map_or_else(|| event.to_owned(), |tint| mark(tint, event))),
            (self.about != About::One)
                .then(|| step.resource.as_ref().map(|resource| clean(resource.as_str())).unwrap_or_default()),
            Some(step.epoch.map(|epoch| epoch.to_string()).unwrap_or_default()),
            Some(step.actor.as_ref().map(|actor| clean(actor.as_str())).unwrap_or_default()),
            Some(step.why.as_ref().map(|why| clean(why.as_str())).unwrap_or_default()),
        ];
        cells.into_iter().flatten().collect()
    }
}

const fn tint(event: Event) -> Option<Tint> {
    match event {
        Event::Granted | Event::Announced => Some(Tint::Good),
        Event::Completed => Some(Tint::Strong),
        Event::Ended | Event::Refused | Event::Revoked | Event::Quarantined | Event::Restored => Some(Tint::Bad),
        Event::Retiring | Event::Retired | Event::Unenrolled | Event::SinkReopened => Some(Tint::Warn),
        _ => None,
    }
}
