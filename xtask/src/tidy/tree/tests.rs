use super::{File, read, walk};

#[test]
fn the_real_tree_is_found_with_and_without_git() {
    let root = crate::workspace::root().unwrap();
    assert!(read(&root).unwrap().iter().any(|file| file.path == "Cargo.toml" && file.text.contains("[workspace]")));
    let walked = walk(&root, "").unwrap();
    assert!(walked.iter().any(|path| path == "xtask/src/tidy/tree.rs"));
    assert!(!walked.iter().any(|path| path.starts_with("target/") || path.starts_with(".git/")));
}

#[test]
fn tests_are_known_by_their_place() {
    assert!(File::new("crates/one/src/fence/tests.rs", "").is_test());
    assert!(File::new("crates/one/tests/it/main.rs", "").is_test());
    assert!(!File::new("crates/one/src/fence.rs", "").is_test());
    assert!(!File::new("crates/one/src/contests.rs", "").is_test());
}
