use super::*;

#[test]
fn a_name_for_a_command_line_is_quoted_only_when_it_must_be() {
    assert_eq!(quoted("tenant:42"), "tenant:42");
    assert_eq!(quoted("it's one"), r"'it'\''s one'");
    assert_eq!(quoted(""), "''");
}

/// What others wrote into names and reasons must not take over the terminal of whoever looks.
#[test]
fn a_text_from_a_record_does_nothing_to_a_terminal() {
    assert_eq!(clean("tenant 7 — grün 中"), "tenant 7 — grün 中");
    assert_eq!(clean("a\nb\tc"), "a\\nb\\tc");
    assert_eq!(clean("\u{1b}[2J\u{7}"), "\\u{1b}[2J\\u{7}");
    assert_eq!(clean("exe\u{202e}txt"), "exe\\u{202e}txt");
    assert!(!clean(&table::mark(Tint::Bad, "x")).contains(['\u{206a}', '\u{206f}']));
}
