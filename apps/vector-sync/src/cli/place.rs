//! The places that verbs work with: the index, the authority, the documents, the model.

use super::Problem;
use clap::Args;
use std::time::Duration;
use tenure::Tenure;
use vector_sync::embed::{self, Embedder};
use vector_sync::index::{self, Index};
use vector_sync::turn::Settings;

/// Where the index is.
#[derive(Clone, Debug, Args)]
pub(crate) struct IndexAt {
    /// The index.
    #[arg(
        long,
        env = "VECTOR_SYNC_INDEX",
        value_name = "URL",
        default_value = "sqlite:vectors",
        hide_env_values = true
    )]
    index: String,
}

/// Who hands out the leases.
#[derive(Clone, Debug, Args)]
pub(crate) struct AuthorityAt {
    /// The authority that hands out the leases: sqlite:FILE, postgres://…, redis://…, etcd://…. Without it, a file beside the
    /// tenants' of a `sqlite:` index. All workers of an index must name the same one.
    #[arg(long, env = "TENURE_AUTHORITY", value_name = "URL", hide_env_values = true)]
    authority: Option<String>,
    /// The worker's name, for refusals and for the history.
    #[arg(long, env = "TENURE_OWNER", value_name = "NAME")]
    owner: Option<String>,
}

/// Which model.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelAt {
    /// The model: `minilm`, a sentence model on this machine (`vector-sync fetch` gets it), or `minilm:DIR`; `words`, which
    /// knows no meaning and needs nothing; or https://HOST/v1/embeddings#MODEL for an endpoint that speaks as OpenAI's does.
    #[arg(long, env = "VECTOR_SYNC_MODEL", value_name = "MODEL", default_value = "minilm")]
    model: String,
}

/// How a turn is taken.
#[derive(Clone, Debug, Args)]
pub(crate) struct Pace {
    /// How long a lease lasts without a renewal, such as 30s or 2m.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = time)]
    ttl: Duration,
    /// How long a call to the index is repeated when it does not answer.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    patience: Duration,
}

/// Reads `30s`, `2m`, `1h 30m`; a bare number is seconds.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no span of time: write a number and a unit, such as 500ms, 30s or 2m");
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(span).map_err(|_| wrong())
}

impl From<String> for IndexAt {
    fn from(index: String) -> Self {
        Self { index }
    }
}

impl IndexAt {
    /// Opens it. Nothing is made yet.
    pub(crate) fn open(&self) -> Result<Box<dyn Index>, Problem> {
        index::connect(&self.index).map_err(Problem::usage)
    }

    /// The same address for another process of ours.
    pub(crate) fn url(&self) -> &str {
        &self.index
    }
}

impl AuthorityAt {
    /// Connects.
    pub(crate) async fn connect(&self, index: &IndexAt) -> Result<Tenure, Problem> {
        let url = self.url(index)?;
        let owner = self.owner.clone().unwrap_or_else(|| format!("vector-sync/{}", std::process::id()));
        Tenure::builder().owner(owner).connect(&url).await.map_err(Problem::failure)
    }

    /// Its address.
    pub(crate) fn url(&self, index: &IndexAt) -> Result<String, Problem> {
        if let Some(url) = &self.authority {
            return Ok(url.clone());
        }
        let folder = index.index.strip_prefix("sqlite:").ok_or_else(|| {
            Problem::usage("name the authority that hands out the leases (--authority, or TENURE_AUTHORITY): the same for all workers")
        })?;
        let folder = folder.split('?').next().unwrap_or(folder);
        std::fs::create_dir_all(folder)
            .map_err(|error| Problem::failure(format!("the folder {folder} cannot be made: {error}")))?;
        Ok(format!("sqlite:{folder}/.authority.db?create=true"))
    }
}

impl ModelAt {
    /// Gets it ready.
    pub(crate) fn open(&self) -> Result<Box<dyn Embedder>, Problem> {
        embed::choose(&self.model).map_err(Problem::usage)
    }

    /// The same words for another process of ours.
    pub(crate) fn words(&self) -> &str {
        &self.model
    }
}

impl Pace {
    /// The settings of a turn.
    pub(crate) fn settings(&self, wait: Duration, keep: usize, again: bool) -> Settings {
        Settings { ttl: self.ttl, wait, patience: self.patience, keep, again }
    }
}
