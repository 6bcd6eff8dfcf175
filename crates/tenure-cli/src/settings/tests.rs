use super::{Color, Settings};
use std::time::Duration;

#[test]
fn every_key_is_read() {
    let text = "authority = \"sqlite:/a.db\"\nowner = \"nightly\"\nttl = \"90s\"\ncolor = \"never\"\n";
    let settings = Settings::parse(text).unwrap();
    assert_eq!(settings.authority.as_deref(), Some("sqlite:/a.db"));
    assert_eq!(settings.owner.as_deref(), Some("nightly"));
    assert_eq!((settings.ttl, settings.color), (Some(Duration::from_secs(90)), Some(Color::Never)));
}

#[test]
fn an_unknown_key_names_the_nearest_known_one() {
    for (key, known) in [("authorty", "authority"), ("colour", "color"), ("TTL", "ttl"), ("owners", "owner")] {
        let refused = Settings::parse(&format!("{key} = \"x\"")).unwrap_err();
        assert!(refused.contains(&format!("{key:?}; did you mean {known:?}")), "{refused}");
    }
}

#[test]
fn a_value_that_does_not_fit_is_named_with_what_would() {
    for (text, right) in [("ttl = 90", "a text in quotes"), ("ttl = \"soon\"", "90s"), ("color = \"red\"", "\"never\"")]
    {
        let refused = Settings::parse(text).unwrap_err();
        assert!(refused.contains(right), "{refused}");
    }
    assert!(Settings::parse("\nauthority = ").unwrap_err().contains("line 2: "));
}

/// A file with a slip in it is shown to whoever helps.
#[test]
fn a_slip_does_not_show_the_password() {
    for text in [
        "authority = \"postgres://u:hunter2@h/d",
        "authority = postgres://u:hunter2@h/d",
        "authority = [\"postgres://u:hunter2@h/d\"]",
        "authority = \"redis://:hunter2@h\" owner = \"x\"",
        "authority = { url = \"redis://:hunter2@h\" }",
    ] {
        let refused = Settings::parse(text).unwrap_err();
        assert!(!refused.contains("hunter2") && !refused.is_empty(), "{refused}");
    }
}
