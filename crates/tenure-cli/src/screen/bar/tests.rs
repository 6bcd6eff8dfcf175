use super::*;

#[test]
fn a_bar_is_full_at_first_and_empty_only_at_the_end() {
    let whole = Duration::from_secs(120);
    let drawn = |seconds| bar(Duration::from_secs(seconds), whole, 10);
    assert_eq!(drawn(120), "██████████");
    assert_eq!(drawn(500), "██████████");
    assert_eq!(drawn(60), "█████░░░░░");
    assert_eq!(drawn(1), "█░░░░░░░░░");
    assert_eq!(drawn(0), "░░░░░░░░░░");
    assert_eq!(bar(Duration::ZERO, Duration::ZERO, 3), "░░░");
}

#[test]
fn a_missed_renewal_is_to_be_looked_at() {
    let whole = Duration::from_secs(120);
    assert_eq!(
        [120, 80, 39, 0].map(|left| tint(Duration::from_secs(left), whole)),
        [Tint::Good, Tint::Good, Tint::Warn, Tint::Bad]
    );
}
