//! The index in SQLite: files that are damaged, replaced or full, and calls that nobody waits for.

use super::world::{along, build, entries, publish, seal, switch, tenant};
use futures_util::FutureExt;
use std::path::Path;
use tempfile::TempDir;
use vector_sync::index::{IndexError, Switched, WriteError, connect};
use vector_sync::tenant::Tenant;

fn url(folder: &Path) -> String {
    format!("sqlite:{}", folder.display())
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_makes_no_file() {
    let folder = TempDir::new().unwrap();
    let place = folder.path().join("index");
    let (index, tenant) = (connect(&url(&place)).unwrap(), tenant());
    let said = index.search(&tenant, &along(0), 1).await;
    assert!(matches!(said, Err(IndexError::Empty { .. })), "{said:?}");
    assert_eq!(index.live(&tenant).await.unwrap(), None);
    let said = index.keep(&tenant, 1, &[]).await.unwrap_err().to_string();
    assert!(said.contains("begin one"), "{said}");
    assert!(!place.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_or_something_else_is_named() {
    let folder = TempDir::new().unwrap();
    let (index, whole, broken) = (connect(&url(folder.path())).unwrap(), tenant(), tenant());
    for tenant in [&whole, &broken] {
        publish(&*index, tenant, 1, "apple").await;
    }
    let path = |tenant: &Tenant| folder.path().join(format!("{tenant}.db"));
    std::fs::write(path(&broken), "not a database, and longer than the head of one: ".repeat(200)).unwrap();
    let other = connect(&url(folder.path())).unwrap();
    let said = other.search(&broken, &along(0), 1).await;
    let Err(IndexError::Failed { place, why, .. }) = said else { panic!("{said:?}") };
    assert!(place.contains(broken.as_str()) && why.contains("from a backup"), "{place}: {why}");
    assert!(other.sink(&broken).await.is_err());
    // The others are not concerned.
    publish(&*other, &whole, 2, "birch").await;
    assert_eq!(other.search(&whole, &along(0), 99).await.unwrap().hits.len(), 8);

    let later = rusqlite::Connection::open(path(&whole)).unwrap();
    later.pragma_update(None, "user_version", 7).unwrap();
    let said = other.live(&whole).await.unwrap_err().to_string();
    assert!(said.contains("have the version 7, this program knows 1"), "{said}");
}

/// The story: a file was put back from a backup, and searches of a program that had been running kept reading the old one.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_replaced_is_the_one_that_is_read() {
    let folder = TempDir::new().unwrap();
    let (index, tenant) = (connect(&url(folder.path())).unwrap(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let path = folder.path().join(format!("{tenant}.db"));
    let backup = folder.path().join("backup");
    rusqlite::Connection::open(&path).unwrap().execute("VACUUM INTO ?1", [backup.to_str().unwrap()]).unwrap();
    publish(&*index, &tenant, 2, "birch").await;
    assert_eq!(index.search(&tenant, &along(0), 1).await.unwrap().epoch, 2);
    for beside in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.path().join(format!("{tenant}.db{beside}")));
    }
    std::fs::rename(backup, &path).unwrap();
    assert_eq!(index.search(&tenant, &along(0), 1).await.unwrap().epoch, 1);
}

/// A call whose future is dropped at once is made, or not made, and never half.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_waits_for_is_made_or_not_made() {
    let folder = TempDir::new().unwrap();
    let (index, tenant) = (connect(&url(folder.path())).unwrap(), tenant());
    let token = seal(&*index, &tenant, 1).await;
    let manifest = build(&*index, &tenant, &token, "apple").await;
    let first = switch("first", 0, 1, Some(manifest));
    assert!(index.switch(&tenant, &token, &first).now_or_never().is_none());
    // The same again waits for it, and finds what it did, or does it.
    assert_eq!(index.switch(&tenant, &token, &first).await.unwrap(), Switched::To(1));
    assert_eq!(index.switches(&tenant).await.unwrap().len(), 1);
    assert_eq!(index.search(&tenant, &along(0), 99).await.unwrap().hits.len(), 8);
}

/// The disk is full: what is live stays whole, and when there is space again the round goes on.
#[test]
fn a_full_disk_is_said_and_changes_nothing() {
    const TEST: &str = "conformance::in_sqlite::a_full_disk_is_said_and_changes_nothing";
    const CHILD: &str = "VECTOR_SYNC_FULL_DISK";
    if let Some(folder) = std::env::var_os(CHILD) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        return runtime.block_on(on_a_full_disk(Path::new(&folder)));
    }
    let folder = TempDir::new().unwrap();
    let script = "mount -t tmpfs -o size=2m tmpfs \"$1\" && shift && exec \"$@\"";
    let mut child = std::process::Command::new("unshare");
    child.args(["--mount", "--map-root-user", "sh", "-c", script, "sh"]).arg(folder.path());
    child.arg(std::env::current_exe().unwrap()).args([TEST, "--exact", "--nocapture"]);
    let output = child.env(CHILD, folder.path()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.contains("the child has checked"),
        "it needs root, or user namespaces\n{said}"
    );
}

async fn on_a_full_disk(folder: &Path) {
    let (index, tenant) = (connect(&url(folder)).unwrap(), tenant());
    publish(&*index, &tenant, 1, "apple").await;
    let token = seal(&*index, &tenant, 2).await;
    index.begin(&tenant, &token, &super::world::making("birch")).await.unwrap();
    // As much as there is room for.
    let mut room = 1 << 20;
    let mut filled = Vec::new();
    while room > 0 {
        let piece = folder.join(format!("filler-{}", filled.len()));
        match std::fs::write(&piece, vec![1; room]) {
            Ok(()) => filled.push(piece),
            Err(_) => {
                let _ = std::fs::remove_file(piece);
                room /= 2;
            }
        }
    }
    let large: Vec<_> = (0..2000).map(|n| super::world::entry("large.md", n, &"long ".repeat(200), 0)).collect();
    let said = index.write(&tenant, &token, &large).await;
    let Err(WriteError::Index(IndexError::Failed { why, .. })) = said else { panic!("{said:?}") };
    assert!(why.contains("full") && why.contains("make room"), "{why}");
    assert_eq!(index.search(&tenant, &along(0), 99).await.unwrap().hits.len(), 8);
    for piece in filled {
        std::fs::remove_file(piece).unwrap();
    }
    index.write(&tenant, &token, &entries("birch")).await.unwrap();
    let inspection = index.inspect(&tenant, &token).await.unwrap();
    assert_eq!(inspection.chunks, 8, "nothing of the large batch stands");
    let manifest = super::world::manifest(&super::world::making("birch"), &entries("birch"));
    let moved = switch("second", 1, 2, Some(manifest));
    assert_eq!(index.switch(&tenant, &token, &moved).await.unwrap(), Switched::To(2));
    println!("the child has checked");
}
