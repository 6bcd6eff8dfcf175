use super::Witness;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file with one witness. Processes take turns by its lock, and each puts a new file in its place.
#[derive(Clone, Debug)]
pub(crate) struct Paper {
    path: PathBuf,
    /// Whose mode and owner the witness has; without it, it is its owner's alone.
    like: Option<PathBuf>,
}

/// What stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// There is no such file.
    Nothing,
    /// It cannot be understood.
    Damaged,
    /// A witness.
    Witness(Witness),
}

/// How long a turn takes at most.
const PAUSE: Duration = Duration::from_millis(2);

impl Paper {
    pub(crate) fn new(path: PathBuf, like: Option<PathBuf>) -> Self {
        Self { path, like }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn read(&self) -> io::Result<Found> {
        match fs::read(&self.path) {
            Ok(bytes) => {
                let witness = str::from_utf8(&bytes).ok().and_then(Witness::parse);
                Ok(witness.map_or(Found::Damaged, Found::Witness))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Lets `change` judge what stands there, and puts its answer in the place of it. `Ok(false)`: others had their turn
    /// for longer than `patience`, and nothing was done.
    pub(crate) fn update<E: From<io::Error>>(
        &self,
        patience: Duration,
        change: impl FnOnce(Found) -> Result<Option<Witness>, E>,
    ) -> Result<bool, E> {
        let Some(turn) = self.turn(patience)? else { return Ok(false) };
        let found = self.read()?;
        if found == Found::Damaged {
            let aside = beside(&self.path, ".damaged");
            fs::rename(&self.path, &aside)?;
            tracing::warn!(path = %self.path.display(), aside = %aside.display(), "a damaged witness was put aside");
        }
        if let Some(witness) = change(found)? {
            self.write(&witness)?;
        }
        drop(turn);
        Ok(true)
    }

    /// The lock of the file that stands there now. Without a file there is nothing to take turns at.
    fn turn(&self, patience: Duration) -> io::Result<Option<Option<File>>> {
        let mut left = patience;
        loop {
            let file = match File::open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(None)),
                Err(error) => return Err(error),
            };
            match file.try_lock() {
                // Whoever had the turn before has put another file there.
                Ok(())
                    if fs::metadata(&self.path)
                        .is_ok_and(|now| file.metadata().is_ok_and(|own| now.ino() == own.ino())) =>
                {
                    return Ok(Some(Some(file)));
                }
                Ok(()) => {}
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if left.is_zero() => return Ok(None),
                Err(TryLockError::WouldBlock) => {
                    let pause = PAUSE.min(left);
                    std::thread::park_timeout(pause);
                    left -= pause;
                }
            }
        }
    }

    fn write(&self, witness: &Witness) -> io::Result<()> {
        let aside = beside(&self.path, &format!(".{}", std::process::id()));
        let written = self.write_aside(&aside, witness).and_then(|()| fs::rename(&aside, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
            return written;
        }
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all())
    }

    fn write_aside(&self, aside: &Path, witness: &Witness) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(aside)?;
        if let Some(like) = self.like.as_ref().and_then(|like| fs::metadata(like).ok()) {
            // As SQLite does for its own files: what an administrator looked at must stay usable for the others. Only
            // an administrator may give it away, and for everybody else it is right already.
            let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
            file.set_permissions(like.permissions())?;
        }
        file.write_all(witness.text().as_bytes())?;
        file.sync_all()
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
