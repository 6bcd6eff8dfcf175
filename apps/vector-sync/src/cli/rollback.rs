use super::place::{AuthorityAt, IndexAt, Pace, time};
use super::{Problem, screen};
use std::time::Duration;
use vector_sync::point::Points;
use vector_sync::rollback::rollback;
use vector_sync::tell::News;
use vector_sync::tenant::Tenant;
use vector_sync::turn::With;

/// Make an earlier version live again, as a version of its own, in the audit trail.
///
/// What was live is not published again by itself: only when its documents change, or by `sync --again`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose.
    #[arg(long, value_name = "NAME")]
    tenant: Tenant,
    /// The version to go back to; `status --tenant` lists them.
    #[arg(long, value_name = "VERSION")]
    to: u64,
    #[command(flatten)]
    index: IndexAt,
    #[command(flatten)]
    authority: AuthorityAt,
    #[command(flatten)]
    pace: Pace,
    /// How long to wait for somebody who has the tenant.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    wait: Duration,
    /// Write news as lines of JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> Result<u8, Problem> {
        let points = Points::from_env().map_err(Problem::usage)?;
        let index = self.index.open()?;
        let tenure = self.authority.connect(&self.index).await?;
        let tell = screen::teller(self.json);
        let settings = self.pace.settings(self.wait, 1, false);
        let with = With { tenant: &self.tenant, index: &*index, settings: &settings, points: &points, tell: &*tell };
        let outcome = rollback(with, &tenure, self.to).await;
        let status = outcome.status();
        tell.tell(&self.tenant, &News::Ended { outcome });
        Ok(status)
    }
}
