//! The history of one resource, with the ends of the sessions that it stood on.

use crate::problem::Problem;
use tenure::authority::{Authority, HistoryQuery, Order, Recorded};
use tenure::blocking::wait_for;
use tenure::core::record::Event;
use tenure::core::{ResourceName, SessionId};

/// So many rows of the whole history are looked through for ends of sessions, at most: a history may be long, and an end
/// that is not found is missing from the picture only.
const LOOK_MAX: usize = 50_000;

const PAGE: usize = 5_000;

/// The newest `limit` rows about a resource, oldest first, and between them the rows that tell how a grant ended when no
/// row about the resource does. `ended`: the newest grant's session is not valid any more.
pub(super) fn read(
    authority: &Authority,
    resource: &ResourceName,
    limit: usize,
    ended: bool,
) -> Result<Vec<Recorded>, Problem> {
    let query =
        HistoryQuery { resource: Some(resource.clone()), order: Order::NewestFirst, limit, ..HistoryQuery::default() };
    let mut rows = wait_for(authority.store().history(query))?;
    rows.reverse();
    let mut budget = LOOK_MAX;
    for gap in gaps(&rows, ended) {
        rows.extend(end(authority, &gap, &mut budget)?);
    }
    rows.sort_by_key(|row| row.number);
    rows.dedup_by_key(|row| row.number);
    Ok(rows)
}

/// A grant that no row about the resource ends.
#[derive(Debug, PartialEq, Eq)]
struct Gap {
    session: SessionId,
    /// The row of the grant.
    from: u64,
    /// The row of the next grant.
    to: u64,
}

fn gaps(rows: &[Recorded], ended: bool) -> Vec<Gap> {
    let (mut gaps, mut open) = (Vec::new(), None);
    for row in rows {
        match (row.transition.event, row.transition.session) {
            (Event::Granted, Some(session)) => {
                if let Some((session, from)) = open.replace((session, row.number)) {
                    gaps.push(Gap { session, from, to: row.number });
                }
            }
            (Event::Released | Event::Completed | Event::Revoked | Event::Refused | Event::Retiring, _) => open = None,
            _ => {}
        }
    }
    gaps.extend(open.filter(|_| ended).map(|(session, from)| Gap { session, from, to: u64::MAX }));
    gaps
}

/// The row that tells how the session of a gap ended.
fn end(authority: &Authority, gap: &Gap, budget: &mut usize) -> Result<Option<Recorded>, Problem> {
    let mut after = gap.from;
    while *budget > 0 {
        let limit = PAGE.min(*budget);
        let query = HistoryQuery { after: Some(after), limit, ..HistoryQuery::default() };
        let page = wait_for(authority.store().history(query))?;
        *budget -= page.len().min(*budget);
        let is_last = page.len() < limit || page.last().is_none_or(|row| row.number >= gap.to);
        after = page.last().map_or(after, |row| row.number);
        let ends = |row: &Recorded| match row.transition.event {
            Event::Ended => row.transition.session == Some(gap.session),
            // Every session ends with its incarnation.
            Event::Quarantined | Event::Restored => true,
            _ => false,
        };
        let found = page.into_iter().take_while(|row| row.number < gap.to).find(ends);
        if found.is_some() || is_last {
            return Ok(found);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
