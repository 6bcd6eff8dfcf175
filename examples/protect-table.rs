//! A table that only the present holder can change: every write passes the fence, in the caller's own transaction.
//!
//! Two things are needed: the fence is installed once in the database of the table, by a migration; and each transaction that
//! writes asks `admit` first. Usage: `protect-table [AUTHORITY]`.

use rusqlite::{Connection, TransactionBehavior};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tenure::core::decide::Request;
use tenure::core::fence::Rule;
use tenure::sink::{SqliteFence, SqliteSink};
use tenure::{Tenure, Token, Verdict, blocking};

const FENCE: SqliteFence = SqliteFence::new(Rule::Sealed);

/// The migration: once for each database, with the tables of your own. May be repeated.
fn migrate(database: &Connection) -> Result<(), Box<dyn Error>> {
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.execute_batch("CREATE TABLE IF NOT EXISTS price (article TEXT PRIMARY KEY, cents INTEGER)")?;
    Ok(FENCE.install(database)?)
}

/// The only way to write a price. The check and the write are one transaction, begun with IMMEDIATE, so that nobody can be
/// sealed in between. The inner `Err` is the verdict: nothing was written.
fn set_price(database: &mut Connection, token: &Token, cents: i64) -> Result<Result<(), Verdict>, Box<dyn Error>> {
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Err(verdict) = FENCE.admit(&transaction, token)? {
        return Ok(Err(verdict)); // the transaction is rolled back when it is dropped
    }
    transaction.execute("INSERT OR REPLACE INTO price VALUES ('bread', ?1)", [cents])?;
    transaction.commit()?;
    Ok(Ok(()))
}

/// Takes the right to write. The receiver is sealed before this returns.
fn acquire(tenure: &blocking::Tenure, database: &Path) -> Result<blocking::Lease, Box<dyn Error>> {
    let receiver = SqliteSink::open(database, "prices".parse()?, Rule::Sealed)?;
    Ok(tenure.acquire(tenure.wish("price-list").sink(Arc::new(receiver)))?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?; // removed at the end
    let usual = || format!("sqlite:{}/authority.db?create=true", folder.path().display());
    let (url, path) = (std::env::args().nth(1).unwrap_or_else(usual), folder.path().join("shop.db"));
    let connect = |name: &str| blocking::wait_for(Tenure::builder().owner(name).connect(&url));
    let (one, two) = (blocking::Tenure::from(connect("one")?), blocking::Tenure::from(connect("two")?));
    let mut database = Connection::open(&path)?;
    migrate(&database)?;

    let old = acquire(&one, &path)?;
    set_price(&mut database, old.token(), 250)?.map_err(|verdict| verdict.to_string())?;
    println!("one: wrote 250 under epoch {}", old.token().epoch);

    // The first writer stands still: a pause, a suspended laptop. Its lease ends; here an operator ends it.
    let (actor, reason) = ("operator".parse()?, "one does not answer".parse()?);
    let revoke = Request::Revoke { resource: "price-list".parse()?, only: Some(old.token().epoch), actor, reason };
    blocking::wait_for(two.authority().execute(&revoke))??;
    let new = acquire(&two, &path)?;
    set_price(&mut database, new.token(), 270)?.map_err(|verdict| verdict.to_string())?;
    println!("two: wrote 270 under epoch {}", new.token().epoch);

    // It wakes up behind its last checkpoint, and sends what it had prepared.
    match set_price(&mut database, old.token(), 260)? {
        Ok(()) => return Err("an old write was accepted".into()),
        Err(verdict) => println!("one: refused: {verdict}"),
    }
    let cents: i64 = database.query_row("SELECT cents FROM price", (), |row| row.get(0))?;
    println!("the table holds {cents}");
    Ok(new.release()?)
}
