use super::*;
use crate::Ttl;
use core::time::Duration;

const GRANTED: RenewAnswer =
    RenewAnswer::Granted { holdings: Holdings::from_bits(0), seen: Seen { incarnation: 1, number: 1 } };

fn at(seconds: u64) -> Instant<HolderClock> {
    Instant::from_nanos(0).after(Duration::from_secs(seconds))
}

/// ttl 120 s, belief 108 s, renewal every 40 s, each waited for 20 s.
fn session(policy: Policy) -> HeldSession {
    HeldSession::opened(SessionId::from_bits(1), Timing::of(Ttl::DEFAULT), policy, at(0))
}

#[test]
fn a_renewal_falls_due_every_third_of_the_ttl_and_carries_the_next_number() {
    let mut it = session(Policy::Patient);
    assert_eq!(it.next_step(at(0)), SessionStep::Wait { until: at(40) });
    assert_eq!(it.next_step(at(40)), SessionStep::Renew { id: it.id(), n: 0 });
    assert_eq!(it.next_step(at(41)), SessionStep::Wait { until: at(60) });
    assert!(it.handle_renewed(0, at(42), GRANTED).is_some());
    // Counted from before it was sent.
    assert_eq!(it.deadline(), at(40 + 108));
    assert_eq!(it.next_step(at(80)), SessionStep::Renew { id: it.id(), n: 1 });
}

#[test]
fn a_deadline_is_counted_from_the_first_sending_of_a_repeated_renewal() {
    let mut it = session(Policy::Patient);
    assert_eq!(it.next_step(at(40)), SessionStep::Renew { id: it.id(), n: 0 });
    // Twenty seconds of silence: the same number again.
    assert_eq!(it.next_step(at(60)), SessionStep::Renew { id: it.id(), n: 0 });
    assert!(it.handle_renewed(0, at(62), GRANTED).is_some());
    assert_eq!(it.deadline(), at(40 + 108));
}

#[test]
fn unanswered_to_the_deadline_is_a_loss_and_a_late_answer_changes_nothing() {
    let mut it = session(Policy::Patient);
    assert!(matches!(it.next_step(at(40)), SessionStep::Renew { .. }));
    assert_eq!(it.standing(at(107)), Ok(()));
    assert_eq!(it.standing(at(108)), Err(Loss::DeadlinePassed));
    assert_eq!(it.handle_renewed(0, at(109), GRANTED), None);
    assert_eq!(it.standing(at(1)), Err(Loss::DeadlinePassed));
    assert_eq!(it.next_step(at(1)), SessionStep::Over(Loss::DeadlinePassed));
}

#[test]
fn a_refusal_is_a_loss_at_once() {
    let mut it = session(Policy::Patient);
    assert!(matches!(it.next_step(at(40)), SessionStep::Renew { .. }));
    assert_eq!(it.handle_renewed(0, at(41), RenewAnswer::Refused), None);
    assert_eq!(it.standing(at(41)), Err(Loss::RenewalRefused));
}

#[test]
fn strict_makes_the_first_silence_a_loss() {
    let mut it = session(Policy::Strict);
    assert!(matches!(it.next_step(at(40)), SessionStep::Renew { .. }));
    assert_eq!(it.next_step(at(60)), SessionStep::Over(Loss::RenewalUnanswered));
    let mut it = session(Policy::Strict);
    assert!(matches!(it.next_step(at(40)), SessionStep::Renew { .. }));
    assert_eq!(it.handle_renewed(0, at(41), RenewAnswer::Unanswered), None);
    assert_eq!(it.standing(at(41)), Err(Loss::RenewalUnanswered));
}

/// dynamolock #280, consul #912: one failed renewal dropped the lease although two thirds of it were left.
#[test]
fn a_failed_try_is_repeated_with_the_same_number_and_a_pause() {
    let mut it = session(Policy::Patient);
    assert!(matches!(it.next_step(at(40)), SessionStep::Renew { n: 0, .. }));
    it.handle_renewed(0, at(40), RenewAnswer::Unanswered);
    assert_eq!(it.next_step(at(41)), SessionStep::Wait { until: at(50) });
    assert!(matches!(it.next_step(at(50)), SessionStep::Renew { n: 0, .. }));
    assert!(it.handle_renewed(0, at(51), GRANTED).is_some());
    assert_eq!(it.standing(at(147)), Ok(()));
}
