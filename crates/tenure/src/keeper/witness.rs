//! What this and former processes have seen of the store, kept in a folder.

use super::Shared;
use crate::error::ConnectError;
use std::time::Duration;
use tenure_authority::witness::{Scribe, Witness, WitnessFolder};
use tenure_authority::{Authority, StoreError};
use tenure_core::decide::{Keys, Refusal, Reply, Request};
use tenure_core::record::{AuthorityRecord, Seen};

/// Says hello with the newest point that the folder tells of, and starts to write down what is seen from now on.
pub(super) async fn hello(
    authority: &Authority,
    folder: Option<WitnessFolder>,
) -> Result<(Result<Reply, Refusal>, Option<Scribe<Seen>>), ConnectError> {
    let Some(folder) = folder else {
        let hello = authority.execute(&Request::Hello { seen: Seen::default() }).await?;
        return Ok((hello, None));
    };
    let seen = match folder.load(&record(authority).await?.identity) {
        Ok(witness) => witness.map(|witness| witness.seen).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "a store that went back in time may not be noticed");
            Seen::default()
        }
    };
    let hello = authority.execute(&Request::Hello { seen }).await?;
    // Anew: the hello may have found that it is another store now.
    let AuthorityRecord { identity, max_ttl, .. } = record(authority).await?;
    let write = move |seen| {
        let witness = Witness { identity: identity.clone(), seen, max_ttl, longest_ttl: None, file: None };
        if let Err(error) = folder.record(&witness) {
            tracing::warn!(%error, "a store that goes back in time may not be noticed");
        }
    };
    let scribe = Scribe::start(write).map_err(|error| ConnectError::Thread(error.to_string()))?;
    Ok((hello, Some(scribe)))
}

impl Shared {
    /// Looks once more before it ends: what a short run was granted is later than anything that it was told.
    pub(super) async fn see_the_end(&self) {
        let hello = Request::Hello { seen: self.latest_seen() };
        let _ = self.ask(&hello, Duration::from_secs(1)).await;
    }
}

pub(super) async fn record(authority: &Authority) -> Result<AuthorityRecord, StoreError> {
    Ok(authority.store().read(&Keys::default()).await?.view.authority)
}
