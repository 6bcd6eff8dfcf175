use super::Copy;
use std::fs;
use std::path::PathBuf;

/// A folder of this test binary's own, emptied first.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("src/inner")).unwrap();
    folder
}

#[test]
fn a_copy_follows_its_tree_and_is_mended() {
    let root = folder("copied");
    fs::write(root.join("src/inner/a.rs"), "a").unwrap();
    fs::write(root.join("src/b.rs"), "b").unwrap();
    let dir = root.join("target/break/tree");
    let copy = Copy::of(&root, dir.clone()).unwrap();
    assert_eq!(copy.read("src/inner/a.rs").unwrap(), "a");
    let broken = copy.with("src/b.rs", "broken").unwrap();
    assert_eq!(copy.read("src/b.rs").unwrap(), "broken");
    drop(broken);
    assert_eq!(copy.read("src/b.rs").unwrap(), "b");

    // What a run that was cut short has left broken, and what is gone from the tree.
    fs::write(dir.join("src/inner/a.rs"), "broken").unwrap();
    fs::remove_file(root.join("src/b.rs")).unwrap();
    let copy = Copy::of(&root, dir).unwrap();
    assert_eq!(copy.read("src/inner/a.rs").unwrap(), "a");
    assert!(copy.read("src/b.rs").is_err());
    assert_eq!(fs::read_to_string(root.join("src/inner/a.rs")).unwrap(), "a");
    fs::remove_dir_all(&root).unwrap();
}
