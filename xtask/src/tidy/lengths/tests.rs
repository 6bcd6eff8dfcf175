use super::check;
use crate::tidy::File;

fn file(path: &str, lines: usize) -> File {
    File::new(path, &"let a = 1;\n".repeat(lines))
}

#[test]
fn a_file_that_is_too_long_is_found() {
    assert!(check(&[file("src/a.rs", 500)], &[]).is_empty());
    assert_eq!(check(&[file("src/a.rs", 501)], &[]).len(), 1);
    assert!(check(&[file("src/a/tests.rs", 700)], &[]).is_empty());
    assert_eq!(check(&[file("src/a/tests.rs", 701)], &[]).len(), 1);
}

#[test]
fn comments_and_blank_lines_do_not_count() {
    assert!(check(&[File::new("src/a.rs", &"// why\n\n".repeat(600))], &[]).is_empty());
}

#[test]
fn the_ratchet_only_turns_one_way() {
    let ratchet = &[("src/a.rs", 600)];
    assert!(check(&[file("src/a.rs", 600)], ratchet).is_empty());
    assert_eq!(check(&[file("src/a.rs", 601)], ratchet).len(), 1);
    assert_eq!(check(&[file("src/a.rs", 599)], ratchet).len(), 1);
    assert_eq!(check(&[], ratchet).len(), 1);
}
