//! The ledger as a new holder and an operator see it, and the sink as another ledger's probe.

use super::PostgresLedger;
use super::book::Said;
use super::schema::OPEN;
use crate::ledger::{AttemptKey, AttemptRecord, Decision, Ledger, Probe, ProbeError, Refused, Settled, Which};
use crate::postgres::PostgresSink;
use crate::postgres::failure::failed;
use crate::postgres::link::{Link, Parameter, Server, at_home};
use crate::{Answer, Lookup, SinkError};
use std::sync::Arc;
use tenure_core::ledger::Looked;
use tenure_core::operation::Attempt;
use tenure_core::{Actor, OperationId, Reason, ResourceName, SinkId, Token, Verdict};
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

/// Does something in a transaction of its own, which is rolled back when that is refused. A connection on which it failed is
/// not used again.
macro_rules! within {
    ($sink:expr, |$ledger:ident, $tx:ident| $work:expr) => {{
        let (server, ledger) = (Arc::clone(&$sink.server), $sink.ledger());
        Box::pin(at_home(&$sink.server, async move {
            let mut link = server.link().await?;
            let $tx = begin(&server, &mut link).await?;
            let $ledger = ledger?;
            let done = $work.await?;
            end(&server, $tx, done.is_ok()).await?;
            server.put_back(link);
            Ok(done)
        }))
    }};
}

async fn begin<'l>(server: &Server, link: &'l mut Link) -> Result<Transaction<'l>, SinkError> {
    let fail = |error: tokio_postgres::Error| failed(&server.place, "beginning a transaction", &error);
    let tx = link.client.transaction().await.map_err(fail)?;
    let wait = format!("SET LOCAL lock_timeout = {}", server.place.wait.as_millis());
    tx.batch_execute(&wait).await.map_err(fail)?;
    Ok(tx)
}

async fn end(server: &Server, tx: Transaction<'_>, keep: bool) -> Result<(), SinkError> {
    let ended = if keep { tx.commit().await } else { tx.rollback().await };
    ended.map_err(|error| failed(&server.place, "changing the ledger", &error))
}

impl PostgresSink {
    fn ledger(&self) -> Result<PostgresLedger, SinkError> {
        PostgresLedger::in_schema(&self.server.place.schema)
    }

    fn list_rows(&self, sql: String, parameters: Vec<Parameter>) -> Answer<'_, Result<Vec<AttemptRecord>, SinkError>> {
        let (server, ledger) = (Arc::clone(&self.server), self.ledger());
        Box::pin(at_home(&self.server, async move {
            let rows = server.ask("reading the ledger", &sql, &parameters).await.map_err(|error| match error {
                // The sink was looked at when it was connected, so it is the ledger's table that is not there.
                SinkError::Missing { place } => SinkError::NoLedger { place },
                error => error,
            })?;
            ledger?.records(&rows)
        }))
    }
}

fn text(text: &str) -> Parameter {
    (Box::new(text.to_owned()), Type::TEXT)
}

impl Ledger for PostgresSink {
    fn id(&self) -> &SinkId {
        &self.id
    }

    fn list<'a>(
        &'a self,
        which: Which,
        resource: Option<&'a ResourceName>,
        after: Option<&'a AttemptKey>,
        limit: usize,
    ) -> Answer<'a, Result<Vec<AttemptRecord>, SinkError>> {
        let condition = match which {
            Which::Unknown => &format!("{OPEN} AND state = 'unknown'"),
            Which::Open => OPEN,
            Which::All => "true",
        };
        let sql = match self.ledger() {
            Ok(ledger) => ledger.0.sql.list(condition),
            Err(error) => return Box::pin(async { Err(error) }),
        };
        // No name is empty, so this is before the first one.
        let (from, operation, epoch) =
            after.map_or(("", "", 0), |key| (key.resource.as_str(), key.operation.as_str(), key.epoch.as_i64()));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let only: Parameter = (Box::new(resource.map(ToString::to_string)), Type::TEXT);
        let parameters: Vec<Parameter> =
            vec![text(from), text(operation), (Box::new(epoch), Type::INT8), (Box::new(limit), Type::INT8), only];
        self.list_rows(sql, parameters)
    }

    fn attempts<'a>(&'a self, operation: &'a OperationId) -> Answer<'a, Result<Vec<AttemptRecord>, SinkError>> {
        match self.ledger() {
            Ok(ledger) => self.list_rows(ledger.0.sql.attempts.clone(), vec![text(operation.as_str())]),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn settle<'a>(&'a self, token: &'a Token) -> Answer<'a, Result<Result<Settled, Refused>, SinkError>> {
        let token = token.clone();
        within!(self, |ledger, tx| ledger.settle_after_seal(&tx, &token))
    }

    fn found<'a>(
        &'a self,
        token: &'a Token,
        attempt: &'a AttemptKey,
        looked: &'a Looked,
    ) -> Answer<'a, Result<Result<Attempt, Refused>, SinkError>> {
        let (token, attempt, looked) = (token.clone(), attempt.clone(), looked.clone());
        within!(self, |ledger, tx| ledger.found(&tx, &token, &attempt, &looked))
    }

    fn decide<'a>(
        &'a self,
        attempt: &'a AttemptKey,
        decision: &'a Decision,
        by: &'a Actor,
        why: &'a Reason,
    ) -> Answer<'a, Result<Result<Attempt, Refused>, SinkError>> {
        let said = Said::By(Some(by.clone()), why.to_string());
        let (attempt, decision) = (attempt.clone(), decision.clone());
        within!(self, |ledger, tx| ledger.decide(&tx, &attempt, &decision, &said))
    }
}

/// A sink that is sealed as an outside system of another ledger: it finds the effects that were applied here under
/// an operation's id, and an absence under a token that is registered here is for good.
impl Probe for PostgresSink {
    fn system(&self) -> &SinkId {
        &self.id
    }

    fn look<'a>(&'a self, token: &'a Token, attempt: &'a AttemptRecord) -> Answer<'a, Result<Looked, ProbeError>> {
        let (token, operation, rule) = (token.clone(), attempt.key.operation.clone(), self.server.place.rule);
        let found: Answer<'a, Result<Result<Lookup, Verdict>, SinkError>> =
            within!(self, |ledger, tx| ledger.0.fence.lookup(&tx, &token, &operation));
        Box::pin(async move {
            match found.await.map_err(|error| ProbeError(error.to_string()))? {
                Ok(Lookup::Found(found)) => Ok(Looked::Found(found.outcome)),
                Ok(Lookup::Absent) if rule.is_sealed() => Ok(Looked::AbsentForGood),
                Ok(Lookup::Absent) => Ok(Looked::NotSeen),
                Err(verdict) => Err(ProbeError(format!("the look-up was refused: {verdict}"))),
            }
        })
    }
}
