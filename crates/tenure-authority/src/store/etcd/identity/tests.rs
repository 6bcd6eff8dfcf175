use super::{Identity, named};
use crate::store::etcd::message::Answered;

fn answered(cluster: u64, revision: u64) -> Answered {
    Answered { cluster, revision, succeeded: true, read: Vec::new() }
}

#[test]
fn a_revision_that_went_back_is_another_life_until_it_is_written_down() {
    let identity = Identity::default();
    let own = named(0xab, None).expect("a name");
    assert!(identity.saw(&answered(0xab, 10), identity.highest()));
    assert!(identity.saw(&answered(0xab, 12), identity.highest()));
    assert_eq!(identity.observed(0xab, &own).as_ref(), Some(&own));
    // It was sent before the other one was answered.
    assert!(identity.saw(&answered(0xab, 11), 10));
    assert_eq!(identity.observed(0xab, &own).as_ref(), Some(&own));
    assert!(!identity.saw(&answered(0xab, 11), identity.highest()));
    let life = identity.observed(0xab, &own).expect("a name");
    assert!(life != own && life.as_str().starts_with("etcd:ab:"), "{life}");
    assert_eq!(identity.observed(0xab, &own).as_ref(), Some(&life), "as long as the record says the old one");
    assert_eq!(identity.observed(0xab, &life).as_ref(), Some(&life));
    assert!(identity.saw(&answered(0xab, 12), identity.highest()));
    // Another process has noticed nothing, and finds what was written.
    let other = Identity::default();
    assert!(other.saw(&answered(0xab, 12), other.highest()));
    assert_eq!(other.observed(0xab, &life).as_ref(), Some(&life));
}

#[test]
fn another_cluster_is_another_store() {
    let identity = Identity::default();
    let own = named(0xab, None).expect("a name");
    assert!(identity.saw(&answered(0xab, 10), 0));
    assert!(!identity.saw(&answered(0xa, 3), identity.highest()));
    assert_eq!(identity.observed(0xa, &own), named(0xa, None));
    assert_eq!(identity.observed(0xabc, &own), named(0xabc, None), "not the beginning of another one");
}
