//! The signatures of a connection's grants, for receivers that ask for them.

use super::Shared;
use super::sealing::names_of;
use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_authority::{Authority, StoreError};
use tenure_core::fence::Sealing;
use tenure_core::{Generation, SinkId, Token};
use tenure_sink::{Answer, Sink, SinkError};

#[cfg(feature = "signed")]
use {
    super::{Held, witness},
    crate::error::SigningError,
    std::path::PathBuf,
    tenure_core::StoreIdentity,
    tenure_grant::{KeyFolder, SignedGrant, Signer},
};

/// What a connection signs with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Signing {
    #[cfg(feature = "signed")]
    signer: Option<Signer>,
}

/// What a connection is to sign with, before it knows its authority.
#[cfg(feature = "signed")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) folder: Option<PathBuf>,
    pub(crate) name: Option<StoreIdentity>,
}

#[cfg(not(feature = "signed"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys;

#[cfg(feature = "signed")]
impl Signing {
    /// The signer of this authority, if there are keys. It makes none before it signs.
    pub(super) async fn of(keys: Keys, authority: &Authority) -> Result<Self, StoreError> {
        let Some(folder) = keys.folder else { return Ok(Self::default()) };
        let name = match keys.name {
            Some(name) => name,
            None => witness::record(authority).await?.identity,
        };
        Ok(Self { signer: Some(Signer::of_folder(KeyFolder::new(folder), name)) })
    }

    /// `None` when there are no keys.
    fn sign(&self, token: &Token, sinks: &BTreeSet<SinkId>) -> Result<Option<String>, String> {
        let signed = self.signer.as_ref().map(|signer| signer.sign(token, sinks)).transpose();
        signed.map(|signed| signed.map(|signed| signed.as_str().to_owned())).map_err(|error| error.to_string())
    }
}

#[cfg(not(feature = "signed"))]
impl Signing {
    #[expect(clippy::unused_async, reason = "as in a build that signs")]
    pub(super) async fn of(_keys: Keys, _authority: &Authority) -> Result<Self, StoreError> {
        Ok(Self {})
    }

    fn sign(&self, _token: &Token, _sinks: &BTreeSet<SinkId>) -> Result<Option<String>, String> {
        Ok(None)
    }
}

impl Shared {
    /// Seals, with a signature where the receiver asks for one. It is made anew at each try: tries may outlast it.
    pub(super) fn seal<'a>(
        &'a self,
        sink: &'a dyn Sink,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
        all: &'a [Arc<dyn Sink>],
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        if !sink.asks_signature() {
            return sink.seal(token, generation, enrolled);
        }
        Box::pin(async move {
            match self.signing.sign(token, &names_of(all, enrolled)) {
                Ok(Some(signed)) => sink.seal_signed(&signed, token, generation, enrolled).await,
                // The receiver says what is missing.
                Ok(None) => sink.seal(token, generation, enrolled).await,
                Err(why) => {
                    let place = sink.id().to_string();
                    Err(SinkError::Failed { place, doing: "signing the grant for a seal", why })
                }
            }
        })
    }
}

#[cfg(feature = "signed")]
impl Held {
    /// The lease's grant, signed now, for all of its receivers.
    pub(crate) fn signed(&self) -> Result<SignedGrant, SigningError> {
        self.standing()?;
        let Some(signer) = &self.shared().signing.signer else { return Err(SigningError::NoKeys) };
        let sinks = self.rare().map(|rare| names_of(&rare.sinks, &BTreeSet::new())).unwrap_or_default();
        let signed = signer.sign(self.token(), &sinks)?;
        // Signing reads a file, which may take its time.
        self.standing()?;
        Ok(signed)
    }
}
