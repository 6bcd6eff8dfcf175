use super::{Identity, named};
use crate::store::etcd::message::Answered;
use tenure_core::record::AuthorityRecord;
use tenure_core::{StoreIdentity, Ttl};

fn record(identity: &StoreIdentity, incarnation: u64) -> AuthorityRecord {
    AuthorityRecord { incarnation, ..AuthorityRecord::new(identity.clone(), Ttl::DEFAULT) }
}

fn answered(cluster: u64, revision: u64) -> Answered {
    Answered { cluster, revision, succeeded: true, read: Vec::new() }
}

#[test]
fn a_revision_that_went_back_is_another_life_until_it_is_written_down() {
    let identity = Identity::default();
    let own = named(0xab, None).expect("a name");
    assert!(identity.saw(&answered(0xab, 10), identity.highest()));
    assert!(identity.saw(&answered(0xab, 12), identity.highest()));
    assert_eq!(identity.observed(0xab, &record(&own, 1)).as_ref(), Some(&own));
    // It was sent before the other one was answered.
    assert!(identity.saw(&answered(0xab, 11), 10));
    assert_eq!(identity.observed(0xab, &record(&own, 1)).as_ref(), Some(&own));
    assert!(!identity.saw(&answered(0xab, 11), identity.highest()));
    let life = identity.observed(0xab, &record(&own, 1)).expect("a name");
    assert!(life != own && life.as_str().starts_with("etcd:ab:"), "{life}");
    assert_eq!(
        identity.observed(0xab, &record(&own, 1)).as_ref(),
        Some(&life),
        "as long as the record says the old one"
    );
    assert_eq!(identity.observed(0xab, &record(&life, 2)).as_ref(), Some(&life));
    assert!(identity.saw(&answered(0xab, 12), identity.highest()));
    // Another process has noticed nothing, and finds what was written.
    let other = Identity::default();
    assert!(other.saw(&answered(0xab, 12), other.highest()));
    assert_eq!(other.observed(0xab, &record(&life, 2)).as_ref(), Some(&life));
}

#[test]
fn another_cluster_is_another_store() {
    let identity = Identity::default();
    let own = named(0xab, None).expect("a name");
    assert!(identity.saw(&answered(0xab, 10), 0));
    assert!(!identity.saw(&answered(0xa, 3), identity.highest()));
    assert_eq!(identity.observed(0xa, &record(&own, 1)), named(0xa, None));
    assert_eq!(identity.observed(0xabc, &record(&own, 1)), named(0xabc, None), "not the beginning of another one");
}

/// A snapshot was put back. One process has noticed and written the new life down before another one sees that the
/// revision went back: what that one reads first is the new life already, and is no reason for one more quarantine.
#[test]
fn a_life_that_another_process_wrote_down_first_is_taken_over() {
    let late = Identity::default();
    let own = named(0xab, None).expect("a name");
    let life = named(0xab, Some(7)).expect("a name");
    assert!(late.saw(&answered(0xab, 12), late.highest()));
    assert_eq!(late.observed(0xab, &record(&own, 1)).as_ref(), Some(&own));
    assert!(!late.saw(&answered(0xab, 11), late.highest()));
    assert_eq!(late.observed(0xab, &record(&life, 2)).as_ref(), Some(&life));
    assert!(late.stands(&record(&life, 2)));
}

/// The snapshot is so old that it lacks the last life: another identity than the one that was read last, and nobody has
/// written anything down.
#[test]
fn a_snapshot_from_before_the_last_life_is_noticed() {
    let identity = Identity::default();
    let own = named(0xab, None).expect("a name");
    let life = named(0xab, Some(7)).expect("a name");
    assert!(identity.saw(&answered(0xab, 12), identity.highest()));
    assert_eq!(identity.observed(0xab, &record(&life, 2)).as_ref(), Some(&life));
    assert!(!identity.saw(&answered(0xab, 11), identity.highest()));
    assert!(!identity.stands(&record(&own, 1)));
    let next = identity.observed(0xab, &record(&own, 1)).expect("a name");
    assert!(next != own && next != life, "{next}");
    // This process writes it down itself.
    assert!(identity.stands(&record(&next, 2)));
}
