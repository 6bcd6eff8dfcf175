use super::place::{AuthorityAt, IndexAt, ModelAt, Pace, time};
use super::rounds::Shop;
use super::tenants::Tenants;
use super::{Problem, screen};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tenure::{Loss, LossCounts};
use tokio::signal::unix::{SignalKind, signal};
use vector_sync::outcome::Outcome;
use vector_sync::patience::pause;
use vector_sync::point::Points;

/// Keep all tenants in step, until somebody ends it (SIGINT, SIGTERM). Run as many as you like, on as many machines.
///
/// A worker looks at each tenant without a lease first, and takes its turn only when there is something to do and nobody else
/// does it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    tenants: Tenants,
    #[command(flatten)]
    index: IndexAt,
    #[command(flatten)]
    authority: AuthorityAt,
    #[command(flatten)]
    model: ModelAt,
    #[command(flatten)]
    pace: Pace,
    /// How long to rest between two looks.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    every: Duration,
    /// How many versions before the live one are kept for a rollback.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    keep: usize,
    /// How many tenants at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    jobs: usize,
    /// Write news as lines of JSON.
    #[arg(long)]
    json: bool,
}

/// What a worker has done, when it ends. Losses stand apart from failures.
#[derive(Debug, Default, Serialize)]
struct Account {
    rounds: BTreeMap<&'static str, u64>,
    losses: BTreeMap<&'static str, u64>,
}

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        let points = Points::from_env().map_err(Problem::usage)?;
        let index = self.index.open()?;
        // What is wrong with the command line is said at once, and not in each look.
        self.tenants.list()?;
        let embedder = self.model.open()?;
        let tenure = self.authority.connect(&self.index).await?;
        let tell = screen::teller(self.json);
        let shop = Shop {
            tenure: &tenure,
            index: &*index,
            embedder: &*embedder,
            settings: &self.pace.settings(Duration::ZERO, self.keep, false),
            points: &points,
            tell: &*tell,
        };
        let mut account = Account::default();
        let looks = async {
            loop {
                match self.tenants.list() {
                    Ok(tenants) => account.add(&shop.rounds(&tenants, self.jobs, true).await),
                    Err(problem) => screen::complain(&problem.what),
                }
                pause(self.every).await;
            }
        };
        // A round that is dropped gives its lease back; the next worker goes on with what is kept.
        tokio::select! {
            () = looks => {}
            asked = asked_to_end() => asked?,
        }
        account.lost(&tenure.losses());
        if self.json {
            screen::say_json(&account);
        } else {
            screen::say(&account.to_string());
        }
        Ok(0)
    }
}

async fn asked_to_end() -> Result<(), Problem> {
    let deaf = |error: std::io::Error| Problem::failure(format!("signals cannot be heard: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(deaf)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(deaf)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

impl Account {
    fn add(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            *self.rounds.entry(outcome.name()).or_default() += 1;
        }
    }

    /// Leases that were given back are no losses.
    fn lost(&mut self, counts: &LossCounts) {
        for (loss, count) in counts.iter().filter(|(loss, count)| *loss != Loss::Ended && *count > 0) {
            self.losses.insert(loss.name(), count);
        }
    }
}

impl std::fmt::Display for Account {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |counts: &BTreeMap<&'static str, u64>| {
            if counts.is_empty() {
                return "none".to_owned();
            }
            counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
        };
        write!(out, "rounds: {}; leases lost: {}", list(&self.rounds), list(&self.losses))
    }
}
