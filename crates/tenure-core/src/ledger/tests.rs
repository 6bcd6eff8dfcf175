use super::*;

fn epoch(value: u64) -> Epoch {
    Epoch::new(value).unwrap()
}

fn entry(number: u64, state: Attempt) -> Entry {
    Entry { epoch: epoch(number), digest: Digest([1; 32]), state, outcome: None }
}

fn intending(entries: &[Entry], number: u64) -> Intending {
    intend(entries, epoch(number), &Digest([1; 32]))
}

const OPEN: [Attempt; 3] = [Attempt::Intent, Attempt::Sent, Attempt::Unknown];

#[test]
fn nothing_runs_beside_an_attempt_that_is_not_over() {
    for state in OPEN {
        assert_eq!(intending(&[entry(1, state)], 2), Intending::Unsettled { epoch: epoch(1), state });
    }
    assert_eq!(intending(&[entry(1, Attempt::Intent)], 1), Intending::Standing);
    for state in [Attempt::Sent, Attempt::Unknown] {
        assert_eq!(intending(&[entry(1, state)], 1), Intending::Unsettled { epoch: epoch(1), state });
    }
}

#[test]
fn what_took_no_effect_runs_again_under_a_new_token_only() {
    for state in [Attempt::Failed, Attempt::NotApplied] {
        assert_eq!(intending(&[entry(1, state)], 1), Intending::Over { state });
        assert_eq!(intending(&[entry(1, state)], 2), Intending::Write);
    }
}

#[test]
fn l4_what_took_effect_never_runs_again() {
    for state in [Attempt::Done, Attempt::Applied] {
        for number in [1, 2, 3] {
            let entries = [entry(1, Attempt::NotApplied), entry(2, state)];
            assert_eq!(intending(&entries, number), Intending::Effective { epoch: epoch(2), outcome: None });
        }
    }
}

#[test]
fn l1_other_content_is_a_conflict_whatever_became_of_the_first() {
    for state in Attempt::ALL {
        let other = intend(&[entry(1, state)], epoch(2), &Digest([2; 32]));
        assert_eq!(other, Intending::Conflict { current: epoch(1) }, "{state:?}");
    }
}

#[test]
fn a_takeover_settles_older_attempts_only() {
    assert_eq!(take_over(&entry(1, Attempt::Intent), epoch(2)), Some(Attempt::NotApplied));
    assert_eq!(take_over(&entry(1, Attempt::Sent), epoch(2)), Some(Attempt::Unknown));
    for state in Attempt::ALL {
        assert_eq!(take_over(&entry(2, state), epoch(2)), None, "{state:?}");
        assert_eq!(take_over(&entry(3, state), epoch(2)), None, "{state:?}");
        if state.is_final() || state == Attempt::Unknown {
            assert_eq!(take_over(&entry(1, state), epoch(2)), None, "{state:?}");
        }
    }
}

#[test]
fn l6_unknown_is_left_by_a_look_up_after_a_seal_or_by_a_person() {
    let unknown = entry(2, Attempt::Unknown);
    for news in Happening::ALL {
        for voice in [Voice::Holder(epoch(1)), Voice::Holder(epoch(2)), Voice::Holder(epoch(3)), Voice::Person] {
            match hear(&unknown, voice, news) {
                Ok(Attempt::Unknown) | Err(_) => {}
                Ok(Attempt::Applied) => assert!(news == Happening::Found && voice != Voice::Holder(epoch(1))),
                Ok(Attempt::NotApplied) => {
                    let after_a_seal = voice == Voice::Holder(epoch(3));
                    assert!(news == Happening::Absent && (after_a_seal || voice == Voice::Person), "{voice:?}");
                }
                Ok(other) => panic!("{voice:?} says {news:?}: {other:?}"),
            }
        }
    }
}

#[test]
fn an_absence_under_the_attempts_own_token_comes_too_soon() {
    for state in [Attempt::Sent, Attempt::Unknown] {
        let told = hear(&entry(2, state), Voice::Holder(epoch(2)), Happening::Absent);
        assert_eq!(told, Err(Unheard::TooSoon { attempt: epoch(2) }));
    }
    assert_eq!(Looked::NotSeen.happening(), None, "what proves nothing changes nothing");
}

#[test]
fn a_person_decides_what_is_unknown_and_nothing_else() {
    for state in Attempt::ALL {
        for news in Happening::ALL {
            match hear(&entry(1, state), Voice::Person, news) {
                Ok(next) if next != state => assert_eq!(state, Attempt::Unknown),
                _ => {}
            }
        }
    }
    for state in [Attempt::Intent, Attempt::Sent] {
        let told = hear(&entry(1, state), Voice::Person, Happening::Absent);
        assert_eq!(told, Err(Unheard::NotUnknown { state }));
    }
    // Twice the same is no quarrel, the opposite is one.
    let applied = entry(1, Attempt::Applied);
    assert_eq!(hear(&applied, Voice::Person, Happening::Found), Ok(Attempt::Applied));
    assert!(matches!(hear(&applied, Voice::Person, Happening::Absent), Err(Unheard::Illegal(_))));
}

#[test]
fn only_the_holder_of_an_attempt_says_how_its_call_went() {
    let sent = entry(2, Attempt::Sent);
    for news in [Happening::Confirmed, Happening::RefusedWithoutEffect, Happening::Unanswered] {
        assert!(hear(&sent, Voice::Holder(epoch(2)), news).is_ok());
        for other in [1, 3] {
            let told = hear(&sent, Voice::Holder(epoch(other)), news);
            assert_eq!(told, Err(Unheard::NotItsHolder { attempt: epoch(2), holder: epoch(other) }));
        }
    }
    let marked_by_another = hear(&entry(2, Attempt::Intent), Voice::Holder(epoch(3)), Happening::Marked);
    assert!(marked_by_another.is_err());
}
