use super::*;

fn at(nanos: u64) -> Instant<HolderClock> {
    Instant::from_nanos(nanos)
}

#[test]
fn the_deadline_is_half_open_and_latches() {
    let gate = Gate::until(at(10));
    assert!(gate.is_open(at(9)));
    assert!(!gate.is_open(at(10)));
    // Sticky: neither an earlier reading of the clock nor a late renewal opens it again.
    assert!(!gate.is_open(at(1)));
    assert!(!gate.extend(at(99)));
    assert!(!gate.is_open(at(1)));
    assert!(!gate.close());
}

#[test]
fn a_renewal_never_shortens() {
    let gate = Gate::until(at(10));
    assert!(gate.extend(at(20)));
    assert!(gate.extend(at(15)));
    assert_eq!(gate.deadline(), Some(at(20)));
    assert!(gate.close());
    assert_eq!(gate.deadline(), None);
}
