//! The first look at a server: is the store there, is it ours, may it be made.

use super::fault;
use super::link::Link;
use super::place::Place;
use super::script::{CREATE, READ, RIGHTS};
use super::server::{Server, evaluate, items, text};
use crate::StoreError;
use crate::store::json::{authority_from, authority_to};
use std::time::Duration;
use tenure_core::record::AuthorityRecord;
use tenure_core::{StoreIdentity, Ttl};

/// The longest ttl of a new store, unless another is asked for. It is also how long a quarantine lasts.
const MAX_TTL: Duration = Duration::from_mins(10);

/// The oldest version that refuses a script before it begins, or not at all.
const VERSION_MIN: u32 = 7;

/// Another process may make the store at the same time.
const ROUNDS_MAX: usize = 8;

/// Whether the server is one that can hold a store, and the user may do all that the scripts do. Each new connection may
/// lead to another server.
pub(super) async fn fits(server: &Server, link: &Link) -> Result<(), StoreError> {
    let place = &server.place;
    is_fit(link, place).await?;
    let rights = evaluate(link, place, &RIGHTS, &[], place.timeout).await;
    let rights = rights.map_err(|error| fault::of_call(&error, place).error)?;
    if let [status, why] = items(rights).map_err(|damage| server.damaged(&damage))?.as_slice() {
        let said = |value: &redis::Value| text(value.clone()).map_err(|damage| server.damaged(&damage));
        return Err(server.refused(&said(status)?, &said(why)?));
    }
    Ok(())
}

async fn is_fit(link: &Link, place: &Place) -> Result<(), StoreError> {
    let mut connection = link.connection.clone();
    let info: redis::RedisResult<String> = redis::cmd("INFO").arg("server").query_async(&mut connection).await;
    // One that may not be asked will refuse what follows with the right it lacks.
    let Ok(info) = info else { return Ok(()) };
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let version = field("redis_version:");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < VERSION_MIN) {
        return Err(StoreError::Engine(format!("redis_version is {version}, and tenure needs Redis {VERSION_MIN}")));
    }
    if field("redis_mode:") == "cluster" {
        return Err(fault::cluster(place));
    }
    Ok(())
}

/// Finds the store, or makes it when that was asked for.
pub(super) async fn settle(server: &Server, link: &Link) -> Result<(), StoreError> {
    let place = &server.place;
    super::warnings::tell(link, place).await;
    for _ in 0..ROUNDS_MAX {
        let looked = evaluate(link, place, &READ, &["", "0", "5", "record", "", "", "", ""], place.timeout).await;
        let looked = looked.map_err(|error| fault::of_call(&error, place).error)?;
        let mut parts = items(looked).map_err(|damage| server.damaged(&damage))?.into_iter().map(text);
        let mut part = || parts.next().unwrap_or_else(|| Ok(String::new())).map_err(|damage| server.damaged(&damage));
        let status = part()?;
        match status.as_str() {
            "ok" => {
                let (_, _, record) = (part()?, part()?, part()?);
                return check(server, &record);
            }
            "missing" if place.create => {
                let made = create(server, link, &part()?).await?;
                match made.as_str() {
                    "made" => return Ok(()),
                    "again" => {}
                    other => return Err(server.refused(other, "")),
                }
            }
            "replica" => return Err(StoreError::Unavailable(format!("{} is a replica", link.node))),
            other => return Err(server.refused(other, &part()?)),
        }
    }
    Err(StoreError::Unavailable(format!("{} keeps changing while it is opened", place.shown)))
}

fn check(server: &Server, record: &str) -> Result<(), StoreError> {
    let stored = authority_from(record).map_err(|error| server.damaged(&error.into()))?.max_ttl;
    match server.place.max_ttl {
        Some(asked) if asked != stored => Err(fault::address(
            &server.place,
            format!(
                "its max_ttl is {:?} since its creation, not {:?}: leave max_ttl out, or give that one",
                stored.get(),
                asked.get()
            ),
        )),
        _ => Ok(()),
    }
}

async fn create(server: &Server, link: &Link, identity: &str) -> Result<String, StoreError> {
    let place = &server.place;
    let wrong = |error: &dyn std::fmt::Display| StoreError::Corrupt(format!("{}: {error}", place.shown));
    let usual = || Ttl::new(MAX_TTL).map_err(|error| wrong(&error));
    let max_ttl = place.max_ttl.map_or_else(usual, Ok)?;
    let record = AuthorityRecord::new(StoreIdentity::new(identity).map_err(|error| wrong(&error))?, max_ttl);
    let json = authority_to(&record).map_err(|error| wrong(&error))?;
    let incarnation = record.incarnation.to_string();
    let said = evaluate(link, place, &CREATE, &[identity, &json, &incarnation], place.timeout).await;
    let said = said.map_err(|error| fault::of_call(&error, place).error)?;
    let first = items(said).map_err(|damage| server.damaged(&damage))?.into_iter().next();
    first.map_or_else(|| Ok(String::new()), text).map_err(|damage| server.damaged(&damage))
}
