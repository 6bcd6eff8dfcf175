//! The sealing side.

use super::Place;
use super::judge::floor_of;
use super::manifest::{Manifest, Opening};
use super::namespace::Namespace;
use super::nonce::Nonce;
use super::patience::all_of;
use super::swap::{Held, load};
use super::turn::{Start, Step, Turned, Verb, turn};
use crate::{Answer, Description, Rows, SinkError};
use object_store::path::Path;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::PoisonError;
use tenure_core::fence::{self, Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, ResourceName, SinkId, Token};

/// So many keys are listed before their manifests are read.
const PAGE: usize = 256;

impl Place {
    pub(super) async fn describe(&self, resource: &ResourceName) -> Result<Description, SinkError> {
        // The manifest first: what is read of the sink afterwards is not older.
        let held = load(&self.bucket, resource, self.rule).await?;
        let record = Namespace::load(&self.bucket, self.rule).await?;
        let manifest = held.as_ref().map(|held| &*held.manifest);
        let opening = record.opening(&self.bucket)?;
        not_ahead(self, manifest, &opening)?;
        Ok(Description {
            generation: opening.generation,
            row: manifest.and_then(|manifest| manifest.row.clone()),
            floor: floor_of(manifest, record.floor(&self.bucket)?),
        })
    }

    pub(super) async fn seal(
        &self,
        token: &Token,
        bound: &Generation,
        enrolled: &BTreeSet<SinkId>,
    ) -> Result<Sealing, SinkError> {
        if self.rule == Rule::HighWater {
            return Err(SinkError::NeverSealed { place: self.bucket.place.clone() });
        }
        let verb = Seal { token, bound, enrolled, seen: Mutex::new(None) };
        self.said(turn(self, &token.resource, Start::Fresh, &verb).await?)
    }

    pub(super) async fn forget(&self, resource: &ResourceName, cut: Epoch) -> Result<Forgetting, SinkError> {
        let forgotten = self.said(turn(self, resource, Start::Fresh, &Forget { cut }).await?)?;
        if let Forgetting::Above { .. } = forgotten {
            return Ok(forgotten);
        }
        // The resource is closed by its own floor already. That of the sink is for those that were never there.
        let floor = Namespace::raise(&self.bucket, self.rule, cut).await?.floor(&self.bucket)?;
        Ok(Forgetting::Forget { floor: floor.map_or(cut, |floor| floor.max(cut)) })
    }

    /// Begins another generation, and touches every manifest: what was judged in the old one cannot land any more.
    pub(super) async fn reopen(&self) -> Result<Generation, SinkError> {
        let mut seen = 0;
        loop {
            let opening = Namespace::reopen(&self.bucket, self.rule, seen).await?.opening(&self.bucket)?;
            match self.touch_all(&opening).await? {
                None => return Ok(opening.generation),
                Some(ahead) => seen = ahead,
            }
        }
    }

    async fn touch_all(&self, opening: &Opening) -> Result<Option<u64>, SinkError> {
        let mut after = None;
        let mut ahead = None;
        loop {
            let keys = self.page(after.as_ref(), PAGE).await?;
            let Some(last) = keys.last() else { return Ok(ahead) };
            after = Some(last.clone());
            let touches = keys.into_iter().map(|key| Box::pin(self.touch(key, opening)) as Answer<'_, _>).collect();
            let touched: Vec<Option<u64>> = all_of(touches).await?;
            ahead = ahead.max(touched.into_iter().flatten().max());
        }
    }

    async fn touch(&self, key: Path, opening: &Opening) -> Result<Option<u64>, SinkError> {
        let Some(manifest) = self.manifest_at(key).await? else { return Ok(None) };
        self.said(turn(self, &manifest.resource, Start::Fresh, &Touch { opening }).await?)
    }

    /// In the order of the digests of the names, which are the keys.
    pub(super) async fn rows(&self, after: Option<&ResourceName>, limit: usize) -> Result<Rows, SinkError> {
        let floor = Namespace::load(&self.bucket, self.rule).await?.floor(&self.bucket)?;
        let mut rows = Vec::new();
        let mut after = after.map(|resource| self.bucket.manifest(resource));
        while rows.len() < limit {
            let keys = self.page(after.as_ref(), PAGE.min(limit - rows.len())).await?;
            let Some(last) = keys.last() else { break };
            after = Some(last.clone());
            let reads = keys.into_iter().map(|key| Box::pin(self.manifest_at(key)) as Answer<'_, _>).collect();
            let found: Vec<Option<Manifest>> = all_of(reads).await?;
            rows.extend(found.into_iter().flatten().filter_map(|manifest| Some((manifest.resource, manifest.row?))));
        }
        rows.truncate(limit);
        Ok(Rows { rows, floor })
    }

    async fn page(&self, after: Option<&Path>, most: usize) -> Result<Vec<Path>, SinkError> {
        let mut keys = Vec::new();
        self.bucket
            .list(&self.bucket.manifests(), after, |found| {
                keys.push(found.location);
                keys.len() < most
            })
            .await?;
        Ok(keys)
    }

    async fn manifest_at(&self, key: Path) -> Result<Option<Manifest>, SinkError> {
        let Some(read) = self.bucket.get(&key).await? else { return Ok(None) };
        let place = self.bucket.called(&key);
        let manifest = Manifest::parse_any(&place, self.rule, &read.body)?;
        if self.bucket.manifest(&manifest.resource) == key {
            return Ok(Some(manifest));
        }
        Err(SinkError::corrupt(&place, format_args!("it is of {:?}, whose key is another", manifest.resource.as_str())))
    }

    fn said<T>(&self, turned: Turned<T>) -> Result<T, SinkError> {
        match turned {
            Turned::Said(said) => Ok(said),
            Turned::Unknown(why) => Err(SinkError::Unreachable { place: self.bucket.place.clone(), why }),
        }
    }
}

/// A manifest that has seen a later opening than the sink has: the sink's record was put back, or lost and made anew.
fn not_ahead(place: &Place, manifest: Option<&Manifest>, opening: &Opening) -> Result<(), SinkError> {
    match manifest.and_then(|manifest| manifest.opening.as_ref()) {
        Some(seen) if is_ahead(seen, opening) => Err(SinkError::corrupt(
            &place.bucket.called(&place.bucket.sink()),
            "it is older than a manifest of the same sink, and was put back: reopen the sink",
        )),
        _ => Ok(()),
    }
}

fn is_ahead(seen: &Opening, opening: &Opening) -> bool {
    seen.count > opening.count || (seen.count == opening.count && seen.generation != opening.generation)
}

struct Seal<'a> {
    token: &'a Token,
    bound: &'a Generation,
    enrolled: &'a BTreeSet<SinkId>,
    /// The sink's own record, as it was read for an earlier judgement.
    seen: Mutex<Option<Namespace>>,
}

impl Seal<'_> {
    /// A manifest that was looked at in an opening says if there was a later one. One that is blank does not: what is read
    /// for it has to be read after it was made.
    async fn record(&self, place: &Place, manifest: Option<&Manifest>) -> Result<Namespace, SinkError> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(record), Some(opening)) = (seen, manifest.and_then(|manifest| manifest.opening.as_ref()))
            && !is_ahead(opening, &record.opening(&place.bucket)?)
        {
            return Ok(record);
        }
        let record = Namespace::load(&place.bucket, place.rule).await?;
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(record.clone());
        Ok(record)
    }
}

impl Verb for Seal<'_> {
    type Said = Sealing;

    fn decide<'a>(&'a self, place: &'a Place, held: Option<&'a Held>) -> Answer<'a, Result<Step<Sealing>, SinkError>> {
        Box::pin(async move {
            let manifest = held.map(|held| &*held.manifest);
            let record = self.record(place, manifest).await?;
            let opening = record.opening(&place.bucket)?;
            not_ahead(place, manifest, &opening)?;
            let row = manifest.and_then(|manifest| manifest.row.as_ref());
            let floor = floor_of(manifest, record.floor(&place.bucket)?);
            let sealing = fence::seal(row, floor, &opening.generation, self.token, self.bound, self.enrolled);
            let Sealing::Seal(row) = &sealing else { return Ok(Step::Say(sealing)) };
            let Some(manifest) = manifest else { return Ok(Step::Make) };
            let mut next = manifest.next(Nonce::draw(&place.bucket.place)?);
            (next.row, next.opening) = (Some(row.clone()), Some(opening));
            Ok(Step::Swap(Box::new(next), sealing))
        })
    }

    /// Sealing again is the same seal.
    fn is_told_apart(&self) -> bool {
        true
    }
}

struct Forget {
    cut: Epoch,
}

impl Verb for Forget {
    type Said = Forgetting;

    fn decide<'a>(
        &'a self,
        place: &'a Place,
        held: Option<&'a Held>,
    ) -> Answer<'a, Result<Step<Forgetting>, SinkError>> {
        Box::pin(async move {
            // It stays as a manifest with a floor of its own, so that this resource is closed in one step.
            let Some(held) = held else { return Ok(Step::Make) };
            let manifest = &held.manifest;
            let forgetting = fence::forget(manifest.row.as_ref(), manifest.floor, self.cut);
            let Forgetting::Forget { floor } = forgetting else { return Ok(Step::Say(forgetting)) };
            if manifest.row.is_none() && manifest.floor == Some(floor) {
                return Ok(Step::Say(forgetting));
            }
            let mut next = manifest.next(Nonce::draw(&place.bucket.place)?);
            (next.row, next.floor) = (None, Some(floor));
            Ok(Step::Swap(Box::new(next), forgetting))
        })
    }

    fn is_told_apart(&self) -> bool {
        true
    }
}

/// Says which opening the manifest has come to, if it is a later one.
struct Touch<'a> {
    opening: &'a Opening,
}

impl Verb for Touch<'_> {
    type Said = Option<u64>;

    fn decide<'a>(
        &'a self,
        place: &'a Place,
        held: Option<&'a Held>,
    ) -> Answer<'a, Result<Step<Option<u64>>, SinkError>> {
        Box::pin(async move {
            let Some(held) = held else { return Ok(Step::Say(None)) };
            let manifest = &held.manifest;
            match &manifest.opening {
                Some(seen) if seen == self.opening => return Ok(Step::Say(None)),
                Some(seen) if is_ahead(seen, self.opening) => return Ok(Step::Say(Some(seen.count))),
                _ => {}
            }
            let mut next = manifest.next(Nonce::draw(&place.bucket.place)?);
            // A blank one stays blank; what was judged by it cannot land any more all the same.
            if manifest.opening.is_some() {
                next.opening = Some(self.opening.clone());
            }
            Ok(Step::Swap(Box::new(next), None))
        })
    }

    fn is_told_apart(&self) -> bool {
        true
    }
}
