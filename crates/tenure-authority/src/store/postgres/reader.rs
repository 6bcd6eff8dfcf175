//! Reading, each time in one statement, so that everything is of one moment.

use super::link::{Lane, Server};
use super::row::{self, Bits, Columns, lease_columns, session_columns};
use crate::StoreError;
use crate::store::{HistoryQuery, Listed, Order, Page, Read, Recorded, Versions};
use std::sync::Arc;
use tenure_core::decide::{Keys, View};
use tenure_core::record::LeaseRecord;
use tenure_core::{ResourceName, SessionId, StoreIdentity};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

type Result<T> = std::result::Result<T, StoreError>;

/// What is read for several requests, in the order in which they are given.
pub(super) async fn read(server: &Server, sql: &str, keys: &[&Keys]) -> Result<Vec<Result<Read>>> {
    let sessions: Vec<_> = keys.iter().map(|keys| keys.session.map(|id| Bits(id.bits()))).collect();
    let resources: Vec<_> = keys.iter().map(|keys| row::name(keys.resource.as_ref())).collect();
    let grants: Vec<_> = keys.iter().map(|keys| keys.grant.map(|id| Bits(id.bits()))).collect();
    let seen = server.time.seen();
    let parameters =
        [(&sessions as _, Type::BYTEA_ARRAY), (&resources as _, Type::TEXT_ARRAY), (&grants as _, Type::BYTEA_ARRAY)];
    let rows = server.ask(Lane::Read, sql, &parameters).await.map_err(super::fault::Fault::into_error)?;
    let mut found: Vec<_> = keys.iter().map(|_| None).collect();
    for row in &rows {
        let mut columns = Columns::new(row);
        let place = usize::try_from(columns.next::<i64>()?).unwrap_or_default();
        if let Some(found) = place.checked_sub(1).and_then(|place| found.get_mut(place)) {
            *found = Some(one(server, columns, seen));
        }
    }
    let lost = || Err(StoreError::Corrupt("its record of itself is missing".to_owned()));
    Ok(found.into_iter().map(|found| found.unwrap_or_else(lost)).collect())
}

fn one(
    server: &Server,
    mut columns: Columns<'_>,
    seen: tenure_core::Instant<tenure_core::AuthorityClock>,
) -> Result<Read> {
    let Some(observed) = columns.next::<Option<&str>>()? else {
        return Err(StoreError::Unavailable(format!("{} is a standby", server.place)));
    };
    let observed = StoreIdentity::new(observed).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let (authority, authority_version) = columns.authority()?;
    let history = columns.unsigned()?;
    let newest_at = columns.optional_instant()?;
    let grant_known = columns.next()?;
    let holdings = columns.holdings()?;
    let (caller, caller_version) = columns.session()?.unzip();
    let (lease, lease_version) = columns.lease()?.unzip();
    let (holder, holder_version) = columns.session()?.unzip();
    let now = server.time.settle(seen, newest_at, columns.instant()?)?;
    Ok(Read {
        view: View { authority, observed, history, caller, holdings, lease, holder, grant_known },
        versions: Versions {
            authority: Some(authority_version),
            caller: caller_version,
            lease: lease_version,
            holder: holder_version,
        },
        now,
    })
}

pub(super) async fn grants(server: Arc<Server>, id: SessionId) -> Result<Vec<LeaseRecord>> {
    let sql = format!(
        concat!(
            "SELECT ",
            lease_columns!(),
            " FROM {}.lease l WHERE l.session_id = $1 AND l.phase IN ('sealing', 'held') ORDER BY l.resource"
        ),
        server.place.schema
    );
    let rows = listed(&server, &sql, &[(&Bits(id.bits()), Type::BYTEA)]).await?;
    rows.iter().filter_map(|row| Columns::new(row).lease().transpose()).map(|row| Ok(row?.0)).collect()
}

pub(super) async fn leases(server: Arc<Server>, page: Page<ResourceName>) -> Result<Vec<Listed>> {
    let schema = &server.place.schema;
    let sql = format!(
        concat!(
            "SELECT ",
            lease_columns!(),
            ", ",
            session_columns!("h"),
            ", {}.clock_ns() FROM {}.lease l LEFT JOIN {}.session h ON h.id = l.session_id \
              WHERE l.resource > $1 ORDER BY l.resource LIMIT $2"
        ),
        schema, schema, schema
    );
    let seen = server.time.seen();
    // No name is empty, so this is before the first one.
    let after = row::name(page.after.as_ref()).unwrap_or("");
    let rows = listed(&server, &sql, &[(&after, Type::TEXT), (&limit(page.limit), Type::INT8)]).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut columns = Columns::new(row);
        let (lease, holder) = (columns.lease()?, columns.session()?.map(|(session, _)| session));
        let now = server.time.settle(seen, None, columns.instant()?)?;
        found.extend(lease.map(|(lease, _)| Listed { lease, holder, now }));
    }
    Ok(found)
}

/// Rows of one resource are found by going through the history: an index over it would cost each swap.
pub(super) async fn history(server: Arc<Server>, query: HistoryQuery) -> Result<Vec<Recorded>> {
    let (beyond, order, none) = match query.order {
        Order::OldestFirst => ("number > $1", "number", 0),
        Order::NewestFirst => ("number < $1", "number DESC", i64::MAX),
    };
    let sql = format!(
        "SELECT number, at_ns, wall, event, resource, session_id, epoch, grant_id, actor, why FROM {}.history \
         WHERE {beyond} AND ($2::text IS NULL OR resource = $2) ORDER BY {order} LIMIT $3",
        server.place.schema
    );
    let after = query.after.map_or(none, |after| i64::try_from(after).unwrap_or(i64::MAX));
    let resource = row::name(query.resource.as_ref());
    let rows =
        listed(&server, &sql, &[(&after, Type::INT8), (&resource, Type::TEXT), (&limit(query.limit), Type::INT8)])
            .await?;
    rows.iter().map(|row| Columns::new(row).recorded()).collect()
}

pub(super) async fn idle_sessions(server: Arc<Server>, most: usize) -> Result<Vec<SessionId>> {
    // First those that nobody has ended yet, then those that ended longest ago: a bounded sweep always gets on.
    let sql = format!(
        "SELECT s.id FROM {0}.session s, {0}.meta m \
         WHERE s.ended IS NOT NULL OR s.deadline_ns <= greatest($1, {0}.clock_ns()) OR s.incarnation <> m.incarnation \
         ORDER BY s.ended IS NOT NULL, coalesce(s.ended_at_ns, s.deadline_ns), s.id LIMIT $2",
        server.place.schema
    );
    let seen = row::instant_to(server.time.seen());
    let rows = listed(&server, &sql, &[(&seen, Type::INT8), (&limit(most), Type::INT8)]).await?;
    rows.iter().map(|row| Columns::new(row).next::<Bits>().map(|id| SessionId::from_bits(id.0))).collect()
}

async fn listed(server: &Server, sql: &str, parameters: &[super::link::Parameter<'_>]) -> Result<Vec<Row>> {
    server.ask(Lane::List, sql, parameters).await.map_err(super::fault::Fault::into_error)
}

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
}
