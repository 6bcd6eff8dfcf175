//! The ledger as a new holder and an operator see it, and the sink as another ledger's probe.

use super::PostgresLedger;
use super::book::Said;
use crate::ledger::{AttemptKey, AttemptRecord, Decision, Ledger, Probe, ProbeError, Refused, Settled, Which};
use crate::postgres::PostgresSink;
use crate::postgres::failure::failed;
use crate::postgres::link::{Link, Server, at_home};
use crate::{Answer, Lookup, SinkError};
use std::sync::Arc;
use tenure_core::ledger::Looked;
use tenure_core::operation::Attempt;
use tenure_core::{Actor, OperationId, Reason, ResourceName, SinkId, Token, Verdict};
use tokio_postgres::Transaction;

/// Does something in a transaction of its own, which is committed if what came of it is to be kept. A connection on which it
/// failed, or did not come to its end in time, is not used again.
macro_rules! within {
    ($sink:expr, $keep:expr, |$ledger:ident, $tx:ident| $work:expr) => {{
        let (server, ledger) = (Arc::clone(&$sink.server), $sink.ledger());
        Box::pin(at_home(&$sink.server, async move {
            let $ledger = ledger?;
            let _turn = server.turn().await?;
            let mut link = server.link().await?;
            let task = link.task();
            let work = async {
                let $tx = begin(&server, &mut link).await?;
                let done = $work.await?;
                end(&server, $tx, $keep(&done)).await?;
                Ok::<_, SinkError>(done)
            };
            // Of several statements each may wait for others.
            let done = server.in_time(2 * server.bound(), &task, work).await??;
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
}

/// A reading is kept, as there is nothing to take back.
const fn always<T>(_: &T) -> bool {
    true
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
        let (resource, after) = (resource.cloned(), after.cloned());
        within!(self, always, |ledger, tx| ledger.list(&tx, which, resource.as_ref(), after.as_ref(), limit))
    }

    fn attempts<'a>(&'a self, operation: &'a OperationId) -> Answer<'a, Result<Vec<AttemptRecord>, SinkError>> {
        let operation = operation.clone();
        within!(self, always, |ledger, tx| ledger.checked_attempts(&tx, &operation))
    }

    fn settle<'a>(&'a self, token: &'a Token) -> Answer<'a, Result<Result<Settled, Refused>, SinkError>> {
        let token = token.clone();
        within!(self, Result::is_ok, |ledger, tx| ledger.settle_after_seal(&tx, &token))
    }

    fn found<'a>(
        &'a self,
        token: &'a Token,
        attempt: &'a AttemptKey,
        looked: &'a Looked,
    ) -> Answer<'a, Result<Result<Attempt, Refused>, SinkError>> {
        let (token, attempt, looked) = (token.clone(), attempt.clone(), looked.clone());
        within!(self, Result::is_ok, |ledger, tx| ledger.found(&tx, &token, &attempt, &looked))
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
        within!(self, Result::is_ok, |ledger, tx| ledger.decide(&tx, &attempt, &decision, &said))
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
            within!(self, Result::is_ok, |ledger, tx| ledger.0.fence.lookup(&tx, &token, &operation));
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
