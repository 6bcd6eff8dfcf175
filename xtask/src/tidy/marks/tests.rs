use super::check;
use crate::tidy::File;

#[test]
fn each_mark_is_found_in_any_kind_of_file() {
    let marks = [
        concat!("#[", "ignore]"),
        concat!("    #[", "ignore = \"slow\"]"),
        concat!("todo", "!()"),
        concat!("std::unimplemented", "!(\"later\")"),
        concat!("let a = dbg", "!(b);"),
        concat!("// TO", "DO: later"),
        concat!("# FIX", "ME"),
        concat!("XX", "X"),
    ];
    for mark in marks {
        assert_eq!(check(&[File::new("README.md", mark)]).len(), 1, "{mark}");
    }
    let second = check(&[File::new("a.rs", concat!("fn a() {\n    todo", "!()\n}"))]);
    assert_eq!(second[0].place, "a.rs:2");
}

#[test]
fn words_that_only_look_alike_are_left_alone() {
    let text = concat!("XX", "XX XX", "X1 the macro dbg", "! mas", "TO", "DON clippy::todo = #[", "igno");
    assert!(check(&[File::new("a.rs", text)]).is_empty());
}
