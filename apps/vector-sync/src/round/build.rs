//! A vector for each chunk, and the shadow generation.

use super::Round;
use super::listing::Chunks;
use crate::index::Entry;
use crate::manifest::Sum;
use crate::point::Point;
use crate::spool::Spooled;
use crate::turn::{Stop, Turn, With};
use std::collections::HashSet;

/// So many chunks are looked up, or written, at once.
const PAGE: usize = 256;
/// So many batches are collected before they are sorted by length: a batch is padded to its longest text.
const SORTED: usize = 16;
/// So many chunks are looked for again in the new generation.
const PROBES: u64 = 8;

/// A chunk that must be found by its own vector.
pub(super) struct Probe {
    pub(super) key: Sum,
    pub(super) spooled: Spooled,
    pub(super) vector: Vec<f32>,
}

impl Round<'_> {
    /// Embeds the chunks whose vectors are not kept already. Each batch is kept at once: whoever goes on pays for nothing
    /// twice. Returns how many were embedded.
    pub(super) async fn embed(&self, turn: &Turn<'_>, chunks: &mut Chunks) -> Result<u64, Stop> {
        let With { tenant, index, .. } = self.with;
        let total = chunks.spool.chunks();
        let (mut asked, mut waiting) = (HashSet::new(), Vec::new());
        let (mut done, mut embedded) = (0, 0);
        let mut reader = chunks.spool.read()?;
        loop {
            let page = reader.page(PAGE)?;
            let keys: Vec<Sum> = page.iter().map(|spooled| spooled.key).collect();
            let known = turn.read(async || index.known(tenant, &keys).await).await?;
            let last = page.is_empty();
            for (spooled, known) in page.into_iter().zip(known) {
                // The same words twice in one round are asked for once.
                if known.is_some() || !asked.insert(spooled.key) {
                    done += 1;
                } else {
                    waiting.push((spooled.key, spooled.chunk.words()));
                }
            }
            if last || waiting.len() >= SORTED * self.embedder.batch() {
                waiting.sort_by_key(|(_, words): &(Sum, String)| words.len());
                while !waiting.is_empty() {
                    let (keys, words): (Vec<Sum>, Vec<String>) =
                        waiting.drain(..self.embedder.batch().min(waiting.len())).unzip();
                    self.embed_batch(turn, &keys, &words).await?;
                    (done, embedded) = (done + keys.len() as u64, embedded + keys.len() as u64);
                    turn.tell(done, Some(total));
                }
            }
            turn.tell(done, Some(total));
            if last {
                return Ok(embedded);
            }
        }
    }

    async fn embed_batch(&self, turn: &Turn<'_>, keys: &[Sum], words: &[String]) -> Result<(), Stop> {
        let With { tenant, index, .. } = self.with;
        turn.checkpoint().await?;
        let vectors = turn.guard(self.embedder.embed(words)).await?.map_err(|error| Stop::Failed(error.to_string()))?;
        if vectors.len() != keys.len() {
            let (given, model) = (vectors.len(), self.embedder.model());
            return Err(Stop::Failed(format!("the model {model} gave {given} vectors for {} texts", keys.len())));
        }
        let pairs: Vec<(Sum, Vec<f32>)> = keys.iter().copied().zip(vectors).collect();
        let epoch = turn.epoch();
        turn.read(async || index.keep(tenant, epoch, &pairs).await).await?;
        turn.pass(Point::Embedded);
        Ok(())
    }

    /// Writes the shadow generation, batch by batch. Returns chunks to look for in it.
    pub(super) async fn write(&self, turn: &Turn<'_>, chunks: &mut Chunks) -> Result<Vec<Probe>, Stop> {
        let With { tenant, index, .. } = self.with;
        turn.insist(async || index.begin(tenant, turn.token(), &chunks.making).await).await?;
        let total = chunks.spool.chunks();
        let (each, mut probes, mut done) = (total.div_ceil(PROBES), Vec::new(), 0);
        let mut reader = chunks.spool.read()?;
        loop {
            let page = reader.page(PAGE)?;
            if page.is_empty() {
                return Ok(probes);
            }
            turn.checkpoint().await?;
            let keys: Vec<Sum> = page.iter().map(|spooled| spooled.key).collect();
            let known = turn.read(async || index.known(tenant, &keys).await).await?;
            let mut entries = Vec::with_capacity(page.len());
            for (spooled, vector) in page.into_iter().zip(known) {
                let Some(vector) = vector else {
                    return Err(Stop::Failed(format!(
                        "a vector that was kept in {} is gone: somebody has cleared its cache; run it again",
                        index.place()
                    )));
                };
                if done % each == 0 {
                    probes.push(Probe { key: spooled.key, spooled: spooled.clone(), vector: vector.clone() });
                }
                done += 1;
                entries.push(Entry { chunk: spooled.chunk, key: spooled.key, vector });
            }
            turn.insist(async || index.write(tenant, turn.token(), &entries).await).await?;
            turn.tell(done, Some(total));
            turn.pass(Point::Written);
        }
    }
}
