use super::apply::{self, append, append_recorded, meta, write_lease};
use super::file::File;
use crate::store::{Import, StoreError, SwapOutcome, Version};
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};
use tenure_core::record::Seen;
use tenure_core::{AuthorityClock, Instant};

/// Fills an empty store, in one transaction.
pub(super) fn import(connection: &mut Connection, file: &File, content: &Import) -> Result<SwapOutcome, StoreError> {
    let fault = |error: rusqlite::Error| file.place.fault(&error);
    connection.busy_timeout(file.place.busy_timeout).map_err(fault)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fault)?;
    let own = meta(&transaction).map_err(fault)?;
    file.check_origin(&own)?;
    let rows: i64 = transaction.query_row("SELECT count(*) FROM history", (), |found| found.get(0)).map_err(fault)?;
    if rows > 0 {
        return Ok(SwapOutcome::Changed);
    }
    file.guard.unmoved(&file.place)?;
    let grown = fill(&transaction, own, content, file.time.now()?).map_err(fault)?;
    match transaction.commit() {
        Ok(()) => {
            file.guard.note(grown);
            Ok(SwapOutcome::Done)
        }
        // As with a swap: on a full disk, the frame that makes the commit valid is missing.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => Err(fault(error)),
        Err(error) => {
            tracing::warn!(%error, "the store cannot tell whether an import was made");
            Ok(SwapOutcome::Unknown)
        }
    }
}

fn fill(
    transaction: &Transaction<'_>,
    mut own: super::row::Meta,
    content: &Import,
    now: Instant<AuthorityClock>,
) -> rusqlite::Result<Seen> {
    for row in content.rows() {
        append_recorded(transaction, row)?;
    }
    let version = Version(own.versions_dropped + 1);
    for lease in content.leases(now) {
        write_lease(transaction, None, &lease, version)?;
    }
    let (after, expected) = (content.authority(&own.authority, now), Some(own.version));
    apply::put_authority(transaction, &mut own, &after, expected)?;
    // The instants of the imported rows are of the former store's clock.
    transaction.execute("UPDATE meta SET origin_after = (SELECT coalesce(max(number), 0) FROM history)", ())?;
    append(transaction, &content.transition(now))?;
    Ok(Seen { incarnation: after.incarnation, number: transaction.last_insert_rowid().cast_unsigned() })
}
