use super::*;

fn unanswered(waited: Duration) -> String {
    let (resource, error) =
        (ResourceName::new("r").expect("a name"), StoreError::Unavailable("gone".to_owned()).into());
    AcquireError::Unanswered { resource, waited, error }.to_string()
}

/// It said "did not answer within 0ns" to whoever does not wait.
#[test]
fn a_wish_that_does_not_wait_names_no_time() {
    let message = unanswered(Duration::ZERO);
    assert!(message.contains("did not answer: "), "{message}");
    let message = unanswered(Duration::from_secs(3));
    assert!(message.contains("did not answer within 3s: "), "{message}");
}
