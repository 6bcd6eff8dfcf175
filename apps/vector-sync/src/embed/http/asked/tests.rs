use super::*;
use reqwest::header::HeaderMap;

fn asks(headers: &[(&'static str, &str)]) -> Option<u64> {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (reqwest::header::HeaderName::from_static(name), value.parse().unwrap()))
        .collect();
    after(&headers).map(|after| after.as_secs())
}

#[test]
fn a_service_says_when_it_wants_to_be_asked_again() {
    let date = ("date", "Mon, 07 Jan 2002 10:00:00 GMT");
    assert_eq!(asks(&[("retry-after", "7")]), Some(7));
    assert_eq!(asks(&[("retry-after", "Mon, 07 Jan 2002 10:00:30 GMT"), date]), Some(30));
    // What is over need not be waited for.
    assert_eq!(asks(&[("retry-after", "Mon, 07 Jan 2002 09:00:00 GMT"), date]), Some(0));
    // Compared with no clock, a date says nothing.
    assert_eq!(asks(&[("retry-after", "Mon, 07 Jan 2002 10:00:30 GMT")]), None);
    assert_eq!(asks(&[("retry-after", "soon"), date]), None);
    assert_eq!(asks(&[date]), None);
}
