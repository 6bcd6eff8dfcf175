//! Rounds of several tenants, side by side.

use futures_util::stream::{self, StreamExt};
use tenure::Tenure;
use vector_sync::embed::Embedder;
use vector_sync::index::Index;
use vector_sync::outcome::Outcome;
use vector_sync::point::Points;
use vector_sync::round::Round;
use vector_sync::source::Source;
use vector_sync::stage::Stage;
use vector_sync::tell::{News, Tell};
use vector_sync::tenant::Tenant;
use vector_sync::turn::{Settings, With};

/// What all rounds of a process have in common.
pub(crate) struct Shop<'a> {
    pub(crate) tenure: &'a Tenure,
    pub(crate) index: &'a dyn Index,
    pub(crate) embedder: &'a dyn Embedder,
    pub(crate) settings: &'a Settings,
    pub(crate) points: &'a Points,
    pub(crate) tell: &'a dyn Tell,
}

impl Shop<'_> {
    /// A round of each tenant, so many at once. `due` leaves out those for whom there is nothing to do.
    pub(crate) async fn rounds(&self, tenants: &[(Tenant, Box<dyn Source>)], jobs: usize, due: bool) -> Vec<Outcome> {
        let rounds = tenants.iter().map(async |(tenant, source)| {
            let outcome = self.round(tenant, &**source, due).await?;
            self.tell.tell(tenant, &News::Ended { outcome: outcome.clone() });
            Some(outcome)
        });
        stream::iter(rounds).buffer_unordered(jobs.max(1)).filter_map(std::future::ready).collect().await
    }

    async fn round(&self, tenant: &Tenant, source: &dyn Source, due: bool) -> Option<Outcome> {
        let Self { tenure, index, embedder, settings, points, tell } = *self;
        let round = Round { with: With { tenant, index, settings, points, tell }, source, embedder };
        if due {
            match round.is_due().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(why) => return Some(Outcome::Failed { stage: Stage::Listing, epoch: None, why }),
            }
        }
        Some(round.run(tenure).await)
    }
}
