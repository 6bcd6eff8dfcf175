//! A folder of files.

mod walk;

use super::{Document, Format, Source, SourceError};
use crate::manifest::Sum;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use walk::{Found, Walk};

/// All files of a folder and of the folders in it that end in `.md`, `.markdown`, `.html`, `.htm`, `.rst` or `.txt`.
///
/// A document's name is its path within the folder. What begins with a point is left out, and so are links that lead to
/// folders or out of the folder. Only one document is in memory at a time.
#[derive(Debug)]
pub struct FolderSource {
    place: String,
    root: PathBuf,
    max_document: u64,
    left_out: Mutex<BTreeMap<String, u64>>,
}

impl FolderSource {
    /// The folder is looked at when it is read. Documents of more than `max_document` bytes are errors.
    #[must_use]
    pub fn new(root: &Path, max_document: u64) -> Self {
        Self { place: root.display().to_string(), root: root.to_owned(), max_document, left_out: Mutex::default() }
    }

    fn not_readable(&self, why: impl Into<String>) -> SourceError {
        SourceError::Place { place: self.place.clone(), why: why.into() }
    }

    fn walk(&self) -> Result<Walk, SourceError> {
        let meta = std::fs::metadata(&self.root).map_err(|error| {
            let is_missing = error.kind() == std::io::ErrorKind::NotFound;
            self.not_readable(if is_missing {
                "there is no such folder: give the path of one that is there".to_owned()
            } else {
                format!("{error}: let this user read it, or give another folder")
            })
        })?;
        if !meta.is_dir() {
            return Err(self.not_readable("it is no folder: give the folder that the documents are in"));
        }
        Walk::new(&self.root).map_err(|error| self.not_readable(format!("{error}: let this user read it")))
    }

    /// After the last file, when there was no document among them.
    fn nothing(&self, left_out: &BTreeMap<String, u64>) -> SourceError {
        let found = match left_out.is_empty() {
            true => "it is empty".to_owned(),
            false => {
                let found =
                    left_out.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ");
                format!("it has no document, only {found}")
            }
        };
        self.not_readable(format!(
            "{found}; documents end in .md, .markdown, .html, .htm, .rst or .txt: give another folder"
        ))
    }
}

impl Source for FolderSource {
    fn place(&self) -> &str {
        &self.place
    }

    fn documents(&self) -> BoxStream<'_, Result<Document, SourceError>> {
        let reading = Reading { walk: None, is_over: false, has_found: false };
        stream::unfold(reading, |mut reading| async {
            if reading.is_over {
                return None;
            }
            if reading.walk.is_none() {
                match self.walk() {
                    Ok(walk) => reading.walk = Some(walk),
                    Err(error) => {
                        reading.is_over = true;
                        return Some((Err(error), reading));
                    }
                }
            }
            let (mut walk, max_document) = (reading.walk.take()?, self.max_document);
            let next = move || {
                let found = walk.next().map(|found| read(found, walk.root(), max_document));
                (found, walk)
            };
            // A disk may be slow, and others run on this thread.
            let (found, walk) = match tokio::task::spawn_blocking(next).await {
                Ok(next) => next,
                Err(error) => {
                    reading.is_over = true;
                    return Some((Err(self.not_readable(format!("reading it broke off: {error}"))), reading));
                }
            };
            if let Some(found) = found {
                reading.walk = Some(walk);
                reading.has_found = true;
                return Some((found, reading));
            }
            reading.is_over = true;
            let nothing = (!reading.has_found).then(|| self.nothing(walk.left_out()));
            *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) = walk.into_left_out();
            nothing.map(|nothing| (Err(nothing), reading))
        })
        .boxed()
    }

    fn left_out(&self) -> BTreeMap<String, u64> {
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Reading {
    walk: Option<Walk>,
    is_over: bool,
    has_found: bool,
}

fn read(found: Found, root: &Path, max_document: u64) -> Result<Document, SourceError> {
    let (id, path, format) = match found {
        Found::Document { id, format } => {
            let path = root.join(&id);
            (id, path, format)
        }
        Found::Broken { name, why } => return Err(SourceError::Document { document: name, why }),
    };
    match text(&path, root, max_document) {
        Ok(bytes) => document(id, format, bytes),
        Err(why) => Err(SourceError::Document { document: id, why }),
    }
}

/// What is in the file, all of it as of one moment.
fn text(path: &Path, root: &Path, max_document: u64) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("{error}: let this user read it, or take it out of the folder");
    // A link was followed here, once; what is opened is not one any more.
    let real = path.canonicalize().map_err(unreadable)?;
    if !real.starts_with(root) {
        return Err("it leads out of the folder since a moment ago: run again".to_owned());
    }
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let mut file = File::options().read(true).custom_flags(flags).open(&real).map_err(unreadable)?;
    let before = file.metadata().map_err(unreadable)?;
    if !before.is_file() {
        return Err("it is a pipe, a socket or a device: take it out of the folder".to_owned());
    }
    let too_large = |size: u64| {
        format!("it has {size} bytes, and at most {max_document} are read: split it, or allow more with --max-document")
    };
    if before.len() > max_document {
        return Err(too_large(before.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or_default() + 1);
    // One more than it has, to see whether it grows; a pseudo file says that it has none.
    (&mut file).take(max_document + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max_document {
        return Err(too_large(bytes.len() as u64));
    }
    let after = file.metadata().map_err(unreadable)?;
    if version(&before) != version(&after) || (bytes.len() as u64 != after.len() && after.len() > 0) {
        return Err("it was changed while it was read: run again when nobody writes to it".to_owned());
    }
    Ok(bytes)
}

fn version(meta: &Metadata) -> [i64; 5] {
    [meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec(), meta.len().cast_signed()]
}

/// Makes a document of bytes, which must be a text in UTF-8.
fn document(id: String, format: Format, bytes: Vec<u8>) -> Result<Document, SourceError> {
    let content = Sum::of(&[&bytes]);
    match super::readable(bytes) {
        Ok(text) => Ok(Document { id, format, text, content }),
        Err(why) => Err(SourceError::Document { document: id, why }),
    }
}
