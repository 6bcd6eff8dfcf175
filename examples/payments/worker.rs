//! The worker: it writes a charge down, marks it, makes it, and writes down what came of it. It never makes one again of
//! which nobody knows what came.

use super::bank::{Bank, Called};
use super::reach;
use rusqlite::{Connection, TransactionBehavior};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tenure::core::fence::Rule;
use tenure::core::operation::Attempt;
use tenure::sink::ledger::{Intended, Intent, NoEffect, reconcile};
use tenure::sink::{SqliteLedger, SqliteSink, digest_of};
use tenure::{OperationId, Tenure, blocking};

pub(crate) const RESOURCE: &str = "order-81";
const LEDGER: SqliteLedger = SqliteLedger::new();
const CENTS: u32 = 1250;

pub(crate) fn work(folder: &Path, name: &str, address: &str, point: &str) -> Result<(), Box<dyn Error>> {
    let bank = Bank::at(address)?;
    let url = format!("sqlite:{}/authority.db", folder.display());
    let tenure = blocking::Tenure::from(blocking::wait_for(Tenure::builder().owner(name).connect(&url))?);
    // The ledger's own database is sealed before this returns: the worker before can move nothing there any more.
    let shop = SqliteSink::open(folder.join("shop.db"), "shop".parse()?, Rule::Sealed)?;
    let lease = tenure.acquire(tenure.wish(RESOURCE).sink(Arc::new(shop.clone())))?;
    let token = lease.token();

    // First what others have left.
    let left = blocking::wait_for(reconcile(&shop, token, &[&bank]))?.map_err(|refused| refused.to_string())?;
    if !left.applied.is_empty() {
        println!("{name}: found at the bank: applied");
    }
    if left.settled.not_applied > 0 {
        println!("{name}: was written down and never sent: not applied");
    }
    for (_, why) in &left.unknown {
        println!("{name}: still unknown: {why}");
    }

    let request = format!("charge {CENTS} cents for {RESOURCE}");
    let intent = Intent {
        operation: OperationId::for_intent(RESOURCE, "charge", &digest_of(request.as_bytes()))?,
        digest: digest_of(request.as_bytes()),
        system: "bank".parse()?,
        owner: name.parse()?,
    };
    let mut database = Connection::open(folder.join("shop.db"))?;
    let tx = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let intended = LEDGER.intent(&tx, token, &intent)?.map_err(|refused| refused.to_string())?;
    reach(point, "before-intent");
    tx.commit()?;
    match intended {
        Intended::Written => {}
        Intended::Effective { .. } => {
            println!("{name}: charged already, nothing to do");
            return Ok(lease.release()?);
        }
        // Not a second time by itself.
        Intended::Unsettled { state, .. } => {
            println!("{name}: leaves it alone: {}", state.name());
            return Ok(lease.release()?);
        }
        other => return Err(format!("{other:?}").into()),
    }
    reach(point, "after-intent");

    let tx = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let marked = LEDGER.sent(tx, token, &intent.operation)?.map_err(|refused| refused.to_string())?;
    reach(point, "after-mark");
    let called = bank.charge(marked.key().operation.as_str(), CENTS, point);
    reach(point, "after-answer");

    let tx = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let operation = &intent.operation;
    let state = match &called {
        Called::Charged(outcome) => LEDGER.done(&tx, token, operation, outcome)?,
        Called::Declined(why) => LEDGER.failed(&tx, token, operation, NoEffect::Refused, &why.parse()?)?,
        Called::Unreached(why) => LEDGER.failed(&tx, token, operation, NoEffect::Unreached, &why.parse()?)?,
        Called::NoAnswer(why) => LEDGER.unknown(&tx, token, operation, &why.parse()?)?,
    };
    let state = state.map_err(|refused| refused.to_string())?;
    tx.commit()?;
    match (state, called) {
        (Attempt::Done, Called::Charged(outcome)) => println!("{name}: {outcome}: done"),
        (state, Called::NoAnswer(why)) => println!("{name}: {why}: {}", state.name()),
        (state, _) => println!("{name}: not charged: {}", state.name()),
    }
    reach(point, "after-done");
    Ok(lease.release()?)
}
