use super::super::finding::Verdict;
use super::*;

#[test]
fn a_ttl_stands_in_relation_to_the_authority_s_bound_and_to_its_speed() {
    let (fast, hour) = (Duration::from_micros(20), Ttl::new(Duration::from_hours(1)).unwrap());
    let judged = |ttl, max, latency| ttl_verdict(Duration::from_millis(ttl), max, latency);
    assert_eq!(judged(120_000, hour, fast), Verdict::Ok);
    assert_eq!(judged(3_600_000, hour, fast), Verdict::Ok);
    assert_eq!(judged(3_600_001, hour, fast), Verdict::Fail);
    assert_eq!(judged(1, hour, fast), Verdict::Fail);
    assert_eq!(judged(3_000, hour, Duration::from_millis(150)), Verdict::Warn);
    assert_eq!(judged(30_000, hour, Duration::from_millis(150)), Verdict::Ok);
}

fn ttl_verdict(span: Duration, max: Ttl, latency: Duration) -> Verdict {
    ttl(span, max, latency).verdict
}
