//! Where an authority's keys are kept.
//!
//! One file, so that every change of its keys is one rename: whoever reads it sees the keys before or after a rotation.

mod file;

use crate::claims::{ALLOWANCE, LIFETIME};
use crate::error::KeyError;
use crate::jwks::PublicKeys;
use crate::key::{KeyId, PublicKey, SigningKey};
use crate::wall::{UnixTime, WallClock};
use file::{Entry, Stored};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A folder with the keys of an authority. Cheap to clone; opens nothing until it is used. Only the first signature makes
/// keys, or [`make`](Self::make): whoever looks into the wrong folder is told, and leaves nothing there.
///
/// There is always a key that signs and one that will sign next. The next one is in the public keys long before it signs,
/// so that every receiver knows it by then; one that signed before stays there until the last signature it made has
/// expired. The folder is made for its owner alone (mode 0700, its file 0600). A file that others can read is not used, nor
/// a folder that others can write to.
///
/// All calls read or write a small file on the caller's thread.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    path: Arc<Path>,
    clock: WallClock,
}

/// What a key is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyState {
    /// Signs.
    Active,
    /// Is known already, and signs after the next rotation.
    Next,
    /// Has signed, and is known until the last of its signatures has expired.
    Retired,
}

impl KeyState {
    /// The name in tables and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Next => "next",
            Self::Retired => "retired",
        }
    }
}

/// A key, as far as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyInfo {
    /// Its id.
    pub id: KeyId,
    /// What it is there for.
    pub state: KeyState,
    /// When it was made, and became known.
    pub created: UnixTime,
    /// Until when its signatures count, for one that is retired.
    pub known_until: Option<UnixTime>,
}

/// What a rotation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The key that signs from now on.
    pub active: KeyInfo,
    /// The one that signed until now.
    pub retired: KeyInfo,
    /// The new one, that will sign after the next rotation.
    pub next: KeyInfo,
    /// Those that nobody needs to know any more, and that are gone.
    pub gone: Vec<KeyId>,
    /// For how long the key that signs now was known before. A receiver whose copy of the public keys is older refuses what it
    /// signs.
    pub known_for: Duration,
}

impl KeyFolder {
    /// The folder at this path. It is made with the first keys.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: Arc::from(path.into()), clock: WallClock::System }
    }

    /// With another clock than the machine's. For tests.
    #[must_use]
    pub fn with_clock(mut self, clock: WallClock) -> Self {
        self.clock = clock;
        self
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the keys where there are none, as the first signature does, for receivers that are to know them before it.
    /// Returns those that are there.
    ///
    /// # Errors
    /// [`KeyError`]; its message says what to do.
    pub fn make(&self) -> Result<Vec<KeyInfo>, KeyError> {
        Ok(shown(&self.load()?))
    }

    /// The keys, the one that signs first.
    ///
    /// # Errors
    /// [`KeyError`]; its message says what to do. [`KeyError::NoKeys`] where none were made yet.
    pub fn list(&self) -> Result<Vec<KeyInfo>, KeyError> {
        Ok(shown(&self.existing()?))
    }

    /// The halves that receivers verify with: of the key that signs, of the next one, and of those that signed lately.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn public_keys(&self) -> Result<PublicKeys, KeyError> {
        Ok(self.existing()?.public_keys(self.clock.now()))
    }

    /// Lets the next key sign from now on, and makes another next one. Signatures of the old key count until they expire.
    ///
    /// # Errors
    /// [`KeyError`]: nothing was changed, unless its message says so.
    pub fn rotate(&self) -> Result<Rotation, KeyError> {
        let (_guard, mut stored) = self.to_change()?;
        let now = self.clock.now();
        let fresh = Entry::of(SigningKey::generate()?, KeyState::Next, now);
        let gone: Vec<_> =
            stored.keys.iter().filter(|entry| !entry.is_known(now)).map(|entry| entry.id().clone()).collect();
        stored.keys.retain(|entry| entry.is_known(now));
        let (old, new) = (stored.of_state(KeyState::Active, &self.path)?, stored.of_state(KeyState::Next, &self.path)?);
        stored.keys[old].retire(now);
        stored.keys[new].state = KeyState::Active;
        let rotation = Rotation {
            active: stored.keys[new].info(),
            retired: stored.keys[old].info(),
            next: fresh.info(),
            gone,
            known_for: now.since(stored.keys[new].created),
        };
        stored.keys.push(fresh);
        file::replace(&self.path, &stored)?;
        Ok(rotation)
    }

    /// Takes a key out: its signatures count no more, once the receivers have the new public keys. Of the next one another
    /// is made. `at_once` is for one that somebody else may have: it does not wait until its last signature has expired.
    ///
    /// # Errors
    /// [`KeyError`]: nothing was changed, unless its message says so. [`KeyError::InUse`] for the key that signs, and for one whose signatures may still
    /// be under way unless `at_once`.
    pub fn remove(&self, id: &KeyId, at_once: bool) -> Result<KeyInfo, KeyError> {
        let (_guard, mut stored) = self.to_change()?;
        let now = self.clock.now();
        let Some(at) = stored.keys.iter().position(|entry| entry.id() == id) else {
            return Err(KeyError::NoKey { id: id.clone(), path: self.path.to_path_buf() });
        };
        let in_use = |why: &str| KeyError::InUse { id: id.clone(), why: why.to_owned() };
        match stored.keys[at].state {
            KeyState::Active => return Err(in_use("it signs; rotate first (tenure keys rotate)")),
            KeyState::Next => stored.keys.push(Entry::of(SigningKey::generate()?, KeyState::Next, now)),
            KeyState::Retired if stored.keys[at].is_known(now) && !at_once => {
                return Err(in_use(
                    "what it signed last has not expired yet; say so if it must go at once (--at-once)",
                ));
            }
            KeyState::Retired => {}
        }
        let removed = stored.keys.remove(at).info();
        file::replace(&self.path, &stored)?;
        Ok(removed)
    }

    /// The key that signs. Read anew each time: a rotation by another process counts from now on.
    pub(crate) fn active(&self) -> Result<SigningKey, KeyError> {
        let mut stored = self.load()?;
        let at = stored.of_state(KeyState::Active, &self.path)?;
        Ok(stored.keys.swap_remove(at).key)
    }

    /// The file that changes whenever the keys do.
    pub(crate) fn file(&self) -> PathBuf {
        self.path.join(file::NAME)
    }

    /// The keys and, for each that is retired, until when it is known. Makes none: whoever verifies does not sign.
    pub(crate) fn known(&self) -> Result<Vec<(PublicKey, Option<UnixTime>)>, KeyError> {
        let keys = file::read(&self.path)?.map(|stored| stored.keys).unwrap_or_default();
        Ok(keys.iter().map(|entry| (entry.key.public().clone(), entry.known_until())).collect())
    }

    /// The clock by which keys retire.
    pub(crate) const fn clock(&self) -> &WallClock {
        &self.clock
    }

    fn existing(&self) -> Result<Stored, KeyError> {
        file::read(&self.path)?.ok_or_else(|| KeyError::NoKeys { path: self.path.to_path_buf() })
    }

    /// The keys, which nobody else changes meanwhile. Looks before it takes the guard, which makes the folder.
    fn to_change(&self) -> Result<(File, Stored), KeyError> {
        drop(self.existing()?);
        let guard = file::guard(&self.path)?;
        Ok((guard, self.existing()?))
    }

    /// The keys, which are made where there are none.
    fn load(&self) -> Result<Stored, KeyError> {
        if let Some(stored) = file::read(&self.path)? {
            return Ok(stored);
        }
        let now = self.clock.now();
        let entry = |state| SigningKey::generate().map(|key| Entry::of(key, state, now));
        let stored = Stored { keys: vec![entry(KeyState::Active)?, entry(KeyState::Next)?] };
        // Of two processes that come at once one makes the file, and both use that one.
        file::create(&self.path, &stored)?;
        file::read(&self.path)?
            .ok_or_else(|| KeyError::Corrupt { path: self.file(), why: "it was made just now, and is gone".to_owned() })
    }
}

fn shown(stored: &Stored) -> Vec<KeyInfo> {
    let mut all: Vec<_> = stored.keys.iter().map(Entry::info).collect();
    all.sort_by_key(|info| (info.state, std::cmp::Reverse(info.created)));
    all
}

/// How long a key is known after it has signed for the last time.
const OVERLAP: Duration = Duration::from_secs(LIFETIME.as_secs() + ALLOWANCE.as_secs());

#[cfg(test)]
mod tests;
