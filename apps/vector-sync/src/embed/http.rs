//! A model behind HTTP, asked as many services and local servers are: `POST {model, input: […]}`.

mod answer;
mod asked;
mod budget;
mod settings;

use super::{EmbedError, Embedder, Spent};
use crate::patience::pause;
use answer::Answer;
use asked::{Asked, Wrong};
use async_trait::async_trait;
use budget::Budget;
pub use settings::HttpSettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a call is made until it counts as failed.
const TRIES: u32 = 6;
/// The first pause between two tries, unless the service names one. Each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
/// A service that asks for a longer pause than this is not waited for.
const LONGEST: Duration = Duration::from_secs(120);

/// Any endpoint that takes and gives embeddings in the form that OpenAI's has.
///
/// A call that failed for a reason that may pass (no connection, 429, a status from 500 on) is made again, after the pause that
/// the service asks for or a growing one. A batch that is too large for it is halved, and later ones are as small. Answers are
/// not believed unseen: their number, order and length are checked, and the vectors are given the length one.
///
/// The key is never shown, and neither is a text: words of the service that repeat one are left out.
pub struct HttpModel {
    settings: HttpSettings,
    name: String,
    client: reqwest::Client,
    budget: Arc<Budget>,
    /// How many texts it was seen to take at most.
    takes: AtomicUsize,
}

impl HttpModel {
    /// Gets ready to call. Nobody is asked yet.
    ///
    /// # Errors
    /// [`EmbedError::Unfit`]: the settings make no sense, or the key is not where it should be.
    pub fn open(settings: HttpSettings) -> Result<Self, EmbedError> {
        let name = settings.name();
        let client = settings.client().map_err(|why| EmbedError::Unfit { model: name.clone(), why })?;
        let budget = Arc::new(Budget::new(settings.max_calls, settings.max_tokens));
        Ok(Self { name, client, budget, takes: AtomicUsize::new(settings.batch), settings })
    }

    /// One batch, as often as it takes.
    async fn call(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, Wrong> {
        let mut wait = PAUSE;
        let mut tries = 0;
        loop {
            tries += 1;
            let reserved = self.budget.reserve(texts).map_err(Wrong::Budget)?;
            let Asked { wrong, after } = match asked::ask(&self.client, &self.settings, texts).await {
                Ok(Answer { vectors, tokens }) => {
                    reserved.took(tokens, texts.len());
                    return Ok(vectors);
                }
                Err(asked) => asked,
            };
            reserved.failed();
            let Wrong::Passing(why) = wrong else { return Err(wrong) };
            let asks = after.map(|after| format!(" and asks to wait for {} s", after.as_secs())).unwrap_or_default();
            if tries == TRIES || after.is_some_and(|after| after > LONGEST) {
                return Err(Wrong::Failed(format!("{why}{asks}, after {tries} tries: run again later")));
            }
            tracing::warn!(model = %self.name, tries, "the model will be asked again: {why}{asks}");
            // Many workers that were refused at once do not come back at once.
            pause(after.unwrap_or_else(|| jittered(wait))).await;
            wait = (wait * 2).min(LONGEST);
        }
    }
}

#[async_trait]
impl Embedder for HttpModel {
    fn model(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> u32 {
        self.settings.dimensions
    }

    fn batch(&self) -> usize {
        self.settings.batch
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let model = self.name.clone();
        let mut vectors = Vec::with_capacity(texts.len());
        while vectors.len() < texts.len() {
            let left = &texts[vectors.len()..];
            let takes = self.takes.load(Ordering::Relaxed).clamp(1, left.len());
            match self.call(&left[..takes]).await {
                Ok(found) => vectors.extend(found),
                Err(Wrong::TooLarge(_)) if takes > 1 => {
                    self.takes.fetch_min(takes / 2, Ordering::Relaxed);
                }
                Err(Wrong::TooLarge(why)) => {
                    let at = vectors.len() + 1;
                    let why = format!("text {at} of {} is too large for it: {why}", texts.len());
                    return Err(EmbedError::Failed { model, why });
                }
                Err(Wrong::Unfit(why)) => return Err(EmbedError::Unfit { model, why }),
                Err(Wrong::Passing(why) | Wrong::Failed(why)) => return Err(EmbedError::Failed { model, why }),
                Err(Wrong::Budget(why)) => return Err(EmbedError::Budget { why }),
            }
        }
        Ok(vectors)
    }

    fn spent(&self) -> Spent {
        self.budget.spent()
    }
}

/// Between a half of it and all of it.
fn jittered(wait: Duration) -> Duration {
    let random = tenure::authority::random_bits().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
    let part = f64::from(random as u32) / f64::from(u32::MAX);
    wait.mul_f64(0.5 + part / 2.0)
}

impl std::fmt::Debug for HttpModel {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "HttpModel({} at {})", self.name, self.settings.shown())
    }
}
