use super::*;

#[test]
fn l2_an_attempt_that_is_over_never_changes_its_effect() {
    for state in Attempt::ALL.into_iter().filter(|state| state.is_final()) {
        for happening in Happening::ALL {
            if let Ok(next) = state.next(happening) {
                assert_eq!(next, state, "{happening:?}");
            }
        }
    }
}

#[test]
fn l5_nothing_is_done_or_failed_without_the_mark() {
    for happening in Happening::ALL {
        let next = Attempt::Intent.next(happening);
        assert!(
            !matches!(next, Ok(Attempt::Done | Attempt::Failed | Attempt::Applied | Attempt::Unknown)),
            "{happening:?}"
        );
    }
}

#[test]
fn l6_unknown_is_left_only_by_a_finding() {
    for happening in Happening::ALL {
        match Attempt::Unknown.next(happening) {
            Ok(Attempt::Unknown) | Err(_) => {}
            Ok(next) => assert!(matches!(happening, Happening::Found | Happening::Absent), "{happening:?} to {next:?}"),
        }
    }
}

#[test]
fn a_timeout_is_never_a_failure() {
    assert_eq!(Attempt::Sent.next(Happening::Unanswered), Ok(Attempt::Unknown));
    assert!(Attempt::Unknown.next(Happening::RefusedWithoutEffect).is_err());
    assert!(!Attempt::Unknown.may_run_again());
}
