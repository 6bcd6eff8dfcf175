//! Whether enough replicas have what was written.

use super::doubt::Doubt;
use super::fault::Fault;
use super::link::Link;
use super::script::TOUCH;
use super::server::Server;
use crate::StoreError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the replicas are asked, and what they have said.
#[derive(Debug, Default)]
pub(super) struct Replicas {
    pub(super) doubt: Doubt,
    /// How many rounds of asking have begun.
    begun: AtomicU64,
    /// The number of the last round, and what came of it. One at a time: each holds the connection up.
    last: tokio::sync::Mutex<(u64, Option<StoreError>)>,
}

/// Waits until so many replicas as are asked for have all that this connection wrote. `false`: they have not, or nobody
/// can tell.
pub(super) async fn have(server: &Server, link: &Link) -> bool {
    let asked = server.place.replicas;
    if asked == 0 {
        return true;
    }
    let patience = (server.place.timeout / 2).min(std::time::Duration::from_secs(1));
    let mut connection = link.connection.clone();
    let mut command = redis::cmd("WAIT");
    command.arg(asked).arg(u64::try_from(patience.as_millis()).unwrap_or(1_000));
    command.query_async::<u32>(&mut connection).await.is_ok_and(|have| have >= asked)
}

/// After a reading: that replicas have all it may have seen of our changes. Otherwise it would take for made what may be
/// lost.
pub(super) async fn settle_doubt(server: &Server, link: &Arc<Link>) -> Result<(), Fault> {
    if server.place.replicas == 0 || !server.replicas.doubt.is_any() {
        return Ok(());
    }
    let seen = server.replicas.begun.load(Ordering::SeqCst);
    let mut last = server.replicas.last.lock().await;
    // A round that began after the reading speaks for it as well.
    if last.0 <= seen {
        let round = server.replicas.begun.fetch_add(1, Ordering::SeqCst) + 1;
        *last = (round, ask(server, link).await.err());
    }
    last.1.clone().map_or(Ok(()), |error| Err(Fault::certain(error)))
}

async fn ask(server: &Server, link: &Arc<Link>) -> Result<(), StoreError> {
    let left = server.replicas.doubt.left();
    // The doubt may be about what another connection wrote. What this one writes comes after it.
    server.call_on(link, &TOUCH, &[], &[], server.place.timeout).await.map_err(|fault| fault.error)?;
    if have(server, link).await {
        server.replicas.doubt.settle(left);
        return Ok(());
    }
    let (shown, asked) = (&server.place.shown, server.place.replicas);
    Err(StoreError::Unavailable(format!(
        "fewer than {asked} replicas of {shown} have the last change (replicas={asked})"
    )))
}
