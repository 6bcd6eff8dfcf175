use super::*;

fn printed(bytes: &[u8]) -> Value {
    let mut ear = Bytes::default();
    // As it comes from a pipe.
    for chunk in bytes.chunks(1000) {
        assert!(!ear.hear(Origin::Out, chunk));
    }
    ear.value()
}

#[test]
fn a_short_text_is_shown_as_it_is() {
    assert_eq!(printed(b"version of B\n").to_string(), "\"version of B\"");
    assert_eq!(printed(b"").to_string(), "\"\"");
    assert_eq!(printed(b"one\ntwo\n").to_string(), "\"one\\ntwo\"");
}

#[test]
fn what_is_long_or_no_text_is_shown_with_its_digest() {
    let long = printed("ä".repeat(5000).as_bytes());
    let beginning = "ä".repeat(48);
    assert_eq!(long.to_string(), format!("\"{beginning}\"… (10000 bytes, sha256 {})", &long.sha256[..12]));
    assert_eq!(printed(b"\xff\x00").to_string(), "2 bytes, sha256 ea5dbf9596d1");
}

#[test]
fn values_that_differ_only_far_behind_are_different() {
    let mut bytes = vec![b'x'; 100_000];
    let one = printed(&bytes);
    assert_eq!(one, printed(&bytes));
    bytes[99_999] = b'y';
    let other = printed(&bytes);
    assert_ne!(one, other);
    assert_ne!(one.to_string(), other.to_string());
}

#[test]
fn the_end_of_a_line_counts() {
    assert_ne!(printed(b"B"), printed(b"B\n"));
}
