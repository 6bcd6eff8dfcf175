use super::*;
use alloc::string::{String, ToString};

#[test]
fn limits_are_inclusive_and_the_message_says_what_to_do() {
    let longest: String = core::iter::repeat_n('x', NAME_BYTES_MAX).collect();
    assert!(ResourceName::new(&longest).is_ok());
    let error = ResourceName::new(longest + "x").unwrap_err();
    assert_eq!(error.to_string(), "the resource name has 513 bytes: shorten it to at most 512");
    assert_eq!(OwnerName::new("").unwrap_err(), NameError::Empty { what: "owner name" });
    assert_eq!(SinkId::new("a\u{7}b").unwrap_err(), NameError::Control { what: "sink id", at: 1 });
    assert!(ResourceName::new("租户/7 ü").is_ok());
}

#[test]
fn free_text_may_be_empty_and_may_hold_lines() {
    assert!(Outcome::new("").is_ok());
    assert!(Reason::new("two\nlines").is_ok());
    let long: String = core::iter::repeat_n('x', TEXT_BYTES_MAX + 1).collect();
    assert!(Outcome::new(long).is_err());
}
