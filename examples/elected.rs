//! Several candidates, one of which is elected and works; one that has lost stops, and stands for election again.
//!
//! Being elected is holding a lease. Between two checkpoints an elected one that has lost may still believe in its
//! election, as here: what it writes then must be refused by the receiver, see `protect-table`. Usage: `elected [AUTHORITY]`.

use std::error::Error;
use std::time::Duration;
use tenure::core::decide::Request;
use tenure::{Lease, Lost, Tenure};
use tokio::sync::mpsc;

/// Stands for election until it steps down. Says each election; each message in `rounds` is a round of work, and their end
/// asks it to step down.
async fn candidate(
    tenure: Tenure,
    elected: mpsc::Sender<String>,
    mut rounds: mpsc::Receiver<()>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let name = tenure.owner().name.to_string();
    loop {
        let lease = tenure.acquire("scheduler").wait(Duration::from_secs(3600)).await?;
        println!("{name}: elected, epoch {}", lease.epoch());
        elected.send(name.clone()).await?;
        // Drops the work where it stands when a renewal tells of the loss.
        match lease.guard(serve(&name, &lease, &mut rounds)).await.flatten() {
            Ok(()) => {
                lease.release().await?; // no need for the others to wait for the ttl
                println!("{name}: steps down");
                return Ok(());
            }
            Err(lost) => println!("{name}: {lost}"),
        }
    }
}

/// What the elected one does.
async fn serve(name: &str, lease: &Lease, rounds: &mut mpsc::Receiver<()>) -> Result<(), Lost> {
    while let Some(()) = rounds.recv().await {
        let token = lease.ensure_owned().await?; // asks the authority, before each round
        println!("{name}: a round of work under epoch {}", token.epoch);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = tempfile::tempdir()?; // removed at the end
    let usual = || format!("sqlite:{}/authority.db?create=true", folder.path().display());
    let url = std::env::args().nth(1).unwrap_or_else(usual);
    let (say, mut elected) = mpsc::channel(8);
    let connect = async |name: &str| Tenure::builder().owner(name).connect(&url).await;
    let (anna, bert) = (connect("anna").await?, connect("bert").await?);
    let authority = anna.authority().clone();

    let (anna_rounds, rounds) = mpsc::channel(1);
    let anna = tokio::spawn(candidate(anna, say.clone(), rounds));
    elected.recv().await;
    anna_rounds.send(()).await?;

    let (bert_rounds, rounds) = mpsc::channel(1);
    let bert = tokio::spawn(candidate(bert, say, rounds));
    let (actor, reason) = ("operator".parse()?, "anna is too slow".parse()?);
    authority.execute(&Request::Revoke { resource: "scheduler".parse()?, actor, reason }).await??;
    elected.recv().await; // bert
    bert_rounds.send(()).await?;

    // Anna does not know yet. She asks before her next round, stops, and stands for election again.
    anna_rounds.send(()).await?;
    drop(bert_rounds);
    bert.await??;
    elected.recv().await; // anna again
    drop(anna_rounds);
    anna.await?
}
