use super::super::finding::Verdict;
use super::*;

#[test]
fn a_wall_clock_that_went_back_is_noticed() {
    let now = parse("2026-11-29T12:00:00Z").unwrap();
    let cases = [
        (None, Verdict::Ok),
        (Some("2026-11-29T11:59:59.999Z"), Verdict::Ok),
        (Some("2026-11-29T12:00:05.000Z"), Verdict::Ok),
        (Some("2026-11-29T12:00:06.000Z"), Verdict::Warn),
        (Some("2027-01-01T00:00:00.000Z"), Verdict::Warn),
    ];
    for (newest, expected) in cases {
        assert_eq!(wall(newest, now).verdict, expected, "{newest:?}");
    }
}
