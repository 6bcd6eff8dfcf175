use std::fmt;
use std::sync::Arc;
use tenure_core::record::Owner;
use tenure_core::{SinkId, Token};

/// What happens to a receiver that is not sealed at once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealNews {
    /// It could not be sealed, and is tried again.
    Failed {
        /// Which.
        sink: SinkId,
        /// How often in a row, this time included.
        failures: u32,
        /// What it said.
        error: String,
    },
    /// The takeover was announced without it: the lease is refused there until it is sealed, and a former holder may still be
    /// accepted. Its sealing goes on.
    Excused {
        /// Which.
        sink: SinkId,
    },
    /// It is sealed after all. The lease is accepted there, and every former one is refused.
    Sealed {
        /// Which.
        sink: SinkId,
    },
}

/// Who hears of the news.
#[derive(Clone)]
pub(crate) struct News(Arc<dyn Fn(&SealNews) + Send + Sync>);

impl News {
    pub(crate) fn new(hear: impl Fn(&SealNews) + Send + Sync + 'static) -> Self {
        Self(Arc::new(hear))
    }

    pub(super) fn tell(&self, news: &SealNews) {
        (self.0)(news);
    }
}

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("News")
    }
}

pub(super) fn trace(owner: &Owner, token: &Token, news: &SealNews) {
    let (resource, epoch) = (&token.resource, token.epoch.get());
    match news {
        // One line each time it gets worse, not at each try.
        SealNews::Failed { sink, failures, error } if failures.is_power_of_two() => {
            tracing::warn!(%owner, %resource, epoch, %sink, failures, error, "receiver not sealed");
        }
        SealNews::Failed { sink, failures, error } => {
            tracing::debug!(%owner, %resource, epoch, %sink, failures, error, "receiver not sealed");
        }
        SealNews::Excused { sink } => {
            tracing::warn!(%owner, %resource, epoch, %sink, "announced without a receiver, which may accept a former holder");
        }
        SealNews::Sealed { sink } => tracing::info!(%owner, %resource, epoch, %sink, "receiver sealed"),
    }
}
