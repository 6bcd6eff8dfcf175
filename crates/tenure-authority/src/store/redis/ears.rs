//! Hearing of the changes that others make.

use super::link::connect;
use super::place::Node;
use super::server::Server;
use crate::StoreError;
use crate::store::{Hint, Wakes};
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, PushInfo, PushKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tenure_core::ResourceName;
use tokio::sync::Notify;

/// How often a quiet connection is looked after.
const LOOK: Duration = Duration::from_secs(5);

/// How long to rest after a connection did not come about.
const REST: Duration = Duration::from_millis(250);

/// Listens until the store is gone. `stir` is told when the store goes, or a connection ends.
pub(super) async fn listen(server: Weak<Server>, wakes: Wakes, stir: Arc<Notify>) {
    let mut was_told = false;
    loop {
        let Some(present) = server.upgrade() else { return };
        match subscribe(&present, &wakes, &stir).await {
            Ok((connection, node, is_over)) => {
                was_told = false;
                // Nobody listened until now.
                wakes.tell_all();
                drop(present);
                stay(&server, connection, &node, &is_over, &stir).await;
            }
            Err(error) => {
                if !std::mem::replace(&mut was_told, true) {
                    tracing::warn!(%error, "changes by others are not heard of");
                }
                drop(present);
                let _ = tokio::time::timeout(REST, stir.notified()).await;
            }
        }
    }
}

type Subscribed = (MultiplexedConnection, Node, Arc<AtomicBool>);

async fn subscribe(server: &Server, wakes: &Wakes, stir: &Arc<Notify>) -> Result<Subscribed, StoreError> {
    let place = &server.place;
    let node = server.links.primary().await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (ended, stirred, told) = (Arc::clone(&is_over), Arc::clone(stir), wakes.clone());
    let hear = move |info: PushInfo| {
        match info.kind {
            PushKind::Message => tell(&told, &info),
            PushKind::Disconnection => {
                ended.store(true, Ordering::Release);
                stirred.notify_one();
            }
            _ => {}
        }
        Ok::<(), std::convert::Infallible>(())
    };
    let mut connection = connect(place, &node, place.server(&node), hear).await?;
    let said = connection.subscribe(place.channel()).await;
    said.map_err(|error| super::fault::of_call(&error, place).error)?;
    Ok((connection, node, is_over))
}

/// A message has a line for each resource: a letter that says what is known of it now, and its name. A line of one letter
/// is about any resource.
fn tell(wakes: &Wakes, info: &PushInfo) {
    let said = info.data.get(1).cloned().and_then(|said| String::from_redis_value(said).ok());
    // What cannot be read may be about anything, as a `*` is.
    let Some(said) = said else { return wakes.tell_all() };
    for one in said.split('\n') {
        match one.split_at_checked(1).map(|(hint, name)| (hint, ResourceName::new(name))) {
            Some((hint, Ok(resource))) => wakes.tell(&resource, Hint::from_code(hint)),
            _ => wakes.tell_all(),
        }
    }
}

/// Until the connection, the store or the primary at its other end is gone.
async fn stay(
    server: &Weak<Server>,
    mut connection: MultiplexedConnection,
    node: &Node,
    is_over: &AtomicBool,
    stir: &Notify,
) {
    loop {
        let _ = tokio::time::timeout(LOOK, stir.notified()).await;
        let Some(server) = server.upgrade() else { return };
        if is_over.load(Ordering::Acquire) {
            return;
        }
        let answers = redis::cmd("PING").query_async::<redis::Value>(&mut connection).await.is_ok();
        let is_left = server.links.primary().await.is_ok_and(|primary| primary != *node);
        if !answers || is_left {
            return;
        }
    }
}
