//! Standard input, kept in a file without a name until its end is known.

use crate::screen::progress::Progress;
use crate::screen::say;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::path::Path;
use tenure::core::Digest;

/// What was read, with its digest.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    bytes: u64,
    digest: Digest,
}

const CHUNK: usize = 256 * 1024;

/// What is copied between two looks at the progress.
const PIECE: u64 = 16 << 20;

impl Spool {
    /// Reads standard input to its end. The file is gone with this process.
    pub(super) fn stdin(folder: &Path) -> io::Result<Self> {
        if io::stdin().is_terminal() {
            say("put", "reading what you type, up to its end (Ctrl-D)");
        }
        Self::of(&mut io::stdin().lock(), folder, size_of_stdin())
    }

    fn of(input: &mut impl Read, folder: &Path, size: Option<u64>) -> io::Result<Self> {
        let mut file = tempfile::tempfile_in(folder)?;
        let mut hasher = Sha256::new();
        let mut chunk = vec![0; CHUNK];
        let mut progress = Progress::of_bytes("reading", size);
        let mut bytes = 0;
        loop {
            let read = match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let part = chunk.get(..read).unwrap_or_default();
            hasher.update(part);
            file.write_all(part)?;
            bytes += read as u64;
            progress.at(bytes);
        }
        Ok(Self { file, bytes, digest: Digest(hasher.finalize().into()) })
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) const fn digest(&self) -> Digest {
        self.digest
    }

    /// What a replay will be answered.
    pub(super) fn summary(&self, name: &str) -> String {
        let hex: String = self.digest.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{name}: {} bytes, sha256 {hex}", self.bytes)
    }

    /// Copies it, in the kernel where that can be.
    pub(super) fn copy_to(&mut self, target: &mut File) -> io::Result<()> {
        self.file.rewind()?;
        let mut progress = Progress::of_bytes("writing", Some(self.bytes));
        let mut copied = 0;
        while copied < self.bytes {
            match io::copy(&mut (&self.file).take(PIECE), target)? {
                0 => return Err(io::Error::other("the kept input has become shorter")),
                piece => copied += piece,
            }
            progress.at(copied);
        }
        Ok(())
    }
}

/// The size of a file that was redirected; nobody knows how long a pipe is.
fn size_of_stdin() -> Option<u64> {
    let stat = rustix::fs::fstat(rustix::stdio::stdin()).ok()?;
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
    u64::try_from(stat.st_size).ok().filter(|_| is_file)
}

#[cfg(test)]
mod tests;
