//! What a server's refusal means.

use super::place::Place;
use crate::StoreError;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a call has no answer.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: StoreError,
    /// Whether certainly nothing was changed.
    pub(super) is_certain: bool,
    /// Whether the connection is of no use any more: it is broken, or leads to somebody who is not the primary.
    pub(super) is_over: bool,
}

impl Fault {
    /// The server was not asked, or has refused before it began.
    pub(super) fn certain(error: StoreError) -> Self {
        Self { error, is_certain: true, is_over: false }
    }

    /// What was asked may have been done or not.
    pub(super) fn unknown(error: StoreError) -> Self {
        Self { error, is_certain: false, is_over: true }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::certain(error)
    }
}

/// A refusal, or a connection that broke, while a command was under way.
pub(super) fn of_call(error: &RedisError, place: &Place) -> Fault {
    let said = error.to_string();
    match error.code() {
        // Scripts find keys of another type before they write.
        Some("WRONGTYPE") => Fault::certain(of_script(&said, place)),
        // A script broke off in its middle: a right was taken away. The next connection asks for all rights first.
        Some(_) if said.contains("user_script") => {
            Fault { error: of_script(&said, place), is_certain: false, is_over: true }
        }
        Some(code) => {
            let is_over = matches!(code, "READONLY" | "MASTERDOWN" | "LOADING" | "NOAUTH");
            Fault { error: refused(code, &said, place), is_certain: true, is_over }
        }
        None => Fault::unknown(StoreError::Unavailable(if error.is_timeout() {
            format!("{} does not answer within {:?}", place.shown, place.timeout)
        } else {
            format!("{}: the connection broke: {said}", place.shown)
        })),
    }
}

/// A connection that did not come about.
pub(super) fn of_connecting(error: &RedisError, to: &dyn std::fmt::Display, place: &Place) -> StoreError {
    let said = error.to_string();
    match (error.code(), error.kind()) {
        (Some(code @ ("WRONGPASS" | "NOAUTH" | "NOPERM" | "LOADING" | "BUSY")), _) => refused(code, &said, place),
        (_, ErrorKind::AuthenticationFailed) => refused("WRONGPASS", &said, place),
        (_, ErrorKind::Server(ServerErrorKind::ResponseError)) if said.contains("switch database") => {
            address(place, format!("the server has no database {}; it has those from 0 on", place.db))
        }
        (Some("ERR"), _) if said.contains("DB index") => {
            address(place, format!("the server has no database {}; it has those from 0 on", place.db))
        }
        (_, ErrorKind::RESP3NotSupported) => {
            StoreError::Engine(format!("the server at {to} is older than Redis 6; tenure needs Redis 7"))
        }
        _ if said.contains("certificate") => StoreError::Unavailable(format!(
            "{to}: {said}: give the file of the authority that vouches for the server (tls_ca=FILE)"
        )),
        _ if error.is_timeout() => StoreError::Unavailable(format!("{to} does not answer")),
        _ => StoreError::Unavailable(format!("{to}: {said}")),
    }
}

/// What one change of a script, or a script that changes nothing, met.
pub(super) fn of_script(said: &str, place: &Place) -> StoreError {
    if said.contains("WRONGTYPE") {
        let what = said.split(" script:").next().unwrap_or(said);
        return StoreError::Corrupt(format!("{}: a key of the store holds something else: {what}", place.shown));
    }
    if said.contains("NOPERM") || said.contains("can't run this command") || said.contains("ACL failure") {
        return refused("NOPERM", said, place);
    }
    StoreError::Unavailable(format!("{}: {said}", place.shown))
}

fn refused(code: &str, said: &str, place: &Place) -> StoreError {
    let at = &place.shown;
    match code {
        "OOM" => StoreError::NotWritable(format!("{at} has used its maxmemory; raise it")),
        "MISCONF" => StoreError::NotWritable(format!("{at} cannot save to its disk: {said}")),
        "NOPERM" => StoreError::NotWritable(format!(
            "{at}: the user lacks a right: {said}; grant ~{{{name}}}:* &{{{name}}}:* +@all -@admin -@dangerous +info",
            name = place.name
        )),
        "WRONGPASS" => address(place, "the server refuses the user or the password".to_owned()),
        "NOAUTH" => address(place, "the server wants a password; write redis://USER:PASSWORD@HOST:PORT".to_owned()),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" => cluster(place),
        "NOREPLICAS" => StoreError::Unavailable(format!(
            "{at} takes no changes, because fewer replicas follow it than its min-replicas-to-write asks for"
        )),
        "READONLY" | "MASTERDOWN" => StoreError::Unavailable(format!("{at} is a replica now")),
        "LOADING" => StoreError::Unavailable(format!("{at} was started just now and still reads its files")),
        "BUSY" => StoreError::Unavailable(format!(
            "{at} is held up by somebody's script; SCRIPT KILL ends one that has changed nothing"
        )),
        _ => StoreError::Unavailable(format!("{at}: {said}")),
    }
}

pub(super) fn cluster(place: &Place) -> StoreError {
    address(place, "it is a node of a Redis Cluster, which tenure does not use; give one server".to_owned())
}

pub(super) fn address(place: &Place, why: String) -> StoreError {
    StoreError::Address { url: place.shown.clone(), why }
}
