use crate::claims::Claims;
use crate::compact;
use crate::error::VerifyError;
use crate::folder::KeyFolder;
use crate::jwks::PublicKeys;
use crate::key::{KeyId, PublicKey};
use crate::wall::{UnixTime, WallClock};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::{SinkId, StoreIdentity, Token};

/// What a receiver verifies signed grants with. Cheap to clone.
///
/// A verified grant is one that was given out at some time, and no more: hand its token to the fence.
#[derive(Clone, Debug)]
pub struct Verifier {
    source: Source,
    authority: Option<StoreIdentity>,
    clock: WallClock,
}

#[derive(Clone, Debug)]
enum Source {
    Fixed(PublicKeys),
    File(Arc<Watched<PathBuf>>),
    Folder(Arc<Watched<KeyFolder>>),
}

/// Keys in a file, read again whenever it is another one.
#[derive(Debug)]
struct Watched<Place> {
    place: Place,
    read: Mutex<Option<Read>>,
}

/// What was read of a file, and when.
#[derive(Debug)]
struct Read {
    stamp: Stamp,
    at: UnixTime,
    known: Arc<Known>,
}

/// A file that was written in place twice within a tick of the file system's clock looks unchanged: it is read again after
/// so long, whatever it looks like.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// Each key, and until when it is known.
type Known = Vec<(PublicKey, Option<UnixTime>)>;

/// What tells a file from the one that took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Verifier {
    /// With these public keys, for ever. After a rotation or two it needs others.
    #[must_use]
    pub const fn new(keys: PublicKeys) -> Self {
        Self::of(Source::Fixed(keys))
    }

    /// With the public keys of a file, as `tenure keys export` prints them. It is read again when it has changed.
    #[must_use]
    pub fn of_file(path: impl Into<PathBuf>) -> Self {
        Self::of(Source::File(Arc::new(Watched::new(path.into()))))
    }

    /// With the authority's own folder, for a receiver that runs beside it as the same user. Such a receiver could sign as
    /// well: one that only verifies is better given a file of public keys.
    #[must_use]
    pub fn of_folder(folder: KeyFolder) -> Self {
        let clock = folder.clock().clone();
        Self { clock, ..Self::of(Source::Folder(Arc::new(Watched::new(folder)))) }
    }

    const fn of(source: Source) -> Self {
        Self { source, authority: None, clock: WallClock::System }
    }

    /// Only grants of this authority. Wanted where one folder of keys signs for several authorities.
    #[must_use]
    pub fn authority(mut self, authority: StoreIdentity) -> Self {
        self.authority = Some(authority);
        self
    }

    /// With another clock than the machine's. For tests.
    #[must_use]
    pub fn with_clock(mut self, clock: WallClock) -> Self {
        self.clock = clock;
        self
    }

    /// What a text says, if it is a signed grant whose time it is.
    ///
    /// # Errors
    /// [`VerifyError`]: nothing of it may be believed.
    pub fn verify(&self, text: &str) -> Result<Claims, VerifyError> {
        let parts = compact::read(text)?;
        let now = self.clock.now();
        let key = self.key(&parts.key, now)?.ok_or_else(|| VerifyError::UnknownKey { key: parts.key.clone() })?;
        if !key.has_signed(parts.message, &parts.signature) {
            return Err(VerifyError::Signature);
        }
        let claims = Claims::read(&parts.payload()?)?;
        claims.check_now(now)?;
        match &self.authority {
            Some(wanted) if claims.authority != *wanted => {
                Err(VerifyError::OtherAuthority { found: claims.authority.to_string(), wanted: wanted.to_string() })
            }
            _ => Ok(claims),
        }
    }

    /// The same, for a grant that must be for this receiver.
    ///
    /// # Errors
    /// As [`verify`](Self::verify), and [`VerifyError::OtherSink`].
    pub fn verify_for(&self, text: &str, sink: &SinkId) -> Result<Claims, VerifyError> {
        let claims = self.verify(text)?;
        if !claims.sinks.contains(sink) {
            return Err(VerifyError::OtherSink { wanted: sink.to_string() });
        }
        Ok(claims)
    }

    /// The same, for a grant that must be this token's.
    ///
    /// # Errors
    /// As [`verify_for`](Self::verify_for), and [`VerifyError::OtherResource`] or [`VerifyError::Claim`].
    pub fn verify_token(&self, text: &str, sink: &SinkId, token: &Token) -> Result<Claims, VerifyError> {
        let claims = self.verify_for(text, sink)?;
        if claims.token.resource != token.resource {
            return Err(VerifyError::OtherResource {
                found: claims.token.resource.to_string(),
                wanted: token.resource.to_string(),
            });
        }
        if claims.token != *token {
            let name = if claims.token.epoch == token.epoch { "jti" } else { "epoch" };
            return Err(VerifyError::Claim {
                name,
                why: "it is not that of the token which is shown with it".to_owned(),
            });
        }
        Ok(claims)
    }

    /// The public keys whose signatures it accepts now.
    ///
    /// # Errors
    /// [`VerifyError::Keys`]: they cannot be read.
    pub fn public_keys(&self) -> Result<PublicKeys, VerifyError> {
        let now = self.clock.now();
        match &self.source {
            Source::Fixed(keys) => Ok(keys.clone()),
            Source::File(_) | Source::Folder(_) => {
                let known = self.known(now)?;
                let valid = known.iter().filter(|(_, until)| until.is_none_or(|until| now < until));
                Ok(PublicKeys::new(valid.map(|(key, _)| key.clone())))
            }
        }
    }

    fn key(&self, id: &KeyId, now: UnixTime) -> Result<Option<PublicKey>, VerifyError> {
        match &self.source {
            Source::Fixed(keys) => Ok(keys.find(id).cloned()),
            Source::File(_) | Source::Folder(_) => Ok(pick(&self.known(now)?, id, now)),
        }
    }

    /// What the file or the folder says.
    fn known(&self, now: UnixTime) -> Result<Arc<Known>, VerifyError> {
        let unreadable = |why: String| VerifyError::Keys { why };
        match &self.source {
            Source::Fixed(keys) => Ok(Arc::new(keys.iter().map(|key| (key.clone(), None)).collect())),
            Source::File(file) => file.known(now, &file.place, |path| {
                let text = std::fs::read(path).map_err(|error| unreadable(format!("{}: {error}", path.display())))?;
                let keys =
                    PublicKeys::parse(&text).map_err(|error| unreadable(format!("{}: {error}", path.display())))?;
                Ok(keys.iter().map(|key| (key.clone(), None)).collect())
            }),
            Source::Folder(folder) => folder.known(now, &folder.place.file(), |_| {
                folder.place.known().map_err(|error| unreadable(error.to_string()))
            }),
        }
    }
}

impl<Place> Watched<Place> {
    fn new(place: Place) -> Self {
        Self { place, read: Mutex::default() }
    }

    /// What the file holds. Nobody waits for another one's look at it: a disk that hangs holds up whoever asks it, alone.
    fn known(
        &self,
        now: UnixTime,
        path: &Path,
        read: impl FnOnce(&Path) -> Result<Known, VerifyError>,
    ) -> Result<Arc<Known>, VerifyError> {
        // Before the reading: what changes in between is read again next time.
        let stamp = Stamp::of(path);
        if let Some(before) = self.cached().as_ref().filter(|before| before.is_fresh(stamp, now)) {
            return Ok(Arc::clone(&before.known));
        }
        let known = Arc::new(read(path)?);
        // Of two that read at once the slower one may put the older content here, under its older stamp.
        *self.cached() = stamp.map(|stamp| Read { stamp, at: now, known: Arc::clone(&known) });
        Ok(known)
    }

    fn cached(&self) -> MutexGuard<'_, Option<Read>> {
        // What it holds is replaced in one step: also one that was left by a panic is whole.
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read {
    fn is_fresh(&self, stamp: Option<Stamp>, now: UnixTime) -> bool {
        // A wall clock that was set back proves nothing either.
        Some(self.stamp) == stamp && now >= self.at && now.since(self.at) < READ_AGAIN
    }
}

fn pick(known: &[(PublicKey, Option<UnixTime>)], id: &KeyId, now: UnixTime) -> Option<PublicKey> {
    let found = known.iter().find(|(key, until)| key.id() == id && until.is_none_or(|until| now < until));
    found.map(|(key, _)| key.clone())
}

impl Stamp {
    /// `None` when there is no such file.
    fn of(path: &Path) -> Option<Self> {
        let there = std::fs::metadata(path).ok()?;
        Some(Self { inode: there.ino(), size: there.size(), changed: (there.ctime(), there.ctime_nsec()) })
    }
}

#[cfg(test)]
mod tests;
