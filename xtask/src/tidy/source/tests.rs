use super::{declared, split, words};

#[test]
fn comments_strings_and_code_are_told_apart() {
    let text =
        "let a = \"// no // comment\"; // yes\n/* two /* nested */\nlines */ let b = 'x';\nlet c = r#\"a \" b\"#;\n";
    let parts = split(text);
    assert_eq!(parts.code, "let a = \"\"; \n\n let b = \"\";\nlet c = \"\";\n");
    assert_eq!(parts.comments, "// yes\n/* two /* nested */\nlines */\n\n");
    assert_eq!(parts.strings, "\"// no // comment\"\n\n'x'\nr#\"a \" b\"#\n");
}

#[test]
fn quotes_that_open_nothing_do_not_swallow_the_code() {
    let parts = split("fn f<'a>(x: &'a str) -> char { '\\'' } // end\n'\"' + b'\\\\' ; struct S;");
    assert!(parts.code.contains("struct S;"), "{}", parts.code);
    assert_eq!(parts.comments.trim(), "// end");
}

#[test]
fn a_string_keeps_the_line_numbers() {
    let parts = split("let a = \"one\ntwo \\\" three\n\";\nmod b;");
    assert_eq!(parts.code.lines().nth(3), Some("mod b;"));
    assert_eq!(parts.comments.lines().count(), 3);
}

#[test]
fn declarations_are_found_and_uses_are_not() {
    let text = "pub struct One;\npub(crate) fn two() {}\npub const fn three() {}\nlet four: fn(u8) = five;\n// fn six\nlet x: *const Seven = y;\n";
    let found: Vec<_> = declared(text).into_iter().map(|d| (d.line, d.keyword, d.name, d.public)).collect();
    let row = |line, keyword: &str, name: &str, public| (line, keyword.to_owned(), name.to_owned(), public);
    assert_eq!(found, [row(0, "struct", "One", true), row(1, "fn", "two", false), row(2, "fn", "three", true)]);
}

#[test]
fn a_name_has_the_same_words_in_every_case() {
    for name in ["FileLock2", "file_lock2", "FILE_LOCK2", "_file_lock2"] {
        assert_eq!(words(name), ["file", "lock2"], "{name}");
    }
}
