//! Which documents there are, and the chunks of each.

use super::Round;
use crate::chunk::{self, CHUNKER};
use crate::index::Entry;
use crate::manifest::{Making, Snapshot, Sums};
use crate::source::{Document, SourceError};
use crate::spool::{Spool, Spooled};
use crate::turn::{Stop, Turn};
use futures_util::StreamExt;

/// What was listed.
pub(super) struct Listed {
    pub(super) making: Making,
    pub(super) documents: u64,
}

/// The chunks of all documents.
pub(super) struct Chunks {
    pub(super) making: Making,
    pub(super) documents: u64,
    pub(super) digest: Sums,
    pub(super) spool: Spool,
}

/// So many broken documents are named; the others are counted.
const NAMED: usize = 8;
/// How often people are told.
const TOLD_EACH: u64 = 64;

impl Round<'_> {
    /// Reads all documents, and keeps of each its digest alone.
    pub(super) async fn list(&self, turn: &Turn<'_>) -> Result<Listed, Stop> {
        let mut snapshot = Snapshot::default();
        self.each(turn, None, |document| {
            snapshot.add(&document.id, &document.content);
            Ok(())
        })
        .await?;
        Ok(Listed { documents: snapshot.documents(), making: self.making(&snapshot) })
    }

    /// The same without a turn.
    pub(super) async fn look(&self) -> Result<Listed, String> {
        let (mut snapshot, mut documents) = (Snapshot::default(), self.source.documents());
        while let Some(document) = documents.next().await {
            let document = document.map_err(|error| error.to_string())?;
            snapshot.add(&document.id, &document.content);
        }
        Ok(Listed { documents: snapshot.documents(), making: self.making(&snapshot) })
    }

    /// Reads all documents again, and cuts them. What is read now is what the generation is of.
    pub(super) async fn chunk(&self, turn: &Turn<'_>, listed: u64) -> Result<Chunks, Stop> {
        let (mut snapshot, mut digest, mut spool) = (Snapshot::default(), Sums::default(), Spool::new()?);
        let (model, mut with_text) = (self.embedder.model(), 0);
        self.each(turn, Some(listed), |document| {
            snapshot.add(&document.id, &document.content);
            let chunks = chunk::chunks(&document);
            with_text += u64::from(!chunks.is_empty());
            for chunk in chunks {
                let key = chunk.key(model);
                digest.add(&Entry::sum(&chunk.document, chunk.number, &key));
                spool.push(&Spooled { key, chunk })?;
            }
            Ok(())
        })
        .await?;
        if spool.chunks() == 0 {
            let place = self.source.place();
            return Err(Stop::Failed(format!(
                "none of the {} documents of {place} has any text, and an empty version is never published",
                snapshot.documents()
            )));
        }
        Ok(Chunks { making: self.making(&snapshot), documents: with_text, digest, spool })
    }

    fn making(&self, snapshot: &Snapshot) -> Making {
        Making {
            model: self.embedder.model().to_owned(),
            dimensions: self.embedder.dimensions(),
            chunker: CHUNKER.to_owned(),
            snapshot: snapshot.sum(),
        }
    }

    /// Shows each document to `take`. All of them can be used, or the round fails and says which cannot.
    async fn each(
        &self,
        turn: &Turn<'_>,
        total: Option<u64>,
        mut take: impl FnMut(Document) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (mut documents, mut done) = (self.source.documents(), 0);
        let (mut broken, mut others) = (Vec::new(), 0_usize);
        while let Some(item) = turn.guard(documents.next()).await? {
            match item {
                Ok(document) => take(document)?,
                Err(error @ SourceError::Document { .. }) if broken.len() < NAMED => broken.push(error.to_string()),
                Err(SourceError::Document { .. }) => others += 1,
                Err(error @ SourceError::Place { .. }) => return Err(Stop::Failed(error.to_string())),
            }
            done += 1;
            if done % TOLD_EACH == 0 {
                turn.tell(done, total);
            }
        }
        turn.tell(done, total.or(Some(done)));
        let count = broken.len() + others;
        if count > 0 {
            let more = if others > 0 { format!("; and {others} more") } else { String::new() };
            return Err(Stop::Failed(format!(
                "{count} of {done} documents cannot be used, and less than the whole is never published: {}{more}",
                broken.join("; ")
            )));
        }
        if done == 0 {
            return Err(Stop::Failed(format!(
                "{} has no documents, and an empty version is never published",
                self.source.place()
            )));
        }
        Ok(())
    }
}
