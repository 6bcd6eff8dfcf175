//! What in the server's settings weakens the store's promises.

use super::link::{Lane, Server};
use crate::StoreError;
use std::sync::Arc;

/// One sentence each: what is set, what it may cost, and what to do.
pub(super) async fn warnings(server: Arc<Server>) -> Result<Vec<String>, StoreError> {
    // Whoever may not see a standby's state is told nothing of it: it may well be waited for.
    let sql = "SELECT current_setting('fsync'), current_setting('full_page_writes'), \
               current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), \
               current_setting('idle_in_transaction_session_timeout'), \
               (SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'async')";
    let rows = server.ask(Lane::List, sql, &[]).await.map_err(super::fault::Fault::into_error)?;
    let Some(row) = rows.first() else { return Ok(Vec::new()) };
    let text = |at: usize| row.try_get::<_, &str>(at).unwrap_or_default();
    let (fsync, pages, commit, standbys, idle) = (text(0), text(1), text(2), text(3), text(4));
    let behind: i64 = row.try_get(5).unwrap_or_default();
    let mut found = Vec::new();
    let mut warn = |applies: bool, text: &str| found.extend(applies.then(|| text.to_owned()));
    warn(
        fsync == "off",
        "fsync=off: a crash of the server's machine may damage the store and lose grants; switch it on",
    );
    warn(pages == "off", "full_page_writes=off: a crash of the server's machine may damage the store; switch it on");
    warn(
        commit == "off",
        "synchronous_commit=off: a crash of the server loses the grants of its last moments, and nothing notices; set it \
         on for this user",
    );
    warn(
        commit != "off" && (behind > 0 || !standbys.is_empty() && commit == "local"),
        "a standby follows without being waited for: a failover to it may lose the last grants, and the store then \
         quarantines; name it in synchronous_standby_names, with synchronous_commit=on",
    );
    warn(
        idle == "0",
        "idle_in_transaction_session_timeout is off: a client that stands still within a transaction may hold rows of the \
         store for ever; set it, to a minute for example",
    );
    Ok(found)
}
