//! What a server's refusal means.

use crate::SinkError;
use redis::{ErrorKind, RedisError};

/// Why a call has no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// The server was not asked, or has refused before it began.
    Certain(SinkError),
    /// What was asked may have been done or not.
    Unknown(String),
}

impl Fault {
    /// For calls that may be repeated, whatever was done.
    pub(super) fn into_error(self, place: &str) -> SinkError {
        match self {
            Self::Certain(error) => error,
            Self::Unknown(why) => SinkError::Unreachable { place: place.to_owned(), why },
        }
    }
}

/// A refusal, or a connection that broke, while a call was under way.
pub(super) fn of_call(error: &RedisError, place: &str) -> Fault {
    let said = error.to_string();
    match error.code() {
        Some(code) if said.contains("compiling script") => Fault::Certain(refused(code, &said, place)),
        // It broke off in its middle. The verbs catch what can be caught.
        Some(_) if said.contains("user_script") || said.contains("user_function") => Fault::Unknown(said),
        Some(code) => Fault::Certain(refused(code, &said, place)),
        None if error.is_timeout() => Fault::Unknown("no answer came in time".to_owned()),
        None => Fault::Unknown(format!("the connection broke: {said}")),
    }
}

/// A connection that did not come about.
pub(super) fn of_connecting(error: &RedisError, place: &str) -> SinkError {
    let said = error.to_string();
    let unavailable = |why: String| SinkError::Unreachable { place: place.to_owned(), why };
    match (error.code(), error.kind()) {
        (_, ErrorKind::AuthenticationFailed) => refused("WRONGPASS", &said, place),
        // The driver chooses the database before it finds out that it may not.
        _ if said.contains("Authentication required") => refused("NOAUTH", &said, place),
        _ if said.contains("switch database") || said.contains("DB index") => {
            address(place, "the server has no database of this number")
        }
        (Some(code), _) => refused(code, &said, place),
        _ if said.contains("certificate") => {
            unavailable(format!("{said}: give the file of the authority that vouches for the server (tls_ca=FILE)"))
        }
        _ if error.is_timeout() => unavailable("it does not answer".to_owned()),
        _ => unavailable(said),
    }
}

/// What a command inside a verb met, before anything was written.
pub(super) fn of_script(said: &str, place: &str) -> SinkError {
    if said.contains("WRONGTYPE") {
        let why = "a key of the sink holds something else (WRONGTYPE)".to_owned();
        return SinkError::Foreign { place: place.to_owned(), why };
    }
    if said.contains("NOPERM") || said.contains("ACL failure") || said.contains("can't run this command") {
        return refused("NOPERM", said, place);
    }
    let code = said.split(' ').next().unwrap_or_default();
    refused(code.trim_start_matches('-'), said, place)
}

fn refused(code: &str, said: &str, place: &str) -> SinkError {
    let place_of = || place.to_owned();
    let unavailable = |why: &str| SinkError::Unreachable { place: place_of(), why: why.to_owned() };
    let failed = |why: String| SinkError::Failed { place: place_of(), doing: "asking Redis", why };
    match code {
        "OOM" => SinkError::Full { place: place_of(), why: "it has used its maxmemory".to_owned() },
        "NOPERM" => failed(format!("the user lacks a right ({said}); docs/redis-sink.md lists those that are needed")),
        "WRONGPASS" => address(place, "the server refuses the user or the password"),
        "NOAUTH" => address(place, "the server wants a password; write redis://USER:PASSWORD@HOST:PORT"),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" => address(place, CLUSTER),
        "NOREPLICAS" => unavailable("it takes no writes, because fewer replicas follow it than min-replicas-to-write"),
        "READONLY" | "MASTERDOWN" => unavailable("the server is a replica now"),
        "LOADING" => unavailable("the server was started just now and still reads its files"),
        "BUSY" => unavailable("the server is held up by somebody's script"),
        "MISCONF" => failed(format!("the server cannot save to its disk, and takes no writes ({said})")),
        _ => failed(said.to_owned()),
    }
}

pub(super) const CLUSTER: &str = "it is a node of a Redis Cluster, which tenure does not use; give one server";

pub(super) fn address(place: &str, why: &str) -> SinkError {
    SinkError::Address { url: place.to_owned(), why: why.to_owned() }
}
