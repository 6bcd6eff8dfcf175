use super::{cut, digest, hex, kept, row};
use tenure_core::{Digest, Generation, TEXT_BYTES_MAX};

#[test]
fn a_fence_is_read_back_and_nothing_like_one_is() {
    let text = "7 0123456789abcdef0123456789abcdef 8f:3 2\na\nü \"2\"";
    let found = row(text).unwrap();
    assert_eq!((found.epoch.get(), found.seal_no, found.generation.as_str()), (7, 2, "redis:8f:3"));
    assert_eq!(found.enrolled.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["a", "ü \"2\""]);
    assert!(row("7 0123456789abcdef0123456789abcdef 8f:3 2").unwrap().enrolled.is_empty());
    for bad in [
        "7",
        "0 0123456789abcdef0123456789abcdef 8f:3 2",
        "9223372036854775808 0123456789abcdef0123456789abcdef 8f:3 2",
        "7 0123 8f:3 2",
        "7 0123456789abcdef0123456789abcdef 8f:3 -2",
        "7 0123456789abcdef0123456789abcdef 8f:3 2 3",
        "7 0123456789abcdef0123456789abcdef 8f:3 2\n\u{7}",
    ] {
        assert_eq!(row(bad), None, "{bad:?}");
    }
}

#[test]
fn a_digest_is_read_back_and_nothing_like_one_is() {
    let whole = Digest(std::array::from_fn(|at| u8::try_from(at * 7).unwrap()));
    assert_eq!(digest(&hex(&whole)), Some(whole));
    for bad in ["", "00", &"g".repeat(64), &"ü".repeat(32), &"0".repeat(65)] {
        assert_eq!(digest(bad), None, "{bad:?}");
    }
}

#[test]
fn another_stores_generation_is_of_no_server() {
    assert_eq!(kept(&Generation::new("redis:8f:3").unwrap()), "8f:3");
    assert_eq!(kept(&Generation::new("8f:3").unwrap()), "none");
}

#[test]
fn what_is_too_long_is_cut_between_characters() {
    let long = "ü".repeat(TEXT_BYTES_MAX);
    assert_eq!(cut(&long).len(), TEXT_BYTES_MAX);
    assert_eq!(cut(&format!("a{long}")).len(), TEXT_BYTES_MAX - 1);
    assert_eq!(cut("short"), "short");
}
