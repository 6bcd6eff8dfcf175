//! The server that is the primary now, for the sealing side. Seals are few: a call has a connection of its own while it lasts.

use super::answer::{Answer, with_rule};
use super::fault::{self, Fault};
use super::fence::RedisFence;
use super::place::{Node, Place, Target};
use super::program::Verb;
use super::request::Request;
use super::sentinel;
use crate::SinkError;
use redis::{Connection, Value};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whom a sink asks.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) place: Arc<Place>,
    pub(super) fence: RedisFence,
    idle: Mutex<Vec<Link>>,
}

/// A connection to a server that was the primary when it was made.
pub(super) struct Link {
    node: Node,
    pub(super) connection: Connection,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({})", self.node)
    }
}

/// So many connections are kept for later calls.
const IDLE_MAX: usize = 4;

/// How long a connection may take, if the sink's own wait is not shorter.
const CONNECT: Duration = Duration::from_secs(2);

impl Server {
    pub(super) fn new(place: Place) -> Self {
        // The driver takes the process's own; when there is one already, that one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let fence = RedisFence::at(place.shown.clone(), &place.name, place.rule);
        Self { place: Arc::new(place), fence, idle: Mutex::default() }
    }

    /// Asks a verb, and has its answer read.
    pub(super) fn ask<T>(
        &self,
        verb: Verb,
        args: Vec<Vec<u8>>,
        read: impl FnOnce(Answer<'_>) -> Result<T, SinkError>,
    ) -> Result<T, SinkError> {
        let value = self.called(&self.fence.request(verb, args))?;
        read(Answer::of(value, &self.place.shown)).map_err(|error| with_rule(error, self.place.rule))
    }

    /// Whatever a sink is asked may be asked again, so a connection that has died while it was idle is no trouble.
    fn called(&self, request: &Request) -> Result<Value, SinkError> {
        let node = self.primary()?;
        let mut kept = self.take(&node);
        loop {
            let is_fresh = kept.is_none();
            let mut link = match kept.take() {
                Some(link) => link,
                None => self.connect(&node)?,
            };
            let said = request.send_blocking(self.fence.ways(), &mut link.connection);
            match said {
                Ok(value) => {
                    self.keep(link);
                    return Ok(value);
                }
                Err(error) if error.code().is_none() && !error.is_timeout() && !is_fresh => self.idle().clear(),
                Err(error) => {
                    return Err(match fault::of_call(&error, &self.place.shown) {
                        Fault::Certain(error) => error,
                        fault @ Fault::Unknown(_) => fault.into_error(&self.place.shown),
                    });
                }
            }
        }
    }

    /// A connection of one's own.
    pub(super) fn link(&self) -> Result<Link, SinkError> {
        self.connect(&self.primary()?)
    }

    fn primary(&self) -> Result<Node, SinkError> {
        match &self.place.target {
            Target::Server(node) => Ok(node.clone()),
            Target::Sentinels { nodes, primary } => sentinel::primary(&self.place, nodes, primary),
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, node: &Node) -> Option<Link> {
        let mut idle = self.idle();
        idle.retain(|link| link.node == *node);
        idle.pop()
    }

    fn keep(&self, link: Link) {
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(link);
        }
    }

    fn connect(&self, node: &Node) -> Result<Link, SinkError> {
        let place = &self.place.shown;
        let client = self.place.server(node).map_err(|error| fault::of_connecting(&error, place))?;
        let mut link = Link { node: node.clone(), connection: connected(&client, self.place.wait, place)? };
        is_fit(&mut link, place)?;
        Ok(link)
    }

    /// Whether the user may do all that the verbs do: a right that is missing is better named before it is needed.
    pub(super) fn rights(&self) -> Result<(), SinkError> {
        self.ask(Verb::Rights, Vec::new(), |mut answer| answer.expect("ok"))
    }
}

/// Connects, and bounds what is asked on it.
pub(super) fn connected(client: &redis::Client, wait: Duration, place: &str) -> Result<Connection, SinkError> {
    let failed = |error: redis::RedisError| fault::of_connecting(&error, place);
    let connection = client.get_connection_with_timeout(wait.min(CONNECT)).map_err(failed)?;
    connection.set_read_timeout(Some(wait)).map_err(failed)?;
    connection.set_write_timeout(Some(wait)).map_err(failed)?;
    Ok(connection)
}

fn is_fit(link: &mut Link, place: &str) -> Result<(), SinkError> {
    let info = redis::cmd("INFO").arg("server").query::<String>(&mut link.connection);
    // One that may not be asked will refuse what follows with the right it lacks.
    let info = info.unwrap_or_default();
    let mode = info.lines().find_map(|line| line.strip_prefix("redis_mode:")).unwrap_or_default().trim();
    if mode == "cluster" { Err(fault::address(place, fault::CLUSTER)) } else { Ok(()) }
}
