//! What the sink knows of itself: one object, which only creation, reopening and forgetting change.

use super::bucket::{Bucket, Put};
use super::manifest::{Opening, SCHEMA, check_schema};
use super::nonce::Nonce;
use super::patience::Patience;
use crate::SinkError;
use object_store::UpdateVersion;
use serde::{Deserialize, Serialize};
use tenure_core::fence::Rule;
use tenure_core::{Epoch, Generation};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Namespace {
    schema: i64,
    rule: String,
    /// Drawn when the sink was made.
    identity: String,
    /// 1 when it was made, one more with each reopening.
    opening: u64,
    /// Drawn with each opening, so that two that a restore made follow the same one have different generations.
    drawn: String,
    floor: Option<i64>,
    /// Of the change that made this body.
    nonce: String,
}

impl Namespace {
    /// Makes the record unless there is one, and looks at the one that stands.
    pub(super) async fn create(bucket: &Bucket, rule: Rule) -> Result<(), SinkError> {
        let mut patience = Patience::new(bucket.wait);
        loop {
            if Self::find(bucket, rule).await?.is_some() {
                return Ok(());
            }
            let nonce = Nonce::draw(&bucket.place)?;
            let made = Self {
                schema: SCHEMA,
                rule: rule.name().to_owned(),
                identity: nonce.to_string(),
                opening: 1,
                drawn: Nonce::draw(&bucket.place)?.to_string(),
                floor: None,
                nonce: nonce.to_string(),
            };
            // Whatever comes of it, the next look tells.
            made.put(bucket, None).await?;
            if patience.is_over() {
                return Err(SinkError::Busy { place: bucket.place.clone(), waited: patience.spent() });
            }
            patience.nap(nonce).await;
        }
    }

    pub(super) async fn load(bucket: &Bucket, rule: Rule) -> Result<Self, SinkError> {
        Ok(Self::read(bucket, rule).await?.0)
    }

    async fn read(bucket: &Bucket, rule: Rule) -> Result<(Self, UpdateVersion), SinkError> {
        Self::find(bucket, rule).await?.ok_or_else(|| SinkError::Missing { place: bucket.place.clone() })
    }

    /// `None` where there is no sink. An error where there is no bucket, or something else.
    pub(super) async fn find(bucket: &Bucket, rule: Rule) -> Result<Option<(Self, UpdateVersion)>, SinkError> {
        let key = bucket.sink();
        let Some(read) = bucket.get(&key).await? else { return Ok(None) };
        let place = bucket.called(&key);
        check_schema(&place, &read.body)?;
        let found: Self = serde_json::from_slice(&read.body).map_err(|error| SinkError::corrupt(&place, error))?;
        SinkError::unless_rule(&place, &found.rule, rule)?;
        found.opening(bucket)?;
        found.floor(bucket)?;
        Ok(Some((found, read.version)))
    }

    async fn put(&self, bucket: &Bucket, version: Option<UpdateVersion>) -> Result<(), SinkError> {
        let key = bucket.sink();
        let body = serde_json::to_vec(self).map_err(|error| SinkError::corrupt(&bucket.called(&key), error))?;
        match bucket.put_if(&key, body, version).await {
            Put::Done(_) | Put::Lost | Put::Unsure(_) => Ok(()),
            Put::NotSent(error) | Put::Refused(error) => Err(error),
        }
    }

    /// Changes it until the change stands. An answer that was lost is found by its nonce; one that did not come to stand is
    /// made anew.
    async fn change(bucket: &Bucket, rule: Rule, change: impl Fn(&mut Self, Nonce)) -> Result<Self, SinkError> {
        let mut patience = Patience::new(bucket.wait);
        loop {
            let (mut record, version) = Self::read(bucket, rule).await?;
            let nonce = Nonce::draw(&bucket.place)?;
            change(&mut record, nonce);
            record.nonce = nonce.to_string();
            record.put(bucket, Some(version)).await?;
            if Self::load(bucket, rule).await?.nonce == record.nonce {
                return Ok(record);
            }
            if patience.is_over() {
                return Err(SinkError::Busy { place: bucket.place.clone(), waited: patience.spent() });
            }
            patience.nap(nonce).await;
        }
    }

    /// Begins another opening, which comes behind `seen` as well.
    pub(super) async fn reopen(bucket: &Bucket, rule: Rule, seen: u64) -> Result<Self, SinkError> {
        Self::change(bucket, rule, |record, nonce| {
            record.opening = record.opening.max(seen) + 1;
            record.drawn = nonce.to_string();
        })
        .await
    }

    /// Raises the floor. It never falls.
    pub(super) async fn raise(bucket: &Bucket, rule: Rule, cut: Epoch) -> Result<Self, SinkError> {
        let record = Self::load(bucket, rule).await?;
        if record.floor.is_some_and(|floor| floor >= cut.as_i64()) {
            return Ok(record);
        }
        Self::change(bucket, rule, |record, _| record.floor = record.floor.max(Some(cut.as_i64()))).await
    }

    pub(super) fn opening(&self, bucket: &Bucket) -> Result<Opening, SinkError> {
        let text = format!("object:{}:{}:{}", self.identity, self.opening, self.drawn.get(..8).unwrap_or_default());
        let generation = Generation::new(text).map_err(|error| SinkError::corrupt(&bucket.place, error))?;
        Ok(Opening { count: self.opening, generation })
    }

    pub(super) fn floor(&self, bucket: &Bucket) -> Result<Option<Epoch>, SinkError> {
        let floor = self.floor.map(Epoch::try_from).transpose();
        floor.map_err(|error| SinkError::corrupt(&bucket.called(&bucket.sink()), error))
    }
}
