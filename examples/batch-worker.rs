//! A worker that goes through its batches, and starts again where it was when it is started again.
//!
//! Each batch is one transaction: the check of the token, the effect, and the record of the operation. A batch that stands
//! already is answered as a replay and not done twice, whoever did it. Usage: `batch-worker [AUTHORITY]`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tenure::core::decide::Refusal;
use tenure::core::fence::Rule;
use tenure::sink::{Sink, SqliteSink, digest_of};
use tenure::{AcquireError, OperationId, Outcome, Tenure};

const BATCHES: [[i64; 3]; 3] = [[1, 2, 3], [10, 20, 30], [100, 200, 300]];

/// Works through the batches as `name`. `ends_before` is where the process dies, for the sake of the example.
async fn work(url: &str, database: &Path, name: &str, ends_before: usize) -> Result<(), Box<dyn Error>> {
    let tenure = Tenure::builder().owner(name).connect(url).await?;
    // Blocks for a moment, as all of SQLite does: in a larger program do it where blocking is allowed.
    let sink = SqliteSink::create(database, "totals".parse()?, Rule::Sealed)?;
    let mut database = rusqlite::Connection::open(database)?;
    database.execute("CREATE TABLE IF NOT EXISTS total (batch TEXT PRIMARY KEY, value INTEGER)", ())?;
    // The receiver is sealed before this returns: what an earlier worker still sends is refused from now on.
    let lease = match tenure.acquire("import-42").sink(Arc::new(sink.clone())).await {
        Err(AcquireError::Refused { refusal: Refusal::Completed { owner, outcome, .. }, .. }) => {
            println!("{name}: nothing to do, {} has completed it: {outcome}", owner.name);
            return Ok(());
        }
        answer => answer?,
    };
    println!("{name}: holds {} under epoch {}", lease.token().resource, lease.epoch());
    for (number, batch) in BATCHES.iter().enumerate() {
        if number == ends_before {
            println!("{name}: ends in the middle");
            return Ok(()); // the lease is dropped, and so given up; after a real crash the next one waits for its ttl
        }
        lease.ensure_owned().await?; // the checkpoint, before what costs something
        let value: i64 = batch.iter().sum();

        // The same for every worker that ever does this batch.
        let operation = OperationId::new(format!("batch-{number}"))?;
        let outcome = Outcome::new(value.to_string())?;
        let content = digest_of(format!("{batch:?}").as_bytes());
        let transaction = database.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let verdict = sink.fence().apply(&transaction, lease.token(), &operation, &content, |transaction| {
            transaction.execute("INSERT INTO total VALUES (?1, ?2)", (operation.as_str(), value))?;
            Ok::<_, rusqlite::Error>(outcome)
        })?;
        if verdict.stands() {
            transaction.commit()?;
            println!("{name}: {operation}: {verdict}");
        } else {
            drop(transaction);
            lease.heed(sink.id(), &verdict).await?; // stale: this worker is lost, and ends here
            return Err(format!("{operation}: {verdict}").into());
        }
    }
    lease.complete(format!("{} batches", BATCHES.len())).await?;
    println!("{name}: completed");
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?; // removed at the end
    let usual = || format!("sqlite:{}/authority.db?create=true", folder.path().display());
    let (url, database) = (std::env::args().nth(1).unwrap_or_else(usual), folder.path().join("totals.db"));
    work(&url, &database, "first", 2).await?;
    work(&url, &database, "second", usize::MAX).await?;
    work(&url, &database, "third", usize::MAX).await?;
    let database = rusqlite::Connection::open(&database)?;
    let sum = "SELECT count(*), coalesce(sum(value), 0) FROM total";
    let (rows, sum): (i64, i64) = database.query_row(sum, (), |row| Ok((row.get(0)?, row.get(1)?)))?;
    println!("{rows} batches stand, their sum is {sum}");
    Ok(())
}
