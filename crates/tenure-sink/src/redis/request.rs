//! One call of a verb: what is sent, and what is sent next when the server does not know the verb yet.

use super::program::{LIBRARY, Program};
use redis::{Cmd, RedisError, RedisResult, Value, cmd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether servers have functions, as far as was seen.
#[derive(Debug, Default)]
pub(super) struct Ways {
    has_none: AtomicBool,
}

/// What is asked.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) program: Arc<Program>,
    pub(super) keys: Vec<Vec<u8>>,
    pub(super) args: Vec<Vec<u8>>,
}

/// How it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Function,
    /// The library, before the function once more.
    Load,
    Hash,
    Text,
}

impl Request {
    /// As a command of its own, for a pipeline or for `MULTI`. The server must know the library.
    pub(super) fn command(&self) -> Cmd {
        match &self.program.function {
            Some(name) => self.called("FCALL", name),
            None => self.called("EVAL", &self.program.text),
        }
    }

    fn called(&self, command: &str, what: &str) -> Cmd {
        let mut call = cmd(command);
        call.arg(what).arg(self.keys.len());
        for part in self.keys.iter().chain(&self.args) {
            call.arg(part.as_slice());
        }
        call
    }

    fn by(&self, way: Way) -> Cmd {
        match (way, &self.program.function) {
            (Way::Function, Some(name)) => self.called("FCALL", name),
            (Way::Load, _) => {
                let mut load = cmd("FUNCTION");
                load.arg("LOAD").arg("REPLACE").arg(LIBRARY.as_str());
                load
            }
            (Way::Hash, _) | (Way::Function, None) => self.called("EVALSHA", &self.program.hash),
            (Way::Text, _) => self.called("EVAL", &self.program.text),
        }
    }

    /// Sends it.
    pub(super) async fn send(
        &self,
        ways: &Ways,
        connection: &mut impl redis::aio::ConnectionLike,
    ) -> RedisResult<Value> {
        let mut way = self.first(ways);
        let mut is_loaded = false;
        loop {
            let said = self.by(way).query_async::<Value>(connection).await;
            match next(way, &mut is_loaded, &said, ways) {
                Some(other) => way = other,
                None => return said,
            }
        }
    }

    /// The same on the caller's thread.
    pub(super) fn send_blocking(&self, ways: &Ways, connection: &mut dyn redis::ConnectionLike) -> RedisResult<Value> {
        let mut way = self.first(ways);
        let mut is_loaded = false;
        loop {
            let said = self.by(way).query::<Value>(connection);
            match next(way, &mut is_loaded, &said, ways) {
                Some(other) => way = other,
                None => return said,
            }
        }
    }

    fn first(&self, ways: &Ways) -> Way {
        if self.program.function.is_none() || ways.has_none.load(Ordering::Relaxed) { Way::Hash } else { Way::Function }
    }
}

/// What follows an answer; `None`: it is the answer. Where something follows, nothing was done yet.
fn next(way: Way, is_loaded: &mut bool, said: &RedisResult<Value>, ways: &Ways) -> Option<Way> {
    match (way, said) {
        (Way::Load, Ok(_)) => {
            *is_loaded = true;
            Some(Way::Function)
        }
        // A connection that broke, and a server that may take no writes now, say nothing of functions.
        (Way::Function, Err(error)) if !*is_loaded && is(error, "Function not found") => Some(Way::Load),
        (Way::Function | Way::Load, Err(error)) if has_no_functions(error) => {
            ways.has_none.store(true, Ordering::Relaxed);
            Some(Way::Hash)
        }
        (Way::Hash, Err(error)) if error.code() == Some("NOSCRIPT") => Some(Way::Text),
        _ => None,
    }
}

fn is(error: &RedisError, text: &str) -> bool {
    error.code().is_some() && error.to_string().contains(text)
}

/// A server before version 7, one whose command was taken away, or a user who may not.
fn has_no_functions(error: &RedisError) -> bool {
    let may_not = error.code() == Some("NOPERM") && is(error, "to run the");
    may_not || is(error, "unknown command") || is(error, "Unknown subcommand")
}
