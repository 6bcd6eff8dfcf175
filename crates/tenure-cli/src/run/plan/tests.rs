use super::Plan;
use std::time::Duration;

#[test]
fn the_usual_spans_fit() {
    let plan = Plan::new(Duration::from_secs(120), None).unwrap();
    assert_eq!((plan.grace, plan.margin), (Duration::from_secs(5), Duration::from_secs(12)));
    assert_eq!(plan.holder_margin(), Duration::from_secs(17));
}

/// A grace of five seconds in a lease of three would ask the command to end before it has begun.
#[test]
fn a_short_ttl_shortens_the_grace_that_nobody_asked_for() {
    let plan = Plan::new(Duration::from_secs(3), None).unwrap();
    assert_eq!(plan.grace, Duration::from_millis(350));
    let left = plan.ttl.get() - plan.holder_margin();
    assert!(left > plan.ttl.get() / 3 * 2, "{left:?}");
}

#[test]
fn a_grace_that_does_not_fit_names_one_that_would() {
    let refused = Plan::new(Duration::from_secs(10), Some(Duration::from_secs(5))).unwrap_err().to_string();
    assert!(refused.contains("at most 2.333s") && refused.contains("at least 22s"), "{refused}");
    let proposed = Plan::new(Duration::from_secs(22), Some(Duration::from_secs(5)));
    assert!(proposed.is_ok(), "{:?}", proposed.unwrap_err().to_string());
    assert!(Plan::new(Duration::from_secs(10), Some(Duration::from_millis(2333))).is_ok());
}
