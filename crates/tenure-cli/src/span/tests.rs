use super::{Span, parse};
use std::time::Duration;

#[test]
fn what_people_write_is_read() {
    for (text, millis) in
        [("250ms", 250), ("90s", 90_000), ("7", 7_000), ("5m", 300_000), ("1h30m", 5_400_000), ("2d", 172_800_000)]
    {
        assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
    }
}

#[test]
fn what_is_no_span_is_refused_by_name() {
    for text in ["", "s", "5x", "1h30", "-5s", "5 s", "99999999999999999999s", "18446744073709551615d"] {
        let refused = parse(text).expect_err(text);
        assert!(refused.contains(&format!("{text:?}")) && refused.contains("90s"), "{refused}");
    }
}

#[test]
fn what_people_read_has_two_figures_that_matter() {
    for (millis, text) in [
        (0, "0 ms"),
        (340, "340 ms"),
        (12_480, "12.5 s"),
        (87_000, "87 s"),
        (250_000, "4 min 10 s"),
        (11_100_000, "3 h 5 min"),
        (187_200_000, "2 d 4 h"),
    ] {
        assert_eq!(Span(Duration::from_millis(millis)).to_string(), text);
    }
}
