use super::*;

/// A password that looked like a parameter would have named the schema that is dropped at the end.
#[test]
fn what_is_removed_at_the_end_is_the_demos_own_whatever_a_password_looks_like() {
    let url = "postgres://app:a&schema=prod&b@h/d?sslmode=disable&schema=demo_1_gap_none";
    assert_eq!(name_of(url, "schema=").unwrap(), "demo_1_gap_none");
    assert!(name_of("postgres://app:a&schema=prod&b@h/d", "schema=").is_err());
    assert!(name_of("redis://h", "name=").is_err());
}
