use super::apply::{self, Batch};
use super::row::{self, Meta, session_columns};
use rusqlite::{Result, Transaction};
use tenure_core::decide::Swap;
use tenure_core::record::{EndReason, Event, SessionState, Transition};
use tenure_core::{Actor, AuthorityClock, Instant, Reason};

/// Puts every instant in the file onto a clock that began anew: readings of two beginnings cannot be compared.
///
/// `highest` is the highest reading of the old clock that the file bears witness to.
pub(super) fn rebase(
    transaction: &Transaction<'_>,
    meta: &Meta,
    highest: Option<Instant<AuthorityClock>>,
    now: Instant<AuthorityClock>,
    origin: &str,
) -> Result<()> {
    let meta = begin_anew(transaction, meta, highest, now, origin)?;
    let sql = concat!("SELECT ", session_columns!("s"), " FROM session s ORDER BY s.id");
    let sessions = {
        let mut statement = transaction.prepare(sql)?;
        let rows = statement.query_map((), |found| row::session(found, 0))?;
        rows.collect::<Result<Vec<_>>>()?
    };
    let mut batch = Batch::new(transaction, meta);
    for found in sessions.into_iter().flatten() {
        let after = found.session.after_reboot(now);
        let ends = found.session.state == SessionState::Live && after.state != SessionState::Live;
        let transition = Transition {
            at: now,
            // A session that goes on hands nothing over, like one that was renewed.
            event: if ends { Event::Ended } else { Event::Renewed },
            resource: None,
            session: Some(after.id),
            epoch: None,
            grant: None,
            actor: Actor::new(after.owner.name.as_str()).ok(),
            why: Reason::new(EndReason::Rebooted.to_string()).ok(),
        };
        let change = tenure_core::decide::Change::Session(after);
        let swap = Swap { change, relies_on: None, transition };
        batch.apply(&swap, Some(found.version))?;
    }
    batch.finish().map(drop)?;
    // Since when something is held is only vouched for from now on.
    transaction.execute("UPDATE lease SET since_ns = ?1, version = version + 1", [row::instant_to(now)])?;
    Ok(())
}

fn begin_anew(
    transaction: &Transaction<'_>,
    meta: &Meta,
    highest: Option<Instant<AuthorityClock>>,
    now: Instant<AuthorityClock>,
    origin: &str,
) -> Result<Meta> {
    // A quarantine that was over stays over; what is left of another one cannot be told, so it begins anew.
    let until = meta.authority.quarantined_until;
    let until = until.filter(|until| !highest.is_some_and(|highest| highest.reached(until)));
    let until = until.map(|_| now.after(meta.authority.max_ttl.get()));
    transaction.execute(
        "UPDATE meta SET origin = ?1, origin_after = (SELECT coalesce(max(number), 0) FROM history), \
         quarantined_until_ns = ?2, version = version + 1",
        (origin, until.map(row::instant_to)),
    )?;
    apply::meta(transaction)
}
