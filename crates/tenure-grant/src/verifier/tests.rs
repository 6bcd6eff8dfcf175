use super::{Known, READ_AGAIN, Watched};
use crate::error::VerifyError;
use crate::key::SigningKey;
use crate::wall::UnixTime;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use tempfile::TempDir;

const NOW: UnixTime = UnixTime::from_secs(1_800_000_000);

struct Keys {
    _folder: TempDir,
    path: PathBuf,
    watched: Watched<()>,
    reads: AtomicUsize,
}

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, "one").unwrap();
        Self { _folder: folder, path, watched: Watched::new(()), reads: AtomicUsize::new(0) }
    }

    fn read(&self) -> Result<Known, VerifyError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        Ok(vec![(SigningKey::generate().unwrap().public().clone(), None)])
    }

    fn known(&self, now: UnixTime) -> std::sync::Arc<Known> {
        self.watched.known(now, &self.path, |_: &Path| self.read()).unwrap()
    }
}

#[test]
fn a_file_is_read_again_when_it_has_changed_and_now_and_then() {
    let keys = Keys::new();
    let first = keys.known(NOW);
    assert_eq!(keys.known(NOW.after(READ_AGAIN / 2)), first);
    assert_eq!(keys.reads.load(Ordering::SeqCst), 1);
    std::fs::write(&keys.path, "another length").unwrap();
    assert_ne!(keys.known(NOW), first);
    keys.known(NOW.after(READ_AGAIN));
    assert_eq!(keys.reads.load(Ordering::SeqCst), 3);
}

/// The file was looked at under a lock: one thread that waited for its disk kept all others of the service waiting with it.
#[test]
fn nobody_waits_for_another_one_that_reads() {
    let keys = Keys::new();
    let ((arrive, arrived), (go_on, may_go_on)) = (channel(), channel::<()>());
    let keys = &keys;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let hangs = |_: &Path| {
                arrive.send(()).unwrap();
                // Until the other one is through, or has failed.
                let _ = may_go_on.recv();
                keys.read()
            };
            keys.watched.known(NOW, &keys.path, hangs).unwrap();
        });
        arrived.recv().unwrap();
        let (tell, told) = channel();
        scope.spawn(move || tell.send(keys.known(NOW)));
        let other = told.recv_timeout(std::time::Duration::from_secs(20));
        drop(go_on);
        assert!(other.is_ok(), "it has waited");
    });
}
