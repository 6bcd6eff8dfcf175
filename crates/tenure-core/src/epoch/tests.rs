use super::*;

#[test]
fn integers_that_overflow_negative_zero_or_not_integers_are_refused() {
    for (text, error) in [
        ("0", EpochError::NotPositive),
        ("-1", EpochError::NotInteger),
        ("1.5", EpochError::NotInteger),
        ("+1", EpochError::NotInteger),
        ("", EpochError::NotInteger),
        ("１", EpochError::NotInteger),
        ("9223372036854775808", EpochError::TooLarge),
        ("99999999999999999999999", EpochError::TooLarge),
    ] {
        assert_eq!(text.parse::<Epoch>(), Err(error), "{text:?}");
    }
    assert_eq!(Epoch::try_from(-1), Err(EpochError::NotPositive));
    assert_eq!(Epoch::try_from(0), Err(EpochError::NotPositive));
    assert_eq!("9223372036854775807".parse::<Epoch>().unwrap().as_i64(), i64::MAX);
}

/// KAFKA-9666: a producer's epoch ran out and wrapped. Ours ends with an error, and stays where it is.
#[test]
fn epochs_end_with_an_error_and_never_wrap() {
    let last = Epoch::new(Epoch::MAX_VALUE).unwrap();
    assert_eq!(last.next(), Err(EpochError::Exhausted));
    assert_eq!(Epoch::above(Some(last)), Err(EpochError::Exhausted));
    assert_eq!(Epoch::above(None), Ok(Epoch::FIRST));
}
