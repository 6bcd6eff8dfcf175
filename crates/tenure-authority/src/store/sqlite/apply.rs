//! Swaps, within one transaction of the writer.

use super::row::{self, Meta, authority_columns, lease_columns, session_columns};
use crate::store::{Recorded, Version};
use rusqlite::{Connection, OptionalExtension, Result};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{
    AuthorityRecord, Event, Grant, Holdings, LeaseRecord, Phase, Seen, SessionRecord, SessionState, Transition,
};
use tenure_core::{GrantId, ResourceName, SessionId};

const META: &str = concat!("SELECT ", authority_columns!(), " FROM meta m");
const SESSION: &str = concat!("SELECT ", session_columns!("s"), " FROM session s WHERE s.id = ?1");

pub(super) fn meta(connection: &Connection) -> Result<Meta> {
    connection.prepare_cached(META)?.query_row((), |found| row::authority(found, 0))
}

/// The swaps of one transaction. Sessions are read once, and their fingerprints written once, at the end: most swaps of a
/// batch stand on the same few sessions. After an error the transaction must be rolled back.
pub(super) struct Batch<'tx> {
    connection: &'tx Connection,
    meta: Meta,
    sessions: HashMap<SessionId, Option<row::SessionRow>>,
    /// The sessions whose fingerprints have changed.
    owed: BTreeSet<SessionId>,
    /// Whether the history has grown.
    appended: bool,
}

impl<'tx> Batch<'tx> {
    pub(super) fn new(connection: &'tx Connection, meta: Meta) -> Self {
        Self { connection, meta, sessions: HashMap::new(), owed: BTreeSet::new(), appended: false }
    }

    /// Makes the change if its version and the session it relies on still stand. `false`: it did not, nothing was
    /// changed.
    pub(super) fn apply(&mut self, swap: &Swap, expected: Option<Version>) -> Result<bool> {
        if let Some(id) = swap.relies_on {
            let incarnation = self.meta.authority.incarnation;
            let live = self.session(id)?.as_ref().is_some_and(|found| {
                found.session.state == SessionState::Live && found.session.incarnation == incarnation
            });
            if !live {
                return Ok(false);
            }
        }
        let stands = match &swap.change {
            Change::Authority(after) => put_authority(self.connection, &mut self.meta, after, expected)?,
            Change::Session(after) => self.put_session(after, expected)?,
            Change::DropSession(id) => self.drop_session(*id, expected)?,
            Change::Lease(after) => self.put_lease(after, expected)?,
            Change::DropLease(resource) => self.drop_lease(resource, expected)?,
        };
        // A renewal hands nothing over; without a row of the history it stays one write, however often it comes.
        if stands && swap.transition.event != Event::Renewed {
            append(self.connection, &swap.transition)?;
            self.appended = true;
        }
        Ok(stands)
    }

    /// Writes what is owed. Before the commit. Returns the newest point of the history, if it has grown.
    pub(super) fn finish(self) -> Result<Option<Seen>> {
        for id in &self.owed {
            if let Some(Some(found)) = self.sessions.get(id) {
                put_holdings(self.connection, *id, found.holdings)?;
            }
        }
        // No other table has row ids, so that this is the number of the last row.
        let number = self.connection.last_insert_rowid().cast_unsigned();
        Ok(self.appended.then_some(Seen { incarnation: self.meta.authority.incarnation, number }))
    }

    fn session(&mut self, id: SessionId) -> Result<&mut Option<row::SessionRow>> {
        Ok(match self.sessions.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(session(self.connection, id)?),
        })
    }

    fn put_session(&mut self, after: &SessionRecord, expected: Option<Version>) -> Result<bool> {
        let before = self.session(after.id)?.as_ref().map(|found| (found.version, found.holdings));
        if before.map(|(version, _)| version) != expected {
            return Ok(false);
        }
        let version = Version(before.map_or(self.meta.versions_dropped, |(version, _)| version.0) + 1);
        write_session(self.connection, after, version, before.is_none())?;
        let holdings = match before {
            // No part of the record: an update leaves them.
            Some((_, holdings)) => holdings,
            // A record that comes again counts what stands on it already.
            None => {
                let standing = grants(self.connection, after.id)?;
                self.owed.insert(after.id);
                standing.iter().filter_map(LeaseRecord::holding).map(|(_, grant)| grant).collect()
            }
        };
        self.sessions.insert(after.id, Some(row::SessionRow { session: after.clone(), version, holdings }));
        Ok(true)
    }

    fn drop_session(&mut self, id: SessionId, expected: Option<Version>) -> Result<bool> {
        let before = self.session(id)?.as_ref().map(|found| found.version);
        if before != expected {
            return Ok(false);
        }
        self.connection.prepare_cached("DELETE FROM session WHERE id = ?1")?.execute([id.bits().to_be_bytes()])?;
        self.sessions.insert(id, None);
        remember_dropped(self.connection, &mut self.meta, before)?;
        Ok(true)
    }

    fn put_lease(&mut self, after: &LeaseRecord, expected: Option<Version>) -> Result<bool> {
        let before = lease(self.connection, &after.resource)?;
        if before.as_ref().map(|before| before.version) != expected {
            return Ok(false);
        }
        let version = before.as_ref().map_or(self.meta.versions_dropped, |before| before.version.0) + 1;
        write_lease(self.connection, before.as_ref().map(|before| before.session), after, Version(version))?;
        self.toggle(before.and_then(|before| before.holding), after.holding())?;
        Ok(true)
    }

    fn drop_lease(&mut self, resource: &ResourceName, expected: Option<Version>) -> Result<bool> {
        let before = lease(self.connection, resource)?;
        let version = before.as_ref().map(|before| before.version);
        if version != expected {
            return Ok(false);
        }
        self.connection.prepare_cached("DELETE FROM lease WHERE resource = ?1")?.execute([resource.as_str()])?;
        remember_dropped(self.connection, &mut self.meta, version)?;
        self.toggle(before.and_then(|before| before.holding), None)?;
        Ok(true)
    }

    /// Takes the former grant out of its session's fingerprint and puts the new one into its own.
    fn toggle(&mut self, before: Option<(SessionId, Grant)>, after: Option<(SessionId, Grant)>) -> Result<()> {
        if before == after {
            return Ok(());
        }
        for (id, grant) in [before, after].into_iter().flatten() {
            // A session that was swept has no fingerprint to keep.
            if let Some(found) = self.session(id)? {
                found.holdings = found.holdings.toggled(grant);
                self.owed.insert(id);
            }
        }
        Ok(())
    }
}

pub(super) fn append(connection: &Connection, transition: &Transition) -> Result<()> {
    let sql = "INSERT INTO history (at_ns, event, resource, session_id, epoch, grant_id, actor, why) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    connection.prepare_cached(sql)?.execute((
        row::instant_to(transition.at),
        transition.event.name(),
        transition.resource.as_ref().map(ResourceName::as_str),
        transition.session.map(|id| id.bits().to_be_bytes()),
        transition.epoch.map(tenure_core::Epoch::as_i64),
        transition.grant.map(|id| id.bits().to_be_bytes()),
        transition.actor.as_ref().map(tenure_core::Actor::as_str),
        transition.why.as_ref().map(tenure_core::Reason::as_str),
    ))?;
    Ok(())
}

/// A row that was written down elsewhere, with its number and its wall-clock time.
pub(super) fn append_recorded(connection: &Connection, row: &Recorded) -> Result<()> {
    append(connection, &row.transition)?;
    // Numbers go on by one, so the row has its own already; only the moment of its writing is another one.
    let sql = "UPDATE history SET wall = strftime('%Y-%m-%dT%H:%M:%fZ', ?2 / 1000.0, 'unixepoch') WHERE number = ?1";
    connection.prepare_cached(sql)?.execute((row.number.cast_signed(), row.wall.as_millis().cast_signed()))?;
    Ok(())
}

pub(super) fn put_authority(
    connection: &Connection,
    meta: &mut Meta,
    after: &AuthorityRecord,
    expected: Option<Version>,
) -> Result<bool> {
    if expected != Some(meta.version) {
        return Ok(false);
    }
    let version = Version(meta.version.0 + 1);
    let sql = "UPDATE meta SET identity = ?1, incarnation = ?2, floor = ?3, max_ttl_ns = ?4, \
               quarantined_until_ns = ?5, version = ?6";
    connection.prepare_cached(sql)?.execute((
        after.identity.as_str(),
        after.incarnation.cast_signed(),
        after.floor.map(tenure_core::Epoch::as_i64),
        row::nanos_of(after.max_ttl.get()),
        after.quarantined_until.map(row::instant_to),
        version.0.cast_signed(),
    ))?;
    meta.authority = after.clone();
    meta.version = version;
    Ok(true)
}

fn write_session(connection: &Connection, after: &SessionRecord, version: Version, is_new: bool) -> Result<()> {
    let (ended, ended_at) = match after.state {
        SessionState::Live => (None, None),
        SessionState::Ended { why, at } => (Some(why.name()), Some(row::instant_to(at))),
    };
    let sql = if is_new {
        "INSERT INTO session (id, owner_name, owner_instance, on_this_host, ttl_ns, deadline_ns, renew_seq, incarnation, \
         ended, ended_at_ns, version, holdings) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, zeroblob(16))"
    } else {
        "UPDATE session SET owner_name = ?2, owner_instance = ?3, on_this_host = ?4, ttl_ns = ?5, deadline_ns = ?6, \
         renew_seq = ?7, incarnation = ?8, ended = ?9, ended_at_ns = ?10, version = ?11 WHERE id = ?1"
    };
    connection.prepare_cached(sql)?.execute((
        after.id.bits().to_be_bytes(),
        after.owner.name.as_str(),
        after.owner.instance.bits().to_be_bytes(),
        after.on_this_host,
        row::nanos_of(after.ttl.get()),
        row::instant_to(after.deadline),
        after.renew_seq.cast_signed(),
        after.incarnation.cast_signed(),
        ended,
        ended_at,
        version.0.cast_signed(),
    ))?;
    Ok(())
}

pub(super) fn write_lease(
    connection: &Connection,
    session_before: Option<SessionId>,
    after: &LeaseRecord,
    version: Version,
) -> Result<()> {
    let sql = match session_before {
        // Not even named when it stays: naming it would rewrite the index over the sessions.
        Some(before) if before == after.session => {
            "UPDATE lease SET epoch = ?2, grant_id = ?3, owner_name = ?5, owner_instance = ?6, since_ns = ?7, \
             phase = ?8, outcome = ?9, cut = ?10, forgotten = ?11, sinks = ?12, version = ?13 \
             WHERE resource = ?1 AND session_id = ?4"
        }
        Some(_) => {
            "UPDATE lease SET epoch = ?2, grant_id = ?3, session_id = ?4, owner_name = ?5, owner_instance = ?6, \
             since_ns = ?7, phase = ?8, outcome = ?9, cut = ?10, forgotten = ?11, sinks = ?12, version = ?13 \
             WHERE resource = ?1"
        }
        None => {
            "INSERT INTO lease (resource, epoch, grant_id, session_id, owner_name, owner_instance, since_ns, phase, \
             outcome, cut, forgotten, sinks, version) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        }
    };
    let (phase, outcome, cut, forgotten) = row::phase_columns(&after.phase)?;
    connection.prepare_cached(sql)?.execute((
        after.resource.as_str(),
        after.epoch.as_i64(),
        after.grant.bits().to_be_bytes(),
        after.session.bits().to_be_bytes(),
        after.owner.name.as_str(),
        after.owner.instance.bits().to_be_bytes(),
        row::instant_to(after.since),
        phase,
        outcome,
        cut,
        forgotten,
        row::sinks_to(&after.sinks)?,
        version.0.cast_signed(),
    ))?;
    Ok(())
}

/// A record that comes again starts above every version of the records that went.
fn remember_dropped(connection: &Connection, meta: &mut Meta, dropped: Option<Version>) -> Result<()> {
    let Some(Version(dropped)) = dropped.filter(|version| version.0 > meta.versions_dropped) else { return Ok(()) };
    connection.prepare_cached("UPDATE meta SET versions_dropped = ?1")?.execute([dropped.cast_signed()])?;
    meta.versions_dropped = dropped;
    Ok(())
}

fn put_holdings(connection: &Connection, id: SessionId, holdings: Holdings) -> Result<()> {
    let sql = "UPDATE session SET holdings = ?2 WHERE id = ?1";
    connection.prepare_cached(sql)?.execute((id.bits().to_be_bytes(), holdings.bits().to_be_bytes()))?;
    Ok(())
}

pub(super) fn session(connection: &Connection, id: SessionId) -> Result<Option<row::SessionRow>> {
    let mut statement = connection.prepare_cached(SESSION)?;
    Ok(statement.query_row([id.bits().to_be_bytes()], |found| row::session(found, 0)).optional()?.flatten())
}

/// What a swap has to know of the record that it changes.
struct LeaseBefore {
    version: Version,
    session: SessionId,
    holding: Option<(SessionId, Grant)>,
}

fn lease(connection: &Connection, resource: &ResourceName) -> Result<Option<LeaseBefore>> {
    let sql =
        "SELECT version, session_id, epoch, grant_id, phase, outcome, cut, forgotten FROM lease WHERE resource = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([resource.as_str()], |found| {
        let session = SessionId::from_bits(row::bits(found, 1)?);
        let grant = Grant { epoch: row::epoch(found, 2)?, id: GrantId::from_bits(row::bits(found, 3)?) };
        let is_granted = matches!(row::phase(found, 4)?, Phase::Sealing | Phase::Held);
        let holding = is_granted.then_some((session, grant));
        Ok(LeaseBefore { version: Version(row::unsigned(found, 0)?), session, holding })
    });
    found.optional()
}

/// The grants that stand on a session.
pub(super) fn grants(connection: &Connection, id: SessionId) -> Result<Vec<LeaseRecord>> {
    let sql = concat!(
        "SELECT ",
        lease_columns!(),
        " FROM lease l WHERE l.session_id = ?1 AND l.phase IN ('sealing', 'held') ORDER BY l.resource"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map([id.bits().to_be_bytes()], |found| row::lease(found, 0))?;
    found.filter_map(|lease| lease.map(|lease| lease.map(|(lease, _)| lease)).transpose()).collect()
}
