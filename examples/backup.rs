//! A backup that must not run twice, and must not be thrown away either because its lease was lost for a moment.
//!
//! The backup of a day is one operation, with one id. It lands in a folder through the file sink, whole or not at all, and a
//! second time is answered as a replay. Usage: `backup [AUTHORITY]`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use tenure::core::decide::{Refusal, Request};
use tenure::core::fence::Rule;
use tenure::sink::file::Operation;
use tenure::sink::{FileSink, Sink};
use tenure::{AcquireError, Lease, OperationId, Outcome, Tenure};

const DAY: &str = "backup/2026-03-01";

/// What happens to a run, for the sake of the example.
#[derive(PartialEq)]
enum Mishap {
    None,
    /// An operator takes the lease away while the dump is made, and the run dies before it can say that it is done.
    LostThenDead,
}

async fn backup(url: &str, folder: &Path, name: &str, mishap: Mishap) -> Result<(), Box<dyn Error>> {
    let tenure = Tenure::builder().owner(name).connect(url).await?;
    let sink = FileSink::create(folder, "backups".parse()?, Rule::Sealed)?;
    let mut lease = match tenure.acquire(DAY).sink(Arc::new(sink.clone())).await {
        Err(AcquireError::Refused { refusal: Refusal::Completed { owner, outcome, .. }, .. }) => {
            println!("{name}: {} has made it already: {outcome}", owner.name);
            return Ok(());
        }
        answer => answer?,
    };
    println!("{name}: holds {DAY} under epoch {}", lease.epoch());
    let dump = dump(); // the long part: no write yet, so no checkpoint is due
    if mishap == Mishap::LostThenDead {
        let (actor, reason) = ("operator".parse()?, "looks stuck".parse()?);
        tenure
            .authority()
            .execute(&Request::Revoke { resource: DAY.parse()?, only: Some(lease.epoch()), actor, reason })
            .await??;
    }
    if let Err(lost) = lease.ensure_owned().await {
        println!("{name}: {lost}");
        lease = again(lease, name).await?;
    }
    // Blocks while it writes: in a larger program do it where blocking is allowed.
    let operation = Operation { id: OperationId::new(DAY)?, outcome: Outcome::new(format!("{} bytes", dump.len()))? };
    let verdict = sink.write(lease.token(), Some(&operation), "2026-03-01.dump", dump.as_bytes())?;
    println!("{name}: {verdict}");
    if !verdict.stands() {
        return Ok(lease.heed(sink.id(), &verdict).await?); // stale: another run is at it, this one ends
    }
    if mishap == Mishap::LostThenDead {
        println!("{name}: dies before it can say so");
        return Ok(());
    }
    lease.complete(operation.outcome.as_str()).await?;
    println!("{name}: completed");
    Ok(())
}

/// The way back: a new lease under a new epoch. What was staged may be used only if nobody held it in between.
async fn again(lease: Lease, name: &str) -> Result<Lease, Box<dyn Error>> {
    let resumed = lease.resume().await?;
    if !resumed.uninterrupted {
        return Err("somebody else held it in between: this dump may be older than theirs".into());
    }
    println!("{name}: holds it again under epoch {}, nobody came in between: the dump is good", resumed.lease.epoch());
    Ok(resumed.lease)
}

/// Stands for six terabytes.
fn dump() -> String {
    (1..=1000).map(|row| format!("row {row}\n")).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?; // removed at the end
    let usual = || format!("sqlite:{}/authority.db?create=true", folder.path().display());
    let (url, backups) = (std::env::args().nth(1).unwrap_or_else(usual), folder.path().join("backups"));
    backup(&url, &backups, "first", Mishap::LostThenDead).await?;
    backup(&url, &backups, "second", Mishap::None).await?;
    backup(&url, &backups, "third", Mishap::None).await
}
