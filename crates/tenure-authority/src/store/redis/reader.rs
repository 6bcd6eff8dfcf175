//! Reading, each time in one script, so that everything is of one moment.

use super::row::{self, Damage, number};
use super::script::{GRANTS, HISTORY, IDLE, LEASES, READ};
use super::server::{Answer, Server};
use crate::StoreError;
use crate::store::json::authority_from;
use crate::store::{HistoryQuery, Listed, Order, Page, Read, Recorded, Version, Versions};
use std::sync::Arc;
use tenure_core::decide::View;
use tenure_core::record::LeaseRecord;
use tenure_core::{ResourceName, SessionId};

/// So much one script lists: a server does nothing else meanwhile.
const PIECE: usize = 1_000;

pub(super) async fn read(server: &Arc<Server>, keys: [String; 5]) -> Result<Read, StoreError> {
    let answer = server.ask(&READ, &keys, &[]).await?;
    found(answer).map_err(|damage| server.damaged(&damage))
}

fn found(mut answer: Answer) -> Result<Read, Damage> {
    let authority = authority_from(&answer.expect("the store's record")?)?;
    let version = number(&answer.expect("the store's version")?)?;
    let history = number(&answer.expect("the history's length")?)?;
    let caller = answer.next()?.map(|value| row::session(&value)).transpose()?.unzip();
    let holdings = row::holdings(&answer.next()?.unwrap_or_default())?;
    let lease = answer.next()?.map(|value| row::lease(&value)).transpose()?.unzip();
    let holder = answer.next()?.map(|value| row::session(&value)).transpose()?.unzip();
    let grant_known = answer.next()?.is_some();
    let versions = Versions { authority: Some(Version(version)), caller: caller.1, lease: lease.1, holder: holder.1 };
    let view = View {
        authority,
        observed: answer.observed,
        history,
        caller: caller.0,
        holdings,
        lease: lease.0,
        holder: holder.0,
        grant_known,
    };
    Ok(Read { view, versions, now: answer.now })
}

pub(super) async fn leases(server: &Arc<Server>, page: Page<ResourceName>) -> Result<Vec<Listed>, StoreError> {
    let (mut after, mut listed) = (page.after, Vec::new());
    while listed.len() < page.limit {
        let most = PIECE.min(page.limit - listed.len());
        let args = [after.as_ref().map(ResourceName::to_string).unwrap_or_default(), most.to_string()];
        let mut answer = server.ask(&LEASES, &[], &args).await?;
        let before = listed.len();
        while !answer.is_at_end() {
            listed.push(listing(&mut answer).map_err(|damage| server.damaged(&damage))?);
        }
        if listed.len() - before < most {
            break;
        }
        after = listed.last().map(|last| last.lease.resource.clone());
    }
    Ok(listed)
}

fn listing(answer: &mut Answer) -> Result<Listed, Damage> {
    let (lease, _) = row::lease(&answer.expect("a listed resource")?)?;
    let holder = answer.next()?.map(|value| row::session(&value)).transpose()?;
    Ok(Listed { lease, holder: holder.map(|(session, _)| session), now: answer.now })
}

pub(super) async fn grants(server: &Arc<Server>, id: SessionId) -> Result<Vec<LeaseRecord>, StoreError> {
    let mut grants: Vec<LeaseRecord> = Vec::new();
    loop {
        let after = grants.last().map(|last| last.resource.to_string()).unwrap_or_default();
        let mut answer = server.ask(&GRANTS, &[], &[id.to_string(), after, PIECE.to_string()]).await?;
        let before = grants.len();
        while !answer.is_at_end() {
            let value = answer.expect("a listed resource").map_err(|damage| server.damaged(&damage))?;
            grants.push(row::lease(&value).map_err(|damage| server.damaged(&damage))?.0);
        }
        if grants.len() - before < PIECE {
            return Ok(grants);
        }
    }
}

/// Rows of one resource are found by going through the history: a list for each would cost each swap.
pub(super) async fn history(server: &Arc<Server>, query: HistoryQuery) -> Result<Vec<Recorded>, StoreError> {
    let mut rows = Vec::new();
    // The place of a row is its number less one.
    let mut place = match query.order {
        Order::OldestFirst => Some(query.after.unwrap_or(0)),
        // `None`: from the end, which is not known yet.
        Order::NewestFirst => query.after.map(|after| after.saturating_sub(1)),
    };
    while rows.len() < query.limit {
        let most = if query.resource.is_some() { PIECE } else { PIECE.min(query.limit - rows.len()) } as u64;
        let (first, last) = match (query.order, place) {
            (Order::OldestFirst, from) => (from.unwrap_or(0), from.unwrap_or(0).saturating_add(most - 1)),
            (Order::NewestFirst, Some(0)) => break,
            (Order::NewestFirst, Some(end)) => (end.saturating_sub(most), end - 1),
            (Order::NewestFirst, None) => (0, 0),
        };
        // Beyond the numbers that Redis knows there is nothing.
        // A row's number is its place in the list.
        let at = |place: u64| place.saturating_add(1).min(i64::MAX.cast_unsigned()).to_string();
        let asked = match place {
            None => ["1".to_owned(), "0".to_owned()],
            Some(_) => [at(first), at(last)],
        };
        let mut answer = server.ask(&HISTORY, &[], &asked).await?;
        let fault = |damage: Damage| server.damaged(&damage);
        let length = answer.expect("the history's length").and_then(|text| number(&text)).map_err(fault)?;
        if query.order == Order::NewestFirst && place.is_none_or(|end| end > length) {
            place = Some(length);
            continue;
        }
        let mut piece = Vec::new();
        while !answer.is_at_end() {
            let value = answer.expect("a row of the history").map_err(fault)?;
            let row = row::recorded(first + 1 + piece.len() as u64, &value).map_err(fault)?;
            piece.push(row);
        }
        let is_short = (piece.len() as u64) < most;
        if query.order == Order::NewestFirst {
            piece.reverse();
            place = Some(first);
        } else {
            place = Some(first + piece.len() as u64);
        }
        let asked_for = |row: &Recorded| query.resource.is_none() || row.transition.resource == query.resource;
        rows.extend(piece.into_iter().filter(asked_for));
        if is_short {
            break;
        }
    }
    rows.truncate(query.limit);
    Ok(rows)
}

pub(super) async fn idle_sessions(server: &Arc<Server>, limit: usize) -> Result<Vec<SessionId>, StoreError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let most = limit.min(100_000);
    let mut answer = server.ask(&IDLE, &[], &[most.to_string()]).await?;
    let mut ids = Vec::new();
    while !answer.is_at_end() {
        let id = answer.expect("an idle session").map_err(|damage| server.damaged(&damage))?;
        ids.push(id.parse().map_err(|error| server.damaged(&Damage(format!("{id:?}: {error}"))))?);
    }
    Ok(ids)
}
