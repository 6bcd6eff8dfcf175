use super::*;

const FIRST: Option<Epoch> = Some(Epoch::FIRST);

fn grant(bits: u128) -> Grant {
    Grant { epoch: Epoch::FIRST, id: GrantId::from_bits(bits) }
}

#[test]
fn equal_sets_have_equal_fingerprints_and_a_revoked_grant_is_noticed() {
    let mut known = KnownGrants::default();
    let held: BTreeSet<_> = [3, 5, 9].map(grant).into();
    for grant in &held {
        known.began(grant.id);
        known.settled(grant.id, None, FIRST);
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
    known.began(grant(7).id);
    let listed = BTreeSet::from([grant(7), grant(8)]);
    assert_eq!(known.compare(&listed, &BTreeSet::new(), |_| false).strange, [grant(8)]);
    assert!(!known.differs(Holdings::default().toggled(grant(8)), known.moves()));
}

#[test]
fn a_grant_that_came_after_the_list_was_asked_for_is_not_gone() {
    let mut known = KnownGrants::default();
    known.began(grant(7).id);
    known.settled(grant(7).id, None, FIRST);
    assert_eq!(known.compare(&BTreeSet::new(), &BTreeSet::new(), |_| true), Difference::default());
}

/// A grant was revoked, somebody else came and went, and a late duplicate of the first request brought its id back.
#[test]
fn an_old_id_under_a_new_epoch_is_another_grant() {
    let second = Epoch::new(2).unwrap();
    let [a, b] = [7, 8].map(grant);
    let later = |grant: Grant| Grant { epoch: second, ..grant };
    let mut known = KnownGrants::default();
    known.began(a.id);
    known.settled(a.id, None, FIRST);
    assert!(known.differs([later(a)].into_iter().collect(), known.moves()));
    let difference = known.compare(&BTreeSet::from([later(a)]), &BTreeSet::from([a]), |grant| grant == a);
    assert_eq!(difference, Difference { gone: alloc::vec![a], strange: alloc::vec![later(a)] });
    let swapped: [Holdings; 2] = [[a, later(b)], [later(a), b]].map(|grants| grants.into_iter().collect());
    assert_ne!(swapped[0], swapped[1]);
}
