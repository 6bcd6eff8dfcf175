use super::place::{AuthorityAt, IndexAt, Pace, time};
use super::{Problem, screen};
use std::time::Duration;
use vector_sync::point::Points;
use vector_sync::rollback::gc;
use vector_sync::tell::News;
use vector_sync::tenant::Tenant;
use vector_sync::turn::With;

/// Remove what dead epochs have left: shadows of rounds that ended early, versions that are not kept, vectors that nothing uses.
///
/// Every round that publishes does the same. The one who clears up needs the lease like any writer.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose. Without it, all tenants'.
    #[arg(long, value_name = "NAME")]
    tenant: Option<Tenant>,
    #[command(flatten)]
    index: IndexAt,
    #[command(flatten)]
    authority: AuthorityAt,
    #[command(flatten)]
    pace: Pace,
    /// How many versions before the live one are kept for a rollback.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    keep: usize,
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
        let tenants = match &self.tenant {
            Some(tenant) => vec![tenant.clone()],
            None => index.tenants().await.map_err(Problem::failure)?,
        };
        let tenure = self.authority.connect(&self.index).await?;
        let (tell, settings) = (screen::teller(self.json), self.pace.settings(self.wait, self.keep, false));
        let mut status = 0;
        for tenant in &tenants {
            let with = With { tenant, index: &*index, settings: &settings, points: &points, tell: &*tell };
            let outcome = gc(with, &tenure).await;
            status = status.max(outcome.status());
            tell.tell(tenant, &News::Ended { outcome });
        }
        Ok(status)
    }
}
