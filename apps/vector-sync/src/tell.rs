//! What people are told while a round goes on.

use crate::outcome::Outcome;
use crate::stage::Stage;
use crate::tenant::Tenant;
use serde::Serialize;

/// Somebody who is told. Called from the round itself: it must not block.
pub trait Tell: Send + Sync {
    /// Takes the news. It has no document's text in it, and no secret.
    fn tell(&self, tenant: &Tenant, news: &News);
}

/// What happens.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum News {
    /// The round has its lease, and the index is sealed for it.
    Acquired {
        /// Its epoch.
        epoch: u64,
    },
    /// A stage goes on.
    Going {
        /// Which.
        stage: Stage,
        /// So much is done.
        done: u64,
        /// Of so much, where that is known.
        total: Option<u64>,
    },
    /// Something was slow, repeated or left out.
    Warning {
        /// What.
        what: String,
    },
    /// The round has ended.
    Ended {
        /// How.
        #[serde(flatten)]
        outcome: Outcome,
    },
}
