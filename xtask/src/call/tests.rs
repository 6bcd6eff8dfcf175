use std::path::Path;

use super::Call;

#[test]
fn the_shown_form_can_be_pasted_into_a_shell() {
    let call = Call::cargo(&["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    assert_eq!(call.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    assert_eq!(Call::new("echo", &["it's", ""]).to_string(), r"echo 'it'\''s' ''");
}

#[test]
fn success_failure_and_absence_are_told_apart() {
    let here = Path::new(".");
    assert!(Call::new("true", &[]).run(here).unwrap());
    assert!(!Call::new("false", &[]).run(here).unwrap());
    assert!(Call::new("no-such-program-here", &[]).run(here).is_err());
    assert!(!Call::new("no-such-program-here", &[]).succeeds(here));
}

#[test]
fn the_program_has_no_input_to_wait_for() {
    assert!(Call::new("sh", &["-c", "! read -r line"]).succeeds(Path::new(".")));
}

#[test]
fn variables_reach_the_program() {
    let call = Call::new("sh", &["-c", r#"test "$XTASK_PROBE" = "a b""#]);
    assert!(!call.succeeds(Path::new(".")));
    assert!(call.env("XTASK_PROBE", "a b").succeeds(Path::new(".")));
}
