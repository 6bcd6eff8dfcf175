//! The chunks of a round, on disk: so that a round of any size needs little memory.

use crate::chunk::Chunk;
use crate::manifest::Sum;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};

/// A file without a name, in the folder for temporary files: it is gone with the process, however that ends.
#[derive(Debug)]
pub struct Spool {
    file: BufWriter<File>,
    chunks: u64,
}

/// A chunk, and the key of its vector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spooled {
    /// The key.
    pub key: Sum,
    /// The chunk.
    #[serde(flatten)]
    pub chunk: Chunk,
}

/// The chunks of a spool, from the first.
#[derive(Debug)]
pub struct Reader<'a> {
    lines: io::Lines<BufReader<&'a File>>,
}

impl Spool {
    /// An empty one.
    ///
    /// # Errors
    /// What the system says: the folder for temporary files (`TMPDIR`) is missing, full or not writable.
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?), chunks: 0 })
    }

    /// Adds a chunk.
    ///
    /// # Errors
    /// What the system says, above all that there is no room.
    pub fn push(&mut self, spooled: &Spooled) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, spooled)?;
        self.file.write_all(b"\n")?;
        self.chunks += 1;
        Ok(())
    }

    /// How many chunks it has.
    #[must_use]
    pub const fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Reads it from the first chunk.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&mut self) -> io::Result<Reader<'_>> {
        self.file.flush()?;
        let mut file = self.file.get_ref();
        file.seek(SeekFrom::Start(0))?;
        Ok(Reader { lines: BufReader::new(file).lines() })
    }
}

impl Reader<'_> {
    /// The next ones, at most so many; none at the end.
    ///
    /// # Errors
    /// What the system says.
    pub fn page(&mut self, limit: usize) -> io::Result<Vec<Spooled>> {
        self.lines.by_ref().take(limit).map(|line| Ok(serde_json::from_str(&line?)?)).collect()
    }
}
