use super::{REQUIRED, check};
use crate::tidy::File;

#[test]
fn a_document_that_is_missing_or_empty_is_found() {
    let mut files: Vec<File> = REQUIRED.iter().map(|name| File::new(name, "text")).collect();
    assert!(check(&files).is_empty());
    files[0].text = " \n".to_owned();
    assert_eq!(check(&files).len(), 1);
    files.remove(1);
    assert_eq!(check(&files).len(), 2);
    assert_eq!(check(&[File::new("docs/README.md", "text")]).len(), REQUIRED.len());
}
