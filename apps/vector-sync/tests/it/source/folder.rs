//! Folders, with all that people have in them.

use super::{names, read, refused};
use futures_util::StreamExt as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;
use vector_sync::source::{Document, FolderSource, Format, Source, SourceError, open};

const LARGEST: u64 = 1000;

fn source(folder: &Path) -> FolderSource {
    FolderSource::new(folder, LARGEST)
}

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn documents_come_in_the_order_of_their_names_and_others_are_counted() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // A slash comes behind `-` and `.`, and before letters.
    for name in ["b.md", "a/z.rst", "a-b.txt", "a.html", "a/a/x.HTM", "ab.markdown", "A.TXT", "ä.md", "a b.md"] {
        write(at, name, name);
    }
    for name in ["x.pdf", "a/y.PDF", "README", ".hidden.md", ".git/x.md", "a/.z", "tar.gz"] {
        write(at, name, name);
    }
    let source = source(at);
    let found = names(&source).await;
    assert_eq!(found, ["A.TXT", "a b.md", "a-b.txt", "a.html", "a/a/x.HTM", "a/z.rst", "ab.markdown", "b.md", "ä.md"]);
    assert!(found.is_sorted());
    let left_out: Vec<String> = source.left_out().into_iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    assert_eq!(left_out, ["1 .gz", "2 .pdf", "3 hidden", "1 without an ending"]);
}

#[tokio::test]
async fn a_document_is_what_the_file_says() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), "a.md", "\u{feff}# Ä\r\n");
    write(folder.path(), "b.htm", "");
    let found = read(&source(folder.path())).await;
    let [Ok(Document { format: Format::Markdown, text, content, .. }), Ok(Document { format: Format::Html, .. })] =
        found.as_slice()
    else {
        panic!("{found:?}")
    };
    assert_eq!(text, "# Ä\r\n");
    // The digest is over what was read, mark and all.
    assert_eq!(*content, vector_sync::manifest::Sum::of(&["\u{feff}# Ä\r\n".as_bytes()]));
    // Its text is in no log.
    assert_eq!(format!("{:?}", found[1]).matches("b.htm (Html, 0 bytes").count(), 1);
}

#[tokio::test]
async fn what_cannot_be_used_is_named_and_the_others_follow() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    write(at, "a.md", "good");
    write(at, "latin.md", b"caf\xe9");
    write(at, "utf16le.txt", b"\xff\xfea\0");
    write(at, "utf16be.txt", b"\xfe\xff\0a");
    write(at, "zero.txt", b"ab\0");
    write(at, "large.md", vec![b'x'; 1001]);
    write(at, "fits.md", vec![b'x'; 1000]);
    write(at, "z.md", "good");
    rustix::fs::mkfifoat(rustix::fs::CWD, at.join("pipe.md"), 0o600.into()).unwrap();
    fs::write(at.join(std::ffi::OsStr::from_bytes(b"na\xffme.md")), "x").unwrap();
    let found = names(&source(at)).await;
    let known = [
        "a.md",
        "fits.md",
        "! large.md: it has 1001 bytes, and at most 1000 are read: split it, or allow more with --max-document",
        "! latin.md: it is not written in UTF-8, as the byte at 3 shows: convert it, or take it out",
        "! na\u{fffd}me.md: its name is not written in UTF-8: rename it",
        "! pipe.md: it is a pipe, a socket or a device: take it out of the folder",
        "! utf16be.txt: it is written in UTF-16 (big-endian): convert it to UTF-8",
        "! utf16le.txt: it is written in UTF-16 (little-endian): convert it to UTF-8",
        "z.md",
        "! zero.txt: it has a zero byte at 2, so it is no text: convert it to UTF-8, or take it out",
    ];
    assert_eq!(found, known);
}

#[tokio::test]
async fn what_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    write(at, "a.md", "closed");
    write(at, "b/c.md", "in a closed folder");
    write(at, "d.md", "open");
    for closed in ["a.md", "b"] {
        fs::set_permissions(at.join(closed), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let found = names(&source(at)).await;
    fs::set_permissions(at.join("b"), fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        // Nothing is closed to it.
        assert_eq!(found, ["a.md", "b/c.md", "d.md"]);
    } else {
        assert!(found[0].starts_with("! a.md: ") && found[1].starts_with("! b/: ") && found[2] == "d.md", "{found:?}");
    }
}

#[tokio::test]
async fn links_lead_to_files_of_the_folder_and_nowhere_else() {
    let outside = TempDir::new().unwrap();
    write(outside.path(), "secret.md", "secret");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    write(at, "real/a.md", "here");
    symlink("real/a.md", at.join("inside.md")).unwrap();
    symlink(outside.path().join("secret.md"), at.join("outside.md")).unwrap();
    symlink(outside.path(), at.join("folder.md")).unwrap();
    symlink("..", at.join("real/circle.md")).unwrap();
    symlink("nowhere", at.join("broken.md")).unwrap();
    symlink("../real/a.md", at.join("real/again.md")).unwrap();
    let source = source(at);
    assert_eq!(names(&source).await, ["inside.md", "real/a.md", "real/again.md"]);
    assert_eq!(source.left_out().get("links"), Some(&4));

    // The folder itself may be behind a link.
    let link = outside.path().join("link");
    symlink(at, &link).unwrap();
    assert_eq!(names(&FolderSource::new(&link, LARGEST)).await.len(), 3);
}

/// Two writings of one file would be published as one document that never was.
#[tokio::test]
async fn a_file_that_is_written_to_while_it_is_read_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.md");
    fs::write(&path, "x".repeat(4 << 20)).unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (written, is_over) = (path.clone(), std::sync::Arc::clone(&stop));
    let (first, begun) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        use std::os::unix::fs::FileExt as _;
        let file = fs::File::options().write(true).open(&written).unwrap();
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            file.write_all_at(b"y", 4 << 20 >> 1).unwrap();
            let _ = first.send(());
        }
    });
    begun.recv().unwrap();
    let source = FolderSource::new(folder.path(), 8 << 20);
    // Whoever writes without a pause is noticed soon, if not at once.
    let mut noticed = String::new();
    for _ in 0..1000 {
        let found: Vec<_> = source.documents().collect().await;
        if let [Err(error @ SourceError::Document { .. })] = found.as_slice() {
            noticed = error.to_string();
            break;
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(noticed, "a.md: it was changed while it was read: run again when nobody writes to it");
    assert_eq!(names(&source).await, ["a.md"]);
}

#[tokio::test]
async fn a_folder_without_documents_is_refused_with_what_is_in_it() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    assert!(refused(&source(at)).await.contains("it is empty"));
    write(at, "a.pdf", "x");
    write(at, "sub/b.pdf", "x");
    write(at, ".c.md", "x");
    let why = refused(&source(at)).await;
    assert!(why.contains("no document, only 2 .pdf, 1 hidden") && why.contains(".markdown"), "{why}");
    let why = refused(&source(&at.join("a.pdf"))).await;
    assert!(why.contains("it is no folder"), "{why}");
    let why = refused(&source(&at.join("nowhere"))).await;
    assert!(why.contains("there is no such folder"), "{why}");
    // A broken document is a finding, not an empty folder.
    write(at, "d.md", b"\xff");
    assert_eq!(names(&source(at)).await.len(), 1);
}

#[test]
fn a_place_is_chosen_by_what_it_looks_like() {
    let wrong = |place: &str, query: Option<&str>| {
        let settings = vector_sync::source::Settings { query: query.map(str::to_owned), ..Default::default() };
        open(place, &settings).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(wrong("docs", None), "");
    assert_eq!(wrong("postgres://u@h/d", Some("select 1, 2")), "");
    assert!(wrong("docs", Some("select")).contains("leave it out for a folder"));
    assert!(wrong("", None).contains("give a folder"));
    assert!(wrong("postgres://u:secret@h/d", None).contains("a query is missing"));
    let broken = wrong("postgres://u:secret@h:port/d", Some("select 1, 2"));
    assert!(broken.contains("write postgres://USER") && !broken.contains("secret"), "{broken}");
}
