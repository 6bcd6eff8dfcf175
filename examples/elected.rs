//! Several candidates, one of which is elected and works; one that has lost stops, and stands for election again.
//!
//! Being elected is holding a lease. Between two checkpoints an elected one that has lost may still believe in its
//! election, as here: what it writes then must be refused by the receiver, see `protect-table`. Usage: `elected [AUTHORITY]`.

use std::error::Error;
use std::time::Duration;
use tenure::core::decide::Request;
use tenure::{Lease, Lost, Tenure};
use tokio::sync::mpsc;

/// Stands for election until it steps down. Each message in `rounds` is a round of work, and their end asks it to step
/// down. It tells `news` of each election and of each round done.
async fn candidate(
    tenure: Tenure,
    news: mpsc::Sender<()>,
    mut rounds: mpsc::Receiver<()>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let name = tenure.owner().name.to_string();
    loop {
        let lease = tenure.acquire("scheduler").wait(Duration::from_secs(3600)).await?;
        println!("{name}: elected, epoch {}", lease.epoch());
        news.send(()).await?;
        // Drops the work where it stands when a renewal tells of the loss.
        match lease.guard(serve(&name, &lease, &mut rounds, &news)).await.flatten() {
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
async fn serve(
    name: &str,
    lease: &Lease,
    rounds: &mut mpsc::Receiver<()>,
    news: &mpsc::Sender<()>,
) -> Result<(), Lost> {
    while let Some(()) = rounds.recv().await {
        let token = lease.ensure_owned().await?; // asks the authority, before each round
        println!("{name}: a round of work under epoch {}", token.epoch);
        let _ = news.send(()).await; // whether anybody listens does not matter to the work
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let folder = tempfile::tempdir()?; // removed at the end
    let usual = || format!("sqlite:{}/authority.db?create=true", folder.path().display());
    let url = std::env::args().nth(1).unwrap_or_else(usual);
    let (say, mut news) = mpsc::channel(8);
    let connect = async |name: &str| Tenure::builder().owner(name).connect(&url).await;
    let (anna, bert) = (connect("anna").await?, connect("bert").await?);
    let authority = anna.authority().clone();

    let (anna_rounds, rounds) = mpsc::channel(1);
    let anna = tokio::spawn(candidate(anna, say.clone(), rounds));
    anna_rounds.send(()).await?;
    news.recv().await; // anna is elected
    news.recv().await; // and has done a round

    let (bert_rounds, rounds) = mpsc::channel(1);
    let bert = tokio::spawn(candidate(bert, say, rounds));
    let (actor, reason) = ("operator".parse()?, "anna is too slow".parse()?);
    authority.execute(&Request::Revoke { resource: "scheduler".parse()?, only: None, actor, reason }).await??;
    bert_rounds.send(()).await?;
    news.recv().await; // bert is elected
    news.recv().await; // and has done a round

    // Anna does not know yet. She asks before her next round, stops, and stands for election again.
    anna_rounds.send(()).await?;
    drop(bert_rounds);
    bert.await??;
    news.recv().await; // anna is elected again
    drop(anna_rounds);
    anna.await?
}
