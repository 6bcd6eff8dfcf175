use crate::claims::Claims;
use crate::compact;
use crate::error::SignError;
use crate::folder::KeyFolder;
use crate::key::SigningKey;
use crate::signed::SignedGrant;
use crate::wall::WallClock;
use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_core::{SinkId, StoreIdentity, Token};

/// What signs the grants of one authority. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Signer {
    keys: Keys,
    authority: StoreIdentity,
    clock: WallClock,
}

#[derive(Clone, Debug)]
enum Keys {
    Folder(KeyFolder),
    One(Arc<SigningKey>),
}

impl Signer {
    /// Signs with the folder's keys, in the name of this authority. The folder is read at each signature.
    #[must_use]
    pub const fn of_folder(folder: KeyFolder, authority: StoreIdentity) -> Self {
        Self { keys: Keys::Folder(folder), authority, clock: WallClock::System }
    }

    /// Signs with one key that is kept elsewhere.
    #[must_use]
    pub fn of_key(key: SigningKey, authority: StoreIdentity) -> Self {
        Self { keys: Keys::One(Arc::new(key)), authority, clock: WallClock::System }
    }

    /// With another clock than the machine's. For tests.
    #[must_use]
    pub fn with_clock(mut self, clock: WallClock) -> Self {
        self.clock = clock;
        self
    }

    /// In whose name it signs.
    #[must_use]
    pub const fn authority(&self) -> &StoreIdentity {
        &self.authority
    }

    /// Signs a grant for these receivers. Whether it still counts is not asked: that is for its holder to know, and for
    /// the receivers' fences to decide.
    ///
    /// # Errors
    /// [`SignError`]: nothing was signed.
    pub fn sign(&self, token: &Token, sinks: &BTreeSet<SinkId>) -> Result<SignedGrant, SignError> {
        let claims = Claims::now(self.authority.clone(), token.clone(), sinks.clone(), self.clock.now());
        let payload = claims.write()?;
        let text = match &self.keys {
            Keys::Folder(folder) => compact::write(&folder.active()?, &payload)?,
            Keys::One(key) => compact::write(key, &payload)?,
        };
        Ok(SignedGrant::new(text))
    }
}
