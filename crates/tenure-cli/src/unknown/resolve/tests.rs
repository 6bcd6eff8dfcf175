use super::{Fate, refusal};
use crate::exit::Exit;
use tenure::core::Digest;
use tenure::core::ledger::Unheard;
use tenure::core::operation::{Attempt, Happening, Illegal};
use tenure::sink::ledger::{AttemptKey, AttemptRecord, Refused};

/// As it was read before the ledger was asked.
fn read(state: Attempt, decided_by: Option<&str>) -> AttemptRecord {
    AttemptRecord {
        key: AttemptKey {
            resource: "orders".parse().unwrap(),
            operation: "lost".parse().unwrap(),
            epoch: "1".parse().unwrap(),
        },
        seal_no: 1,
        digest: Digest([0; 32]),
        state,
        outcome: None,
        system: "bank".parse().unwrap(),
        owner: "alice".parse().unwrap(),
        intended_ms: 0,
        changed_ms: 0,
        age_ms: 0,
        decided_by: decided_by.map(|by| by.parse().unwrap()),
        why: None,
    }
}

/// Two persons said the same at once, and the second was told that it was his word that counted.
#[test]
fn whoever_comes_second_is_told_whose_word_stands() {
    let unknown = read(Attempt::Unknown, None);
    let by =
        |by: &str, why: &str| AttemptRecord { why: Some(why.parse().unwrap()), ..read(Attempt::Applied, Some(by)) };
    let (anna, reason) = ("anna".parse().unwrap(), "in the statement".parse().unwrap());
    let ours = Fate::of(&unknown, &by("anna", "in the statement"), (&anna, &reason));
    assert!(ours.is_ours && ours.says == "applied; it is not made again", "{}", ours.says);
    let late = Fate::of(&unknown, &by("bob", "he has seen it"), (&anna, &reason));
    assert!(!late.is_ours && late.says == "applied, as bob has said before: he has seen it", "{}", late.says);
    // Two terminals of one person.
    let twice = Fate::of(&unknown, &by("anna", "he has seen it"), (&anna, &reason));
    assert!(!twice.is_ours);
    let again = Fate::of(&by("anna", "in the statement"), &by("anna", "in the statement"), (&anna, &reason));
    assert!(!again.is_ours, "the same once more is no news");
    let found = AttemptRecord { why: Some("looked for".parse().unwrap()), ..read(Attempt::NotApplied, None) };
    let found = Fate::of(&unknown, &found, (&anna, &reason));
    assert!(!found.is_ours && found.says == "not applied, as it was known before", "{}", found.says);
}

/// Two persons decided at once, and the second was told: "lost is unknown: that is final".
#[test]
fn a_refusal_says_how_it_stands_and_not_how_it_was_read() {
    let applied = Refused::Unheard(Unheard::Illegal(Illegal { state: Attempt::Applied, happening: Happening::Absent }));
    let late = refusal(&read(Attempt::Unknown, None), &applied);
    assert_eq!(late.exit(), Exit::Conflict);
    assert!(late.to_string().contains("is applied: that is final"), "{late}");
    let known = refusal(&read(Attempt::Applied, Some("anna")), &applied).to_string();
    assert!(known.contains("is applied, as anna has said: that is final"), "{known}");
    let sent = refusal(&read(Attempt::Unknown, None), &Refused::Unheard(Unheard::NotUnknown { state: Attempt::Sent }));
    assert_eq!(sent.exit(), Exit::NotAcquired);
    assert!(sent.to_string().contains("was left as it is: it is sent"), "{sent}");
}
