//! One swap, within the writer's transaction.

use super::row::{self, Meta, authority_columns, lease_columns, session_columns};
use crate::store::Version;
use rusqlite::{Connection, OptionalExtension, Result};
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{
    AuthorityRecord, Event, Grant, Holdings, LeaseRecord, SessionRecord, SessionState, Transition,
};
use tenure_core::{ResourceName, SessionId};

const META: &str = concat!("SELECT ", authority_columns!(), " FROM meta m");
const SESSION: &str = concat!("SELECT ", session_columns!("s"), " FROM session s WHERE s.id = ?1");
const LEASE: &str = concat!("SELECT ", lease_columns!(), " FROM lease l WHERE l.resource = ?1");

pub(super) fn meta(connection: &Connection) -> Result<Meta> {
    connection.prepare_cached(META)?.query_row((), |found| row::authority(found, 0))
}

/// Makes the change if its version and the session it relies on still stand. `false`: it did not, nothing was changed.
///
/// `meta` is that of this transaction and is kept up to date. After an error the transaction must be rolled back.
pub(super) fn apply(connection: &Connection, meta: &mut Meta, swap: &Swap, expected: Option<Version>) -> Result<bool> {
    if let Some(id) = swap.relies_on {
        let relied_on = session(connection, id)?;
        let live = relied_on.is_some_and(|found| {
            found.session.state == SessionState::Live && found.session.incarnation == meta.authority.incarnation
        });
        if !live {
            return Ok(false);
        }
    }
    let stands = match &swap.change {
        Change::Authority(after) => put_authority(connection, meta, after, expected)?,
        Change::Session(after) => put_session(connection, meta, after, expected)?,
        Change::DropSession(id) => drop_session(connection, meta, *id, expected)?,
        Change::Lease(after) => put_lease(connection, meta, after, expected)?,
        Change::DropLease(resource) => drop_lease(connection, meta, resource, expected)?,
    };
    // A renewal hands nothing over; without a row of the history it stays one write, however often it comes.
    if stands && swap.transition.event != Event::Renewed {
        append(connection, &swap.transition)?;
    }
    Ok(stands)
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

fn put_authority(
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

fn put_session(connection: &Connection, meta: &Meta, after: &SessionRecord, expected: Option<Version>) -> Result<bool> {
    let before = session_version(connection, after.id)?;
    if before != expected {
        return Ok(false);
    }
    let (ended, ended_at) = match after.state {
        SessionState::Live => (None, None),
        SessionState::Ended { why, at } => (Some(row::end_reason_name(why)), Some(row::instant_to(at))),
    };
    let version = before.map_or(meta.versions_dropped, |version| version.0) + 1;
    // The holdings are no part of the record: an update leaves them, and an insert counts what stands already.
    let sql = match before {
        Some(_) => {
            "UPDATE session SET owner_name = ?2, owner_instance = ?3, on_this_host = ?4, ttl_ns = ?5, deadline_ns = ?6, \
             renew_seq = ?7, incarnation = ?8, ended = ?9, ended_at_ns = ?10, version = ?11 WHERE id = ?1"
        }
        None => {
            "INSERT INTO session (id, owner_name, owner_instance, on_this_host, ttl_ns, deadline_ns, renew_seq, \
             incarnation, ended, ended_at_ns, version, holdings) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, \
             zeroblob(16))"
        }
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
        version.cast_signed(),
    ))?;
    if before.is_none() {
        let holdings: Holdings =
            grants(connection, after.id)?.iter().filter_map(|lease| lease.holding()).map(|(_, grant)| grant).collect();
        if holdings != Holdings::default() {
            put_holdings(connection, after.id, holdings)?;
        }
    }
    Ok(true)
}

fn drop_session(connection: &Connection, meta: &mut Meta, id: SessionId, expected: Option<Version>) -> Result<bool> {
    let before = session_version(connection, id)?;
    if before != expected {
        return Ok(false);
    }
    connection.prepare_cached("DELETE FROM session WHERE id = ?1")?.execute([id.bits().to_be_bytes()])?;
    remember_dropped(connection, meta, before)?;
    Ok(true)
}

fn put_lease(connection: &Connection, meta: &Meta, after: &LeaseRecord, expected: Option<Version>) -> Result<bool> {
    let before = lease(connection, &after.resource)?;
    let before_version = before.as_ref().map(|(_, version)| *version);
    if before_version != expected {
        return Ok(false);
    }
    let sql = match &before {
        // Not even named when it stays: naming it would rewrite the index over the sessions.
        Some((before, _)) if before.session == after.session => {
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
    let version = before_version.map_or(meta.versions_dropped, |version| version.0) + 1;
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
        version.cast_signed(),
    ))?;
    toggle(connection, before.and_then(|(lease, _)| lease.holding()), after.holding())?;
    Ok(true)
}

fn drop_lease(
    connection: &Connection,
    meta: &mut Meta,
    resource: &ResourceName,
    expected: Option<Version>,
) -> Result<bool> {
    let before = lease(connection, resource)?;
    let version = before.as_ref().map(|(_, version)| *version);
    if version != expected {
        return Ok(false);
    }
    connection.prepare_cached("DELETE FROM lease WHERE resource = ?1")?.execute([resource.as_str()])?;
    remember_dropped(connection, meta, version)?;
    toggle(connection, before.and_then(|(lease, _)| lease.holding()), None)?;
    Ok(true)
}

/// A record that comes again starts above every version of the records that went.
fn remember_dropped(connection: &Connection, meta: &mut Meta, dropped: Option<Version>) -> Result<()> {
    let Some(Version(dropped)) = dropped.filter(|version| version.0 > meta.versions_dropped) else { return Ok(()) };
    connection.prepare_cached("UPDATE meta SET versions_dropped = ?1")?.execute([dropped.cast_signed()])?;
    meta.versions_dropped = dropped;
    Ok(())
}

/// Takes the former grant out of its session's fingerprint and puts the new one into its own.
fn toggle(
    connection: &Connection,
    before: Option<(SessionId, Grant)>,
    after: Option<(SessionId, Grant)>,
) -> Result<()> {
    if before == after {
        return Ok(());
    }
    for (id, grant) in [before, after].into_iter().flatten() {
        // A session that was swept has no fingerprint to keep.
        if let Some(found) = session(connection, id)? {
            put_holdings(connection, id, found.holdings.toggled(grant))?;
        }
    }
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

fn session_version(connection: &Connection, id: SessionId) -> Result<Option<Version>> {
    let mut statement = connection.prepare_cached("SELECT version FROM session WHERE id = ?1")?;
    let version = statement.query_row([id.bits().to_be_bytes()], |found| found.get::<_, i64>(0)).optional()?;
    Ok(version.map(|version| Version(version.cast_unsigned())))
}

fn lease(connection: &Connection, resource: &ResourceName) -> Result<Option<(LeaseRecord, Version)>> {
    let mut statement = connection.prepare_cached(LEASE)?;
    Ok(statement.query_row([resource.as_str()], |found| row::lease(found, 0)).optional()?.flatten())
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
