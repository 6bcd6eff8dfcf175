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

#[test]
fn the_id_of_an_intent_is_stable_and_tells_intents_apart() {
    let id = |run, step, input: u8| OperationId::for_intent(run, step, &Digest([input; 32])).unwrap();
    assert_eq!(id("run-7", "charge", 1).as_str(), "run-7/charge/0101010101010101");
    assert_eq!(id("run-7", "charge", 1), id("run-7", "charge", 1));
    let others = [id("run-8", "charge", 1), id("run-7", "refund", 1), id("run-7", "charge", 2)];
    assert!(!others.contains(&id("run-7", "charge", 1)));
    // Where one name ends and the next begins is part of it.
    assert_ne!(id("a/b", "c", 1), id("a", "b/c", 1));
    assert_ne!(id("a%2Fb", "c", 1), id("a/b", "c", 1));
}

#[test]
fn an_intent_without_a_name_or_with_an_endless_one_is_refused() {
    let id = |run, step| OperationId::for_intent(run, step, &Digest([1; 32]));
    assert_eq!(id("", "charge"), Err(NameError::Empty { what: "name of a run" }));
    assert_eq!(id("run", ""), Err(NameError::Empty { what: "name of a step" }));
    assert!(matches!(id("run\0", "charge"), Err(NameError::Control { .. })));
    assert!(matches!(id(&"long".repeat(200), "charge"), Err(NameError::TooLong { .. })));
}
