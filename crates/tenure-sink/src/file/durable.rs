//! Files that survive a power failure whole or not at all.

use super::folder::Folder;
use crate::SinkError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Replaces a file: its content is the old or the new one, never a part.
pub(super) fn save(folder: &Folder, path: &Path, content: &[u8]) -> Result<(), SinkError> {
    let aside = path.with_extension("new");
    write(folder, &aside, content)?;
    fs::rename(&aside, path).map_err(|error| io_error(folder, "replacing a record", &error))?;
    sync_parent(folder, path)
}

/// Writes a file and makes its content and its name durable.
pub(super) fn write(folder: &Folder, path: &Path, content: &[u8]) -> Result<(), SinkError> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(content)?;
        file.sync_all()
    });
    written.map_err(|error| io_error(folder, "writing a file", &error))?;
    sync_parent(folder, path)
}

/// The content of a file; `None` when there is none.
pub(super) fn read(folder: &Folder, path: &Path) -> Result<Option<Vec<u8>>, SinkError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error(folder, "reading a file", &error)),
    }
}

/// Removes a file for good; one that is not there is removed already.
pub(super) fn remove(folder: &Folder, path: &Path) -> Result<(), SinkError> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(folder, path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(io_error(folder, "removing a record", &error)),
    }
}

/// Creates a folder, whose parent must be there, and makes its name durable.
pub(super) fn create_folder(folder: &Folder, path: &Path) -> Result<(), SinkError> {
    match fs::create_dir(path) {
        Ok(()) => sync_parent(folder, path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(SinkError::Foreign { place: path.display().to_string(), why: "it is a file, not a folder".into() })
        }
        Err(error) => Err(io_error(folder, "creating a folder", &error)),
    }
}

/// Creates an empty file where there is none.
pub(super) fn touch(folder: &Folder, path: &Path) -> Result<(), SinkError> {
    let made = OpenOptions::new().create(true).append(true).open(path);
    made.map(drop).map_err(|error| io_error(folder, "creating a file", &error))
}

/// Makes the names in a folder durable.
pub(super) fn sync(folder: &Folder, path: &Path) -> Result<(), SinkError> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let synced = File::open(path).and_then(|opened| opened.sync_all());
    synced.map_err(|error| io_error(folder, "making a folder durable", &error))
}

fn sync_parent(folder: &Folder, path: &Path) -> Result<(), SinkError> {
    path.parent().map_or(Ok(()), |parent| sync(folder, parent))
}

/// From what the system says to what the caller should do.
pub(super) fn io_error(folder: &Folder, doing: &'static str, error: &io::Error) -> SinkError {
    let (place, why) = (folder.to_string(), error.to_string());
    match error.kind() {
        ErrorKind::NotFound => SinkError::Missing { place },
        ErrorKind::NotADirectory => SinkError::Foreign { place, why },
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => SinkError::NotWritable { place, why },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => SinkError::Full { place, why },
        _ => SinkError::Failed { place, doing, why },
    }
}
