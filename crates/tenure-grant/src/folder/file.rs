//! The file with the keys: a JSON Web Key Set with private halves, and a member for the state of each.

use super::{KeyInfo, KeyState, OVERLAP};
use crate::error::KeyError;
use crate::jwks::PublicKeys;
use crate::key::{KEY_BYTES, KeyId, SigningKey};
use crate::wall::UnixTime;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

pub(super) const NAME: &str = "keys.json";
const GUARD: &str = "guard";
const VERSION: u64 = 1;

/// All that is in the file.
pub(super) struct Stored {
    pub(super) keys: Vec<Entry>,
}

pub(super) struct Entry {
    pub(super) key: SigningKey,
    pub(super) state: KeyState,
    pub(super) created: UnixTime,
    retired: Option<UnixTime>,
}

impl Entry {
    pub(super) const fn of(key: SigningKey, state: KeyState, created: UnixTime) -> Self {
        Self { key, state, created, retired: None }
    }

    pub(super) const fn id(&self) -> &KeyId {
        self.key.id()
    }

    pub(super) const fn retire(&mut self, now: UnixTime) {
        self.state = KeyState::Retired;
        self.retired = Some(now);
    }

    pub(super) fn known_until(&self) -> Option<UnixTime> {
        self.retired.map(|retired| retired.after(OVERLAP))
    }

    pub(super) fn is_known(&self, now: UnixTime) -> bool {
        self.known_until().is_none_or(|until| now < until)
    }

    pub(super) fn info(&self) -> KeyInfo {
        KeyInfo { id: self.id().clone(), state: self.state, created: self.created, known_until: self.known_until() }
    }
}

impl Stored {
    pub(super) fn public_keys(&self, now: UnixTime) -> PublicKeys {
        let known = self.keys.iter().filter(|entry| entry.is_known(now));
        PublicKeys::new(known.map(|entry| entry.key.public().clone()))
    }

    /// Where the one key of this state is: there is always one that signs, and one that will.
    pub(super) fn of_state(&self, state: KeyState, folder: &Path) -> Result<usize, KeyError> {
        self.keys.iter().position(|entry| entry.state == state).ok_or_else(|| KeyError::Corrupt {
            path: folder.join(NAME),
            why: format!("it has no key that is {}", state.name()),
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u64,
    keys: Vec<WrittenKey>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKey {
    kty: String,
    crv: String,
    kid: String,
    x: String,
    /// The secret.
    d: Zeroizing<String>,
    state: String,
    created: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retired: Option<u64>,
}

/// The file's content; `None` when there is none.
pub(super) fn read(folder: &Path) -> Result<Option<Stored>, KeyError> {
    let path = folder.join(NAME);
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io("opening", &path, error)),
    };
    // Of the opened file, not of the name: another one may stand there in a moment.
    let mode = file.metadata().map_err(|error| io("reading", &path, error))?.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed { path, mode });
    }
    check_folder(folder)?;
    let mut text = Zeroizing::new(Vec::new());
    file.read_to_end(&mut text).map_err(|error| io("reading", &path, error))?;
    parse(&text).map(Some).map_err(|why| KeyError::Corrupt { path, why })
}

fn parse(text: &[u8]) -> Result<Stored, String> {
    // The place alone: what stands there may be a secret.
    let written: Written = serde_json::from_slice(text)
        .map_err(|error| format!("line {}, column {} is not what was written", error.line(), error.column()))?;
    if written.version != VERSION {
        return Err(format!("it has the version {}, and this program knows {VERSION}", written.version));
    }
    let keys = written.keys.iter().map(WrittenKey::entry).collect::<Result<Vec<_>, _>>()?;
    Ok(Stored { keys })
}

impl WrittenKey {
    fn entry(&self) -> Result<Entry, String> {
        let wrong = || format!("the key {:?} is not whole", self.kid);
        let mut seed = Zeroizing::new([0; KEY_BYTES]);
        let length = URL_SAFE_NO_PAD.decode_slice(self.d.as_str(), &mut *seed).map_err(|_| wrong())?;
        let key = SigningKey::of_seed(seed).filter(|_| length == KEY_BYTES).ok_or_else(wrong)?;
        let is_whole = self.kty == "OKP"
            && self.crv == "Ed25519"
            && self.kid == key.id().as_str()
            && self.x == URL_SAFE_NO_PAD.encode(key.public().bytes());
        let states = [KeyState::Active, KeyState::Next, KeyState::Retired];
        let state = states.into_iter().find(|state| state.name() == self.state);
        let state = state.filter(|state| (*state == KeyState::Retired) == self.retired.is_some());
        match state {
            Some(state) if is_whole => Ok(Entry {
                key,
                state,
                created: UnixTime::from_secs(self.created),
                retired: self.retired.map(UnixTime::from_secs),
            }),
            _ => Err(wrong()),
        }
    }

    fn of(entry: &Entry) -> Self {
        let mut d = Zeroizing::new(String::with_capacity(2 * KEY_BYTES));
        URL_SAFE_NO_PAD.encode_string(entry.key.seed().as_slice(), &mut d);
        Self {
            kty: "OKP".to_owned(),
            crv: "Ed25519".to_owned(),
            kid: entry.id().to_string(),
            x: URL_SAFE_NO_PAD.encode(entry.key.public().bytes()),
            d,
            state: entry.state.name().to_owned(),
            created: entry.created.as_secs(),
            retired: entry.retired.map(UnixTime::as_secs),
        }
    }
}

/// Makes the file, unless another process has made it first.
pub(super) fn create(folder: &Path, stored: &Stored) -> Result<(), KeyError> {
    make_folder(folder)?;
    let (aside, path) = (aside(folder, stored)?, folder.join(NAME));
    // Unlike a rename, a link never takes the place of what is there.
    let linked = fs::hard_link(&aside, &path);
    let removed = fs::remove_file(&aside);
    match linked {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        linked => linked.map_err(|error| io("making", &path, error))?,
    }
    removed.map_err(|error| io("removing", &aside, error))?;
    sync(folder)
}

/// Puts other content into its place, in one step.
pub(super) fn replace(folder: &Path, stored: &Stored) -> Result<(), KeyError> {
    let (aside, path) = (aside(folder, stored)?, folder.join(NAME));
    if let Err(error) = fs::rename(&aside, &path) {
        // Secrets that nothing uses.
        let _ = fs::remove_file(&aside);
        return Err(io("replacing", &path, error));
    }
    sync(folder)
}

/// Held by who changes keys that are there: of two rotations at once the second would undo the first.
pub(super) fn guard(folder: &Path) -> Result<File, KeyError> {
    make_folder(folder)?;
    let path = folder.join(GUARD);
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(|error| io("opening", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(KeyError::Busy { path: folder.to_path_buf() }),
        Err(fs::TryLockError::Error(error)) => Err(io("holding", &path, error)),
    }
}

fn aside(folder: &Path, stored: &Stored) -> Result<PathBuf, KeyError> {
    let written = Written { version: VERSION, keys: stored.keys.iter().map(WrittenKey::of).collect() };
    let mut text = Zeroizing::new(Vec::with_capacity(4096));
    serde_json::to_writer_pretty(&mut *text, &written)
        .map_err(|error| io("writing", folder, std::io::Error::other(error)))?;
    let mut random = [0; 8];
    SystemRandom::new().fill(&mut random).map_err(|_| KeyError::Entropy)?;
    let path = folder.join(format!(".{NAME}.{:016x}", u64::from_ne_bytes(random)));
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
    let mut file = file.map_err(|error| io("making", &path, error))?;
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    if let Err(error) = written {
        // What is half written is of no use, and a secret.
        let _ = fs::remove_file(&path);
        return Err(io("writing", &path, error));
    }
    sweep(folder, &file);
    Ok(path)
}

/// A change is made within milliseconds. What lies aside for longer is of a process that was killed.
const ABANDONED: i64 = 60;

/// Removes what killed processes have left aside, which holds secrets. It is a courtesy: what cannot be removed stays. By the
/// file system's own clock, as it has just dated `fresh`.
fn sweep(folder: &Path, fresh: &File) {
    let Ok(now) = fresh.metadata().map(|of| of.mtime()) else { return };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        // Of the name itself: a link is not followed.
        let is_old = entry.metadata().is_ok_and(|of| of.is_file() && now.saturating_sub(of.mtime()) > ABANDONED);
        if is_old && is_aside(&entry.file_name()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_aside(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_prefix(NAME)?.strip_prefix('.'));
    random.is_some_and(|random| random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn make_folder(folder: &Path) -> Result<(), KeyError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| io("making", folder, error))?;
    check_folder(folder)
}

/// Who can write to the folder can put keys of his own into it.
fn check_folder(folder: &Path) -> Result<(), KeyError> {
    let mode = fs::metadata(folder).map_err(|error| io("reading", folder, error))?.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(KeyError::OpenFolder { path: folder.to_path_buf(), mode });
    }
    Ok(())
}

fn sync(folder: &Path) -> Result<(), KeyError> {
    let saved = File::open(folder).and_then(|folder| folder.sync_all());
    saved.map_err(|error| io("the change was made, but saving it in", folder, error))
}

fn io(doing: &'static str, path: &Path, error: std::io::Error) -> KeyError {
    KeyError::Io { doing, path: path.to_path_buf(), error }
}
