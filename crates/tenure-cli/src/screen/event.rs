//! Rows of the history, as people read them.

use super::Tint;
use super::table::{Column, mark};
use super::when::Now;
use super::{clean, when};
use crate::span::Span;
use std::time::Duration;
use tenure::authority::Recorded;
use tenure::core::record::Event;

/// The columns of [`cells`].
pub(crate) const COLUMNS: [Column; 8] = [
    Column::number("NUMBER"),
    Column::text("TIME"),
    Column::number("AGO"),
    Column::text("EVENT"),
    Column::flexible("RESOURCE"),
    Column::number("EPOCH"),
    Column::flexible("WHO"),
    Column::flexible("WHY"),
];

/// The columns while rows are being followed: how long ago would be wrong in a moment.
pub(crate) const FOLLOWED: [Column; 7] =
    [COLUMNS[0], COLUMNS[1], COLUMNS[3], COLUMNS[4], COLUMNS[5], COLUMNS[6], COLUMNS[7]];

/// The columns for the rows of one resource.
pub(crate) const OF_ONE: [Column; 7] =
    [COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3], COLUMNS[5], COLUMNS[6], COLUMNS[7]];

/// A row, under [`COLUMNS`].
pub(crate) fn cells(row: &Recorded, now: &Now) -> Vec<String> {
    let ago = Duration::from_millis(now.wall.as_millis().saturating_sub(row.wall.as_millis()));
    let step = &row.transition;
    vec![
        row.number.to_string(),
        now.short(row.wall),
        Span(ago).to_string(),
        tint(step.event).map_or_else(|| step.event.name().to_owned(), |tint| mark(tint, step.event.name())),
        step.resource.as_ref().map(|resource| clean(resource.as_str())).unwrap_or_default(),
        step.epoch.map(|epoch| epoch.to_string()).unwrap_or_default(),
        step.actor.as_ref().map(|actor| clean(actor.as_str())).unwrap_or_default(),
        step.why.as_ref().map(|why| clean(why.as_str())).unwrap_or_default(),
    ]
}

/// A row, under [`FOLLOWED`].
pub(crate) fn followed(row: &Recorded, now: &Now) -> Vec<String> {
    let mut cells = cells(row, now);
    cells[1] = when::absolute(row.wall);
    cells.remove(2);
    cells
}

/// A row, under [`OF_ONE`].
pub(crate) fn of_one(row: &Recorded, now: &Now) -> Vec<String> {
    let mut cells = cells(row, now);
    cells.remove(4);
    cells
}

const fn tint(event: Event) -> Option<Tint> {
    match event {
        Event::Granted | Event::Announced => Some(Tint::Good),
        Event::Completed => Some(Tint::Strong),
        Event::Ended | Event::Refused | Event::Revoked | Event::Quarantined => Some(Tint::Bad),
        Event::Retiring | Event::Retired | Event::Unenrolled | Event::SinkReopened => Some(Tint::Warn),
        _ => None,
    }
}
