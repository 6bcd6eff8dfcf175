//! A server's data folder, put back.

use crate::folder::{Folder, copy};
use crate::process::Process;

/// What a snapshot of a server's volume holds: [`Postgres::snapshot`](crate::Postgres::snapshot) and
/// [`Redis::snapshot`](crate::Redis::snapshot) take one.
#[derive(Debug)]
pub struct Snapshot {
    folder: Folder,
}

impl Snapshot {
    /// Copies the data folder at one instant: the server writes nothing meanwhile.
    pub(crate) fn take(process: &Process, from: &Folder) -> Self {
        let folder = Folder::new("snapshot", None);
        process.pause();
        copy(&from.at("data"), &folder.at("data"));
        process.resume();
        Self { folder }
    }

    /// Puts the copy in the place of the data folder of a server that does not run.
    pub(crate) fn put_back(&self, to: &Folder) {
        std::fs::remove_dir_all(to.at("data")).expect("the data folder can be removed");
        copy(&self.folder.at("data"), &to.at("data"));
    }
}
