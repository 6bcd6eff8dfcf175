//! Connections: one at a time, made when it is needed, and given up when it leads nowhere or to a former primary.

use super::fault::{self, Fault};
use super::place::{Node, Place, Target};
use super::sentinel::Sentinels;
use super::server::Server;
use super::settle;
use crate::{BootClock, StoreError};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// A connection to a server that was the primary when it was made.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: MultiplexedConnection,
    pub(super) node: Node,
    /// Told by the connection itself.
    is_dead: Arc<AtomicBool>,
    /// When the Sentinels named this server last, on the machine's clock.
    confirmed: AtomicU64,
    is_used: AtomicBool,
}

/// The present connection, and who makes the next one.
#[derive(Debug)]
pub(super) struct Links {
    place: Arc<Place>,
    pub(super) sentinels: Option<Sentinels>,
    present: Mutex<Option<Arc<Link>>>,
    making: tokio::sync::Mutex<Making>,
}

#[derive(Debug, Default)]
struct Making {
    /// When the last attempt failed, and why: others that wait are told the same, and the server is left in peace.
    failed: Option<(u64, StoreError)>,
    /// Whether the store has been found, or made, once.
    is_settled: bool,
}

/// How long a failed attempt stands for the next ones.
const REST: Duration = Duration::from_millis(100);

/// How long a connection may take.
pub(super) const CONNECT: Duration = Duration::from_secs(2);

/// How long the word of the Sentinels counts.
pub(super) const CONFIRMED: Duration = Duration::from_secs(1);

impl Links {
    pub(super) fn new(place: Arc<Place>) -> Self {
        let sentinels = match &place.target {
            Target::Server(_) => None,
            Target::Sentinels { .. } => Some(Sentinels::new(Arc::clone(&place))),
        };
        Self { place, sentinels, present: Mutex::default(), making: tokio::sync::Mutex::default() }
    }

    fn present(&self) -> MutexGuard<'_, Option<Arc<Link>>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, if there is one of use.
    fn usable(&self) -> Option<Arc<Link>> {
        let link = self.present().as_ref().filter(|link| !link.is_dead.load(Ordering::Acquire)).cloned()?;
        // A store that was not used for a while did not have its Sentinels asked.
        if self.sentinels.is_some() && since(link.confirmed.load(Ordering::Acquire)) > 2 * CONFIRMED {
            return None;
        }
        link.is_used.store(true, Ordering::Release);
        Some(link)
    }

    /// A connection to the primary. Certainly nothing was asked of it yet when there is none.
    pub(super) async fn get(&self, server: &Arc<Server>) -> Result<Arc<Link>, Fault> {
        if let Some(link) = self.usable() {
            return Ok(link);
        }
        let mut making = self.making.lock().await;
        if let Some(link) = self.usable() {
            return Ok(link);
        }
        if let Some((at, error)) = &making.failed
            && since(*at) < REST
        {
            return Err(Fault::certain(error.clone()));
        }
        match self.make(server, making.is_settled).await {
            Ok(link) => {
                *making = Making { failed: None, is_settled: true };
                *self.present() = Some(Arc::clone(&link));
                Ok(link)
            }
            Err(error) => {
                *self.present() = None;
                making.failed = Some((BootClock.now_nanos(), error.clone()));
                Err(Fault::certain(error))
            }
        }
    }

    async fn make(&self, server: &Arc<Server>, is_settled: bool) -> Result<Arc<Link>, StoreError> {
        let kept = self.present().as_ref().filter(|link| !link.is_dead()).cloned();
        let node = match (self.primary().await, kept) {
            (Ok(node), Some(link)) if node == link.node => return Ok(link.confirmed()),
            (Ok(node), _) => node,
            // Silence of the Sentinels is no failover.
            (Err(error @ StoreError::Unavailable(_)), Some(link)) => {
                tracing::warn!(%error, "no Sentinel says who is the primary");
                return Ok(link.confirmed());
            }
            (Err(error), _) => return Err(error),
        };
        let link = Arc::new(Link::to(&self.place, node).await?);
        settle::fits(server, &link).await?;
        if !is_settled {
            settle::settle(server, &link).await?;
        }
        if self.sentinels.is_some() {
            // Ends with the connection.
            tokio::spawn(watch_over(Arc::downgrade(server), Arc::downgrade(&link)));
        }
        Ok(link)
    }

    /// Where the primary is said to be.
    pub(super) async fn primary(&self) -> Result<Node, StoreError> {
        match (&self.place.target, &self.sentinels) {
            (Target::Sentinels { .. }, Some(sentinels)) => sentinels.primary().await,
            (Target::Sentinels { nodes, .. }, None) => {
                nodes.first().cloned().ok_or_else(|| StoreError::Unavailable("there is no Sentinel".to_owned()))
            }
            (Target::Server(node), _) => Ok(node.clone()),
        }
    }

    /// Gives a connection up. Calls that are under way on it end as they will.
    pub(super) fn leave(&self, link: &Arc<Link>) {
        let mut present = self.present();
        if present.as_ref().is_some_and(|other| Arc::ptr_eq(other, link)) {
            *present = None;
        }
    }
}

impl Link {
    /// Connects.
    pub(super) async fn to(place: &Place, node: Node) -> Result<Self, StoreError> {
        let is_dead = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_dead);
        let hear = move |info: PushInfo| {
            if info.kind == PushKind::Disconnection {
                told.store(true, Ordering::Release);
            }
            Ok::<(), std::convert::Infallible>(())
        };
        let connection = connect(place, &node, place.server(&node), hear).await?;
        let confirmed = AtomicU64::new(BootClock.now_nanos());
        Ok(Self { connection, node, is_dead, confirmed, is_used: AtomicBool::new(true) })
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Acquire)
    }

    fn confirm(&self) {
        self.confirmed.store(BootClock.now_nanos(), Ordering::Release);
    }

    fn confirmed(self: Arc<Self>) -> Arc<Self> {
        self.confirm();
        self
    }
}

/// Connects, within a bound.
pub(super) async fn connect(
    place: &Place,
    node: &Node,
    client: redis::RedisResult<redis::Client>,
    hear: impl redis::aio::AsyncPushSender,
) -> Result<MultiplexedConnection, StoreError> {
    let failed = |error: redis::RedisError| fault::of_connecting(&error, node, place);
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT))
        .set_response_timeout(Some(place.timeout))
        .set_push_sender(hear);
    client.map_err(failed)?.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)
}

/// Asks the Sentinels again and again while the connection is in use, and gives it up when they name somebody else: a
/// primary that was stopped and replaced still believes in itself when it goes on.
async fn watch_over(server: Weak<Server>, link: Weak<Link>) {
    let mut every = tokio::time::interval(CONFIRMED);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    every.tick().await;
    loop {
        every.tick().await;
        let (Some(server), Some(link)) = (server.upgrade(), link.upgrade()) else { return };
        if link.is_dead() {
            return;
        }
        if !link.is_used.swap(false, Ordering::AcqRel) {
            continue;
        }
        match server.links.primary().await {
            Ok(node) if node == link.node => link.confirm(),
            Ok(node) => {
                tracing::warn!(from = %link.node, to = %node, "the Sentinels name another primary");
                server.links.leave(&link);
                return;
            }
            // As above.
            Err(error) => {
                tracing::warn!(%error, "no Sentinel says who is the primary");
                link.confirm();
            }
        }
    }
}

fn since(nanos: u64) -> Duration {
    Duration::from_nanos(BootClock.now_nanos().saturating_sub(nanos))
}
