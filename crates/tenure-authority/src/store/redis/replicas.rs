//! Whether enough replicas have what was written.

use super::fault::Fault;
use super::link::Link;
use super::script::TOUCH;
use super::server::Server;
use crate::StoreError;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Waits until so many replicas as are asked for have all that this connection wrote. `false`: they have not, or nobody
/// can tell; until they have, nothing is read, since a reading would take for made what may be lost.
pub(super) async fn have(server: &Server, link: &Link) -> bool {
    let asked = server.place.replicas;
    if asked == 0 {
        return true;
    }
    let patience = (server.place.timeout / 2).min(std::time::Duration::from_secs(1));
    let mut connection = link.connection.clone();
    let mut command = redis::cmd("WAIT");
    command.arg(asked).arg(u64::try_from(patience.as_millis()).unwrap_or(1_000));
    let have = command.query_async::<u32>(&mut connection).await.is_ok_and(|have| have >= asked);
    server.is_in_doubt.store(!have, Ordering::Release);
    have
}

/// Before a reading: that there is no doubt, or none any more.
pub(super) async fn settle_doubt(server: &Server, link: &Arc<Link>) -> Result<(), Fault> {
    if !server.is_in_doubt.load(Ordering::Acquire) {
        return Ok(());
    }
    // The doubt may be about what another connection wrote. What this one writes comes after it.
    server.call_on(link, &TOUCH, &[], server.place.timeout).await?;
    if have(server, link).await {
        return Ok(());
    }
    let (shown, asked) = (&server.place.shown, server.place.replicas);
    Err(Fault::certain(StoreError::Unavailable(format!(
        "fewer than {asked} replicas of {shown} have the last change (replicas={asked})"
    ))))
}
