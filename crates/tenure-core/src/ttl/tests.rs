use super::*;

#[test]
fn a_ttl_of_zero_or_beyond_the_bounds_is_refused() {
    assert!(matches!(Ttl::new(Duration::ZERO), Err(TimingError::TtlTooShort { .. })));
    assert!(matches!(Ttl::new(Ttl::MAX.get() + Duration::from_nanos(1)), Err(TimingError::TtlTooLong { .. })));
    assert_eq!(Ttl::new(Ttl::MIN.get()), Ok(Ttl::MIN));
    assert_eq!(Ttl::new(Ttl::MAX.get()), Ok(Ttl::MAX));
}

#[test]
fn the_defaults_leave_two_more_tries() {
    let timing = Timing::of(Ttl::DEFAULT);
    assert_eq!(timing.ttl().get(), Duration::from_secs(120));
    assert_eq!(timing.renew_every(), Duration::from_secs(40));
    assert_eq!(timing.belief(), Duration::from_secs(108));
    assert!(timing.renew_every() + timing.attempt() * 2 < timing.belief());
}

#[test]
fn a_margin_that_leaves_no_room_for_a_renewal_is_refused() {
    let timing = Timing::of(Ttl::DEFAULT);
    assert!(timing.with_margin(Duration::from_secs(79)).is_ok());
    assert!(timing.with_margin(Duration::from_secs(80)).is_err());
    assert!(timing.with_margin(Duration::from_secs(121)).is_err());
}
