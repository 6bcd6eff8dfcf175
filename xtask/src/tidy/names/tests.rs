use super::check;
use crate::tidy::File;
use crate::workspace::Package;

#[test]
fn a_drawer_is_found_as_package_folder_file_and_module() {
    let package = Package { name: "tenure-common".to_owned(), ..Package::default() };
    assert_eq!(check(&[], &[package]).len(), 1);
    assert_eq!(check(&[File::new("crates/a/tests/common/setup.rs", "")], &[]).len(), 1);
    assert_eq!(check(&[File::new("crates/a/src/utils.rs", "")], &[]).len(), 1);
    assert_eq!(check(&[File::new("crates/a/src/lib.rs", "mod utils { }")], &[]).len(), 1);
}

#[test]
fn a_noun_that_contains_one_is_left_alone() {
    assert!(check(&[File::new("crates/a/src/common_owner.rs", "mod utility;\nfn common() {}\n")], &[]).is_empty());
}
