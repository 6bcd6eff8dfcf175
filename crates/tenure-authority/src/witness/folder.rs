use super::Witness;
use super::paper::{Found, Paper};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::StoreIdentity;

/// A folder of witnesses on the holder's side, one file for each store. Several processes may share it.
///
/// It is for stores that have no place of their own outside of their backups: a worker that is started again shows what
/// its predecessors have seen, and a store that went back notices it.
#[derive(Clone, Debug)]
pub struct WitnessFolder(PathBuf);

/// Why a witness was not read or written.
#[derive(Debug, thiserror::Error)]
#[error("the witness {} cannot be used: {why}", path.display())]
pub struct WitnessError {
    /// The file or folder.
    pub path: PathBuf,
    /// What the system says.
    #[source]
    pub why: io::Error,
}

/// How long to wait for other processes that write the same witness.
const PATIENCE: Duration = Duration::from_millis(100);

/// Longest part of an identity in a file's name.
const NAME_MAX: usize = 80;

impl WitnessFolder {
    /// The folder at this path. It is made, for its owner alone, when something is first written.
    #[must_use]
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// What was seen of a store; `None` when nothing was, or nothing that can be understood.
    ///
    /// # Errors
    /// [`WitnessError`]: nothing was read. Going on without it is possible, and notices less.
    pub fn load(&self, identity: &StoreIdentity) -> Result<Option<Witness>, WitnessError> {
        let paper = self.paper(identity);
        match paper.read() {
            Ok(Found::Witness(witness)) => Ok(Some(witness).filter(|witness| witness.identity == *identity)),
            Ok(Found::Nothing | Found::Damaged) => Ok(None),
            Err(why) => Err(WitnessError { path: paper.path().to_path_buf(), why }),
        }
    }

    /// Writes down what was seen, unless something newer stands there. A damaged file is put aside.
    ///
    /// # Errors
    /// [`WitnessError`]: it was not written. Going on without it is possible, and notices less.
    pub fn record(&self, witness: &Witness) -> Result<(), WitnessError> {
        let paper = self.paper(&witness.identity);
        let failed = |why: io::Error| WitnessError { path: paper.path().to_path_buf(), why };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.0).map_err(failed)?;
        let newer = |found: Found| {
            Ok::<_, io::Error>(match found {
                Found::Witness(there) if there.identity == witness.identity && there.seen >= witness.seen => None,
                _ => Some(witness.clone()),
            })
        };
        match paper.update(PATIENCE, newer) {
            // Whoever has the turn writes the same, or nearly so.
            Ok(true | false) => Ok(()),
            Err(why) => Err(failed(why)),
        }
    }

    fn paper(&self, identity: &StoreIdentity) -> Paper {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = identity.as_str().chars().map(plain).take(NAME_MAX).collect();
        // Apart, whatever the plain name has lost; the identity in the file decides.
        let apart = identity
            .as_str()
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Paper::new(self.0.join(format!("{name}-{apart:016x}")), None)
    }
}
