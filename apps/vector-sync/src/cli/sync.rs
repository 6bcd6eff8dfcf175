use super::place::{AuthorityAt, IndexAt, ModelAt, Pace, time};
use super::rounds::Shop;
use super::tenants::Tenants;
use super::{Problem, screen};
use std::time::Duration;
use vector_sync::outcome::Outcome;
use vector_sync::point::Points;

/// Publish a version of a tenant's documents, or of all tenants', once.
///
/// Only what has changed is embedded again. Nothing is published unless all of it can be.
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
    /// How long to wait for somebody else who has the tenant.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    wait: Duration,
    /// How many versions before the live one are kept for a rollback.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    keep: usize,
    /// Publish these documents although they are live already, or were rolled back from: after damage to an index, for example.
    #[arg(long)]
    again: bool,
    /// How many tenants at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    jobs: usize,
    /// Write news as lines of JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        let points = Points::from_env().map_err(Problem::usage)?;
        self.tenants.fetch().await?;
        let (tenants, index) = (self.tenants.list()?, self.index.open()?);
        let embedder = self.model.open()?;
        let tenure = self.authority.connect(&self.index).await?;
        let tell = screen::teller(self.json);
        let shop = Shop {
            tenure: &tenure,
            index: &*index,
            embedder: &*embedder,
            settings: &self.pace.settings(self.wait, self.keep, self.again),
            points: &points,
            tell: &*tell,
        };
        let outcomes = shop.rounds(&tenants, self.jobs, false).await;
        // The worst of them: what failed before what was lost, and that before what waits for its turn.
        let worst =
            |status: &u8| [70, 69, 76, 75, 65].iter().rev().position(|bad| bad == status).map_or(0, |place| place + 1);
        Ok(outcomes.iter().map(Outcome::status).max_by_key(worst).unwrap_or(0))
    }
}
