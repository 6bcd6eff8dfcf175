use super::Doubt;

#[test]
fn a_change_is_in_doubt_from_its_sending_on() {
    let doubt = Doubt::default();
    assert!(!doubt.is_any());
    let sent = doubt.send();
    assert!(doubt.is_any());
    sent.settled();
    assert!(!doubt.is_any());
    drop(doubt.send());
    assert!(doubt.is_any(), "nobody said what became of it");
    doubt.settle(doubt.left());
    assert!(!doubt.is_any());
}

/// Replicas that were asked before a change was left in doubt say nothing about it.
#[test]
fn what_came_later_stays_in_doubt() {
    let doubt = Doubt::default();
    drop(doubt.send());
    let asked = doubt.left();
    drop(doubt.send());
    doubt.settle(asked);
    assert!(doubt.is_any());
}
