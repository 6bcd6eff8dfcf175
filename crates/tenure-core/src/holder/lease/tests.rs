use super::*;
use crate::Epoch;

fn sink(name: &str) -> SinkId {
    SinkId::new(name).unwrap()
}

fn generation(name: &str) -> Generation {
    Generation::new(name).unwrap()
}

fn granted(sinks: &[&str], announced: bool) -> (HeldLease, Token) {
    let resource = ResourceName::new("r").unwrap();
    let (grant, sinks): (_, BTreeSet<_>) = (GrantId::from_bits(1), sinks.iter().map(|name| sink(name)).collect());
    let token = Token { resource: resource.clone(), epoch: Epoch::FIRST, grant };
    let mut lease = HeldLease::new(resource, grant, sinks.clone());
    let unsealed = if announced { BTreeSet::new() } else { sinks.clone() };
    lease.handle_granted(Granted { token: token.clone(), announced, sinks, unsealed });
    (lease, token)
}

/// A lease whose sink was described, bound and sealed, but not marked.
fn sealed(lease: &mut HeldLease, sink: &SinkId) -> BTreeMap<SinkId, Generation> {
    let g = generation("g");
    lease.handle_described(sink, g.clone(), BTreeSet::new());
    let bound = BTreeMap::from([(sink.clone(), g.clone())]);
    assert!(lease.next_steps().contains(&LeaseStep::Bind(bound.clone())));
    lease.handle_bound(&bound);
    lease.handle_seal(sink, &g, SealAnswer::Sealed { enrolled: BTreeSet::from([sink.clone()]) });
    bound
}

#[test]
fn nothing_is_sealed_before_it_is_bound_and_nothing_is_held_before_it_is_announced() {
    let (mut lease, _) = granted(&["a", "b"], false);
    let (a, b, g) = (sink("a"), sink("b"), generation("g"));
    assert_eq!(lease.next_steps(), [LeaseStep::Describe(a.clone()), LeaseStep::Describe(b.clone())]);
    lease.handle_described(&a, g.clone(), BTreeSet::new());
    lease.handle_described(&b, g.clone(), BTreeSet::new());
    let both = BTreeMap::from([(a.clone(), g.clone()), (b.clone(), g.clone())]);
    assert_eq!(lease.next_steps(), [LeaseStep::Bind(both.clone())]);
    lease.handle_bound(&both);
    assert_eq!(lease.next_steps().len(), 2);
    let enrolled = BTreeSet::from([a.clone(), b.clone()]);
    lease.handle_seal(&a, &g, SealAnswer::Sealed { enrolled: enrolled.clone() });
    assert!(matches!(lease.next_steps()[..], [LeaseStep::Seal { .. }, LeaseStep::Mark(_)]));
    lease.handle_seal(&b, &g, SealAnswer::Sealed { enrolled });
    assert_eq!(lease.next_steps(), [LeaseStep::Mark(both.clone())]);
    lease.handle_marked(&both);
    assert_eq!(lease.next_steps(), [LeaseStep::Announce { excused: BTreeSet::new() }]);
    assert!(!lease.may_write() && !lease.may_write_to(&a));
    lease.handle_announced();
    assert!(lease.may_write() && lease.may_write_to(&a) && lease.may_write_to(&b));
    assert!(lease.next_steps().is_empty());
}

/// Rounds were barriers: one sink that did not answer its description held up the bind, the seals and the marks of all others.
#[test]
fn a_sink_that_says_nothing_holds_up_no_other() {
    let (mut lease, _) = granted(&["a", "b"], false);
    let (a, b) = (sink("a"), sink("b"));
    let bound = sealed(&mut lease, &a);
    assert_eq!(lease.next_steps(), [LeaseStep::Describe(b.clone()), LeaseStep::Mark(bound.clone())]);
    lease.handle_marked(&bound);
    assert_eq!(lease.next_steps(), [LeaseStep::Describe(b)]);
}

#[test]
fn a_takeover_is_announced_without_the_sinks_that_are_excused_and_no_other() {
    let (mut lease, _) = granted(&["a", "b"], false);
    let (a, b) = (sink("a"), sink("b"));
    lease.excuse(BTreeSet::from([b.clone()]));
    assert_eq!(lease.next_steps(), [LeaseStep::Describe(a.clone()), LeaseStep::Describe(b.clone())], "a is missing");
    let bound = sealed(&mut lease, &a);
    assert_eq!(lease.next_steps(), [LeaseStep::Describe(b.clone()), LeaseStep::Mark(bound.clone())], "marked first");
    lease.handle_marked(&bound);
    let excused = BTreeSet::from([b.clone()]);
    assert_eq!(lease.next_steps(), [LeaseStep::Describe(b.clone()), LeaseStep::Announce { excused: excused.clone() }]);
    lease.handle_announced();
    assert!(lease.may_write_to(&a) && !lease.may_write_to(&b));
    assert_eq!(lease.unsealed_sinks(), excused);
    // Its sealing goes on, and ends the excuse.
    let bound = sealed(&mut lease, &b);
    assert!(!lease.may_write_to(&b), "the authority does not know yet");
    lease.handle_marked(&bound);
    assert!(lease.may_write_to(&b) && lease.next_steps().is_empty());
}

/// A repeated answer that found the takeover announced made all sinks sealed, also those that it was announced without.
#[test]
fn a_lost_answer_that_comes_again_after_the_announcement_tells_who_was_excused() {
    let (resource, grant) = (ResourceName::new("r").unwrap(), GrantId::from_bits(1));
    let sinks = BTreeSet::from([sink("a"), sink("b")]);
    let unsealed = BTreeSet::from([sink("b")]);
    let token = Token { resource: resource.clone(), epoch: Epoch::FIRST, grant };
    let mut lease = HeldLease::new(resource, grant, sinks.clone());
    lease.handle_granted(Granted {
        token: token.clone(),
        announced: true,
        sinks: sinks.clone(),
        unsealed: unsealed.clone(),
    });
    let again = HeldLease::held(token, &sinks, &unsealed, sinks.clone());
    for lease in [lease, again] {
        assert!(lease.may_write() && lease.may_write_to(&sink("a")) && !lease.may_write_to(&sink("b")));
        assert_eq!(lease.next_steps(), [LeaseStep::Describe(sink("b"))]);
    }
}

/// A sink that was sealed before another one told of a third has never heard of the third.
#[test]
fn what_is_learnt_late_is_told_to_the_sinks_that_are_sealed_already() {
    let (mut lease, _) = granted(&["a", "b"], false);
    let (a, b) = (sink("a"), sink("b"));
    let bound = sealed(&mut lease, &a);
    lease.handle_marked(&bound);
    let forgotten = BTreeSet::from([sink("c")]);
    lease.handle_described(&b, generation("g"), forgotten.clone());
    assert_eq!(lease.next_steps(), [LeaseStep::Enrol(forgotten.clone())]);
    lease.handle_enrolled(&forgotten);
    assert!(lease.next_steps().contains(&LeaseStep::Describe(a)));
}

#[test]
fn a_receiver_that_a_sink_remembers_is_enrolled_first_and_refused_by_name_without_an_adapter() {
    let (mut lease, _) = granted(&["a"], false);
    lease.handle_described(&sink("a"), generation("g"), BTreeSet::from([sink("a"), sink("forgotten")]));
    assert_eq!(lease.next_steps(), [LeaseStep::Enrol(BTreeSet::from([sink("forgotten")]))]);
    assert_eq!(lease.without_adapter(), Some(&sink("forgotten")));
}

#[test]
fn a_refused_seal_is_a_loss_that_is_reported_once() {
    let (mut lease, _) = granted(&["a"], false);
    let (a, g) = (sink("a"), generation("g"));
    lease.handle_described(&a, g.clone(), BTreeSet::new());
    lease.handle_bound(&BTreeMap::from([(a.clone(), g.clone())]));
    let shown = SinkRefusal { epoch: Epoch::new(9).unwrap(), grant: Some(GrantId::from_bits(2)) };
    lease.handle_seal(&a, &g, SealAnswer::Refused { shown, conflict: false });
    assert_eq!(lease.phase(), &LeasePhase::Lost(Loss::Stale));
    assert_eq!(lease.next_steps(), [LeaseStep::Report(shown)]);
    lease.handle_given_up();
    assert!(lease.next_steps().is_empty());
}

#[test]
fn unsealed_is_no_loss() {
    let (mut lease, _) = granted(&["a"], true);
    assert!(lease.may_write());
    lease.handle_unsealed(&sink("a"));
    assert!(lease.may_write());
    assert_eq!(lease.next_steps(), [LeaseStep::Describe(sink("a"))]);
}

#[test]
fn i5_loss_is_absorbing_and_the_first_reason_stays() {
    let (mut lease, token) = granted(&[], true);
    lease.lose(Loss::Revoked);
    lease.lose(Loss::Stale);
    lease.handle_announced();
    lease.complete(Outcome::new("x").unwrap());
    assert_eq!(lease.phase(), &LeasePhase::Lost(Loss::Revoked));
    // Whoever loses one grant on a living session gives it up.
    assert_eq!(lease.next_steps(), [LeaseStep::Release(token)]);
}

#[test]
fn a_grant_that_comes_after_the_wish_was_dropped_is_given_up() {
    let resource = ResourceName::new("r").unwrap();
    let mut lease = HeldLease::new(resource.clone(), GrantId::from_bits(1), BTreeSet::new());
    lease.release();
    let token = Token { resource, epoch: Epoch::FIRST, grant: GrantId::from_bits(1) };
    lease.handle_late_grant(token.clone());
    assert_eq!(lease.next_steps(), [LeaseStep::Release(token)]);
}
