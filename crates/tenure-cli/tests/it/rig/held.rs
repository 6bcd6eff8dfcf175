//! Silence that needs no rights: a stopped process holds the file's write.

use super::process::{Process, say, wait_for_go};
use super::{FileRig, Rig};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The test that a holding process is started as.
const ENTRY: &str = "silence::nobody_writes_beside_a_stopped_writer";
const HOLD: &str = "hold";

/// An authority's file that another process holds in the middle of a write, and that process is stopped. SQLite waits for
/// it up to its busy timeout, and says then that the file is busy: this silence has an end.
pub(crate) struct Held {
    dir: TempDir,
    holder: Option<Process>,
}

impl Held {
    pub(crate) fn start() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), holder: None }
    }
}

impl FileRig for Held {
    fn path(&self) -> PathBuf {
        self.dir.path().join("authority.db")
    }
}

impl Rig for Held {
    fn authority_url(&self) -> String {
        self.file_url()
    }

    fn silence(&mut self) {
        assert!(self.path().exists(), "the authority makes its file when it is first used, and that comes first");
        let holder = Process::start(ENTRY, HOLD, &self.path());
        assert_eq!(holder.hear(), "held");
        holder.stop();
        self.holder = Some(holder);
    }

    fn mend(&mut self) {
        let mut holder = self.holder.take().expect("it is silent");
        holder.resume();
        holder.go();
        holder.finish();
    }
}

/// In a child: does the job if it is this rig's.
pub(crate) fn work(job: &str, path: &Path) -> bool {
    if job != HOLD {
        return false;
    }
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.busy_timeout(super::PATIENCE).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    say("held");
    wait_for_go();
    connection.execute_batch("ROLLBACK").unwrap();
    true
}
