//! Where everything is inside the folder.

use super::durable;
use crate::SinkError;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use tenure_core::{OperationId, ResourceName};

/// The folder of the sink's own records. No target may have its name.
const OWN: &str = ".tenure";

/// Longest file name, in bytes, on the file systems that we know.
const FILE_NAME_BYTES_MAX: usize = 255;

/// The folder of a sink.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

/// The records of one resource. Their folder's name is a digest of the resource's name: names may be long, hold any
/// character, and differ in case only. The records say the name itself.
#[derive(Clone, Debug)]
pub(super) struct Records(PathBuf);

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

impl Folder {
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_path_buf())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The sink's identity, rule, generation and floor.
    pub(super) fn namespace(&self) -> PathBuf {
        self.0.join(OWN).join("namespace.json")
    }

    /// Held shared by each turn at a resource, and alone by what concerns all resources.
    pub(super) fn guard(&self) -> PathBuf {
        self.0.join(OWN).join("guard")
    }

    pub(super) fn resource(&self, resource: &ResourceName) -> Records {
        Records(self.0.join(OWN).join(file_name(resource.as_str())))
    }

    /// The records of all resources that come after this one's, in the order of their folders' names.
    pub(super) fn resources(&self, after: Option<&ResourceName>) -> Result<Vec<Records>, SinkError> {
        let fail = |error: io::Error| durable::io_error(self, "listing the resources", &error);
        let after = after.map(|resource| self.resource(resource).0);
        let mut found = Vec::new();
        for entry in std::fs::read_dir(self.0.join(OWN)).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.is_dir() && after.as_ref().is_none_or(|after| path > *after) {
                found.push(Records(path));
            }
        }
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// Creates the folder and the place of the sink's own records.
    pub(super) fn create(&self) -> Result<(), SinkError> {
        durable::create_folder(self, &self.0)?;
        durable::create_folder(self, &self.0.join(OWN))?;
        durable::touch(self, &self.guard())
    }

    /// The path of a target, if its name is a plain file name.
    pub(super) fn target(&self, name: &str) -> Result<PathBuf, SinkError> {
        let why = match name {
            "" => "give the name of a file",
            "." | ".." => "it names a folder",
            OWN => "the sink's own records are there",
            _ if name.contains('/') => "a target is a file directly in the sink's folder: leave out the `/`",
            _ if name.contains('\0') => "a file name has no NUL",
            _ if name.len() > FILE_NAME_BYTES_MAX => "a file name has at most 255 bytes",
            _ => return Ok(self.0.join(name)),
        };
        Err(SinkError::BadName { name: name.to_owned(), why })
    }
}

impl Records {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether anything was ever registered for the resource.
    pub(super) fn is_there(&self) -> bool {
        self.0.is_dir()
    }

    pub(super) fn create(&self, folder: &Folder) -> Result<(), SinkError> {
        if !self.operations().is_dir() {
            durable::create_folder(folder, &self.0)?;
            durable::create_folder(folder, &self.operations())?;
        }
        durable::touch(folder, &self.guard())
    }

    /// Held alone by each turn.
    pub(super) fn guard(&self) -> PathBuf {
        self.0.join("guard")
    }

    /// The fence, with the promise of the turn that is under way.
    pub(super) fn fence(&self) -> PathBuf {
        self.0.join("fence.json")
    }

    /// The content that is about to become a target's. Only one turn at a time has one.
    pub(super) fn aside(&self) -> PathBuf {
        self.0.join("aside")
    }

    pub(super) fn operation(&self, operation: &OperationId) -> PathBuf {
        self.operations().join(file_name(operation.as_str())).with_extension("json")
    }

    fn operations(&self) -> PathBuf {
        self.0.join("operations")
    }
}

fn file_name(name: &str) -> String {
    Sha256::digest(name).iter().map(|byte| format!("{byte:02x}")).collect()
}
