//! The shadow generation, read back: what is published is what was meant.

use super::Round;
use super::build::Probe;
use super::listing::Chunks;
use crate::turn::{Stop, Turn, With};

/// A chunk's own vector finds that chunk, or one with the same words, with a score of one: so much is left to rounding, and to
/// indexes that keep fewer digits.
const OWN_SCORE: f32 = 0.999;
/// So many hits are looked at: chunks with the same words share the first place.
const LOOKED_AT: usize = 5;

impl Round<'_> {
    /// Counts, digest, foreign rows, and probes.
    pub(super) async fn verify(&self, turn: &Turn<'_>, chunks: &Chunks, probes: &[Probe]) -> Result<(), Stop> {
        let With { tenant, index, .. } = self.with;
        let found = turn.insist(async || index.inspect(tenant, turn.token()).await).await?;
        let different = |what: &str, wanted: &dyn std::fmt::Display, found: &dyn std::fmt::Display| {
            Err(Stop::Failed(format!(
                "the new generation is not what was written: it has {found} {what} instead of {wanted}; nothing was \
                 published. Look at {}, then run it again",
                index.place()
            )))
        };
        if found.chunks != chunks.spool.chunks() {
            return different("chunks", &chunks.spool.chunks(), &found.chunks);
        }
        if found.documents != chunks.documents {
            return different("documents", &chunks.documents, &found.documents);
        }
        if found.foreign != 0 {
            return different("rows of other tenants or epochs", &0, &found.foreign);
        }
        if found.digest != chunks.digest.sum() {
            return different("as its digest", &chunks.digest.sum(), &found.digest);
        }
        let (epoch, model) = (turn.epoch(), self.embedder.model());
        for (number, probe) in probes.iter().enumerate() {
            let hits = turn.read(async || index.nearest(tenant, epoch, &probe.vector, LOOKED_AT).await).await?;
            let itself = hits.iter().any(|hit| hit.score >= OWN_SCORE && hit.chunk.key(model) == probe.key);
            if !itself && !hits.first().is_some_and(|hit| hit.score >= OWN_SCORE) {
                let chunk = &probe.spooled.chunk;
                return Err(Stop::Failed(format!(
                    "the new generation does not find chunk {} of {} by its own vector; nothing was published. Look at {}, then \
                     run it again",
                    chunk.number,
                    chunk.document,
                    index.place()
                )));
            }
            turn.tell(chunks.spool.chunks() * (number as u64 + 1) / probes.len() as u64, Some(chunks.spool.chunks()));
        }
        Ok(())
    }
}
