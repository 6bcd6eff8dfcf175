//! One round: from a tenant's documents to a version that is live.

mod build;
mod finish;
mod listing;
mod publish;
mod verify;

pub use finish::clear;
pub(crate) use finish::{record, record_what_is_missing};
pub(crate) use publish::{make, operation};

use crate::embed::Embedder;
use crate::index::{Live, Round as Record, State, Why};
use crate::manifest::{Making, Manifest};
use crate::outcome::{Outcome, Published};
use crate::point::Point;
use crate::source::Source;
use crate::stage::Stage;
use crate::turn::{Stop, Turn, With};
use tenure::Tenure;

/// A round to be made.
#[derive(Clone, Copy)]
pub struct Round<'a> {
    /// Whose, where, how.
    pub with: With<'a>,
    /// The documents.
    pub source: &'a dyn Source,
    /// The model.
    pub embedder: &'a dyn Embedder,
}

impl Round<'_> {
    /// Makes it. It never ends as a partial success.
    pub async fn run(&self, tenure: &Tenure) -> Outcome {
        let mut turn = match Turn::take(self.with, tenure).await {
            Ok(turn) => turn,
            Err(outcome) => return outcome,
        };
        let result = self.under(&mut turn).await;
        if let Err(Stop::Failed(why)) = &result {
            let note = format!("{}: {why}", turn.stage());
            finish::record_failure(&turn, note).await;
        }
        turn.end(result).await
    }

    async fn under(&self, turn: &mut Turn<'_>) -> Result<Outcome, Stop> {
        let With { tenant, index, settings, .. } = self.with;
        let live = turn.read(async || index.live(tenant).await).await?;
        record_what_is_missing(turn, live.as_ref()).await?;

        turn.enter(Stage::Listing).await?;
        let listed = self.list(turn).await?;
        self.unless_there(turn, live.as_ref(), &listed.making).await?;
        turn.checkpoint().await?;
        turn.pass(Point::Listed);

        turn.enter(Stage::Chunking).await?;
        let mut chunks = self.chunk(turn, listed.documents).await?;
        // The documents may have changed since they were listed: what was read now is what counts.
        self.unless_there(turn, live.as_ref(), &chunks.making).await?;
        turn.checkpoint().await?;
        turn.pass(Point::Chunked);

        turn.enter(Stage::Embedding).await?;
        let embedded = self.embed(turn, &mut chunks).await?;

        turn.enter(Stage::Writing).await?;
        let probes = self.write(turn, &mut chunks).await?;

        turn.enter(Stage::Verifying).await?;
        self.verify(turn, &chunks, &probes).await?;
        turn.checkpoint().await?;
        turn.pass(Point::Verified);

        let manifest = Manifest {
            making: chunks.making.clone(),
            source: self.source.place().to_owned(),
            documents: chunks.documents,
            chunks: chunks.spool.chunks(),
            digest: chunks.digest.sum(),
        };
        turn.enter(Stage::Switching).await?;
        let version = publish::switch(turn, live.as_ref().map_or(0, |live| live.version), &manifest).await?;
        turn.pass(Point::BeforeRecord);

        // From here on the version is live, whatever happens.
        turn.enter(Stage::Recording).await?;
        let reused = manifest.chunks.saturating_sub(embedded);
        let epoch = turn.epoch();
        let note = format!(
            "{} documents, {} chunks, {embedded} embedded, {reused} reused",
            manifest.documents, manifest.chunks
        );
        record(
            turn,
            Record { epoch, recorded_by: epoch, outcome: "published".into(), version: Some(version), note, at_ms: 0 },
        )
        .await?;
        let (removed, left) = match clear(turn, settings.keep).await {
            Ok(removed) => (removed, None),
            Err(stop) => (0, Some(finish::why(stop))),
        };
        let (took, rights_ms) = (turn.took(), turn.rights());
        Ok(Outcome::Published(Box::new(Published {
            version,
            epoch,
            manifest,
            embedded,
            reused,
            removed,
            left,
            took,
            rights_ms,
        })))
    }

    /// Whether a round would do anything, found out without a lease: so that workers who look often take no turns in vain.
    ///
    /// # Errors
    /// What a round would fail with.
    pub async fn is_due(&self) -> Result<bool, String> {
        let With { tenant, index, settings, .. } = self.with;
        let Some(live) = index.live(tenant).await.map_err(|error| error.to_string())? else { return Ok(true) };
        let generations = index.generations(tenant).await.map_err(|error| error.to_string())?;
        if !live.recorded || generations.iter().any(|generation| generation.state != State::Published) {
            return Ok(true);
        }
        let making = self.look().await?.making;
        let rejected = live.rejected.as_ref() == Some(&making) && !settings.again;
        Ok(live.manifest.making != making && !rejected)
    }

    /// Ends the round when what it would make is there, or was sent away.
    async fn unless_there(&self, turn: &mut Turn<'_>, live: Option<&Live>, making: &Making) -> Result<(), Stop> {
        let With { tenant, index, settings, .. } = self.with;
        let Some(live) = live else { return Ok(()) };
        if live.manifest.making == *making && !settings.again {
            let generations = turn.read(async || index.generations(tenant).await).await?;
            let left = generations.iter().any(|generation| generation.state != State::Published);
            let removed = if left { clear(turn, settings.keep).await? } else { 0 };
            let (version, documents) = (live.version, live.manifest.documents);
            return Err(Stop::Ended(Box::new(Outcome::Unchanged { version, documents, removed })));
        }
        if live.rejected.as_ref() == Some(making) && !settings.again {
            return Err(Stop::Ended(Box::new(Outcome::Rejected { version: live.version })));
        }
        Ok(())
    }
}

/// What a move of the alias is called in the record of its round.
pub(crate) const fn outcome_of(why: Why) -> &'static str {
    match why {
        Why::Sync => "published",
        Why::Rollback => "rolled-back",
    }
}
