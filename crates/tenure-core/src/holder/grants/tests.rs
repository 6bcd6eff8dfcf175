use super::*;

fn grant(bits: u128) -> GrantId {
    GrantId::from_bits(bits)
}

#[test]
fn equal_sets_have_equal_fingerprints_and_a_revoked_grant_is_noticed() {
    let mut known = KnownGrants::default();
    let held: BTreeSet<_> = [3, 5, 9].map(grant).into();
    for grant in &held {
        known.began(*grant);
        known.settled(*grant, false, true);
    }
    let sent = known.moves();
    let all: Holdings = [9, 3, 5].map(grant).into_iter().collect();
    assert!(!known.differs(all, sent));
    assert!(known.differs(all.toggled(grant(5)), sent));
    let listed = BTreeSet::from([grant(3), grant(9)]);
    let difference = known.compare(&listed, &held, |grant| held.contains(&grant));
    assert_eq!(difference, Difference { gone: alloc::vec![grant(5)], strange: alloc::vec![] });
}

#[test]
fn a_late_duplicate_is_strange_and_a_request_under_way_is_not() {
    let mut known = KnownGrants::default();
    known.began(grant(7));
    let listed = BTreeSet::from([grant(7), grant(8)]);
    assert_eq!(known.compare(&listed, &BTreeSet::new(), |_| false).strange, [grant(8)]);
    assert!(!known.differs(Holdings::default().toggled(grant(8)), known.moves()));
}

#[test]
fn a_grant_that_came_after_the_list_was_asked_for_is_not_gone() {
    let mut known = KnownGrants::default();
    known.began(grant(7));
    known.settled(grant(7), false, true);
    assert_eq!(known.compare(&BTreeSet::new(), &BTreeSet::new(), |_| true), Difference::default());
}
