use super::{doubt_of, is_in_time};

#[test]
fn a_version_that_may_revoke_late_is_told_from_one_that_does_not() {
    for version in ["3.4.31", "3.4.40", "3.5.13", "3.5.21", "3.6.0", "3.10.1", "4.0.0"] {
        assert!(is_in_time(version), "{version}");
    }
    for version in ["3.4.23", "3.4.30", "3.5.0", "3.5.12", "3.3.99", "2.9.9", "", "3.5", "3.6.0-rc.1", "3.5.13.1"] {
        assert!(!is_in_time(version), "{version}");
    }
}

#[test]
fn one_member_that_is_older_or_unknown_is_enough_for_a_doubt() {
    assert_eq!(doubt_of([Some("3.5.13"), Some("3.4.31")].into_iter()), None);
    assert!(doubt_of([Some("3.5.13"), Some("3.5.12")].into_iter()).is_some_and(|why| why.contains("3.5.12")));
    assert!(doubt_of([Some("3.5.13"), None].into_iter()).is_some_and(|why| why.contains("not known")));
}
