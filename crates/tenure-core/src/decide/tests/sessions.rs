use super::world::{TTL, World};
use crate::decide::{Refusal, Reply, Request, SWEEP_AGE};
use crate::record::{EndReason, Seen, SessionState};
use crate::{Actor, Reason, Ttl};
use core::time::Duration;

const EXPIRED: Refusal = Refusal::SessionEnded { why: Some(EndReason::Expired) };
const NANO: Duration = Duration::from_nanos(1);

#[test]
fn a_takeover_happens_exactly_at_the_deadline() {
    let mut world = World::new();
    let (a, b) = (world.worker("a"), world.worker("b"));
    let old = world.granted(&a, "r");
    world.pass(TTL.get() - NANO);
    // B's session is renewed: it is A's that runs out.
    assert!(world.ask(&b.renew(0)).is_ok());
    let wish = world.wish(&b, "r");
    assert!(matches!(world.ask(&wish), Err(Refusal::Busy { remaining: NANO, .. })));
    world.pass(NANO);
    let Ok(Reply::Granted(granted)) = world.ask(&wish) else { panic!("not granted at the deadline") };
    assert_eq!(granted.token.epoch, old.epoch.next().unwrap());
    assert!(matches!(world.sessions[&a.session].state, SessionState::Ended { why: EndReason::Expired, .. }));
}

#[test]
fn a_renewal_at_the_deadline_is_refused() {
    let mut world = World::new();
    let a = world.worker("a");
    world.pass(TTL.get());
    assert_eq!(world.ask(&a.renew(0)), Err(EXPIRED));
}

#[test]
fn a_renewal_just_before_the_deadline_is_granted_and_moves_the_takeover() {
    let mut world = World::new();
    let (a, b) = (world.worker("a"), world.worker("b"));
    world.granted(&a, "r");
    world.pass(TTL.get() - NANO);
    assert!(world.ask(&a.renew(0)).is_ok());
    assert!(world.ask(&b.renew(0)).is_ok());
    world.pass(NANO);
    let wish = world.wish(&b, "r");
    assert!(matches!(world.ask(&wish), Err(Refusal::Busy { .. })));
    world.pass(TTL.get() - NANO - NANO);
    assert!(world.ask(&b.renew(1)).is_ok());
    assert!(matches!(world.ask(&wish), Err(Refusal::Busy { remaining: NANO, .. })));
    world.pass(NANO);
    assert!(matches!(world.ask(&wish), Ok(Reply::Granted(_))));
}

#[test]
fn a_lost_answer_to_a_renewal_is_the_same_success_and_the_deadline_stays() {
    let mut world = World::new();
    let a = world.worker("a");
    world.pass(Duration::from_secs(40));
    let renewed = world.ask(&a.renew(0));
    let deadline = world.sessions[&a.session].deadline;
    world.pass(Duration::from_secs(20));
    assert_eq!(world.ask(&a.renew(0)), renewed);
    assert_eq!(world.sessions[&a.session].deadline, deadline);
    assert_eq!(deadline, crate::Instant::from_nanos(1).after(Duration::from_secs(40) + TTL.get()));
}

#[test]
fn a_renewal_out_of_step_is_refused() {
    let mut world = World::new();
    let a = world.worker("a");
    assert_eq!(world.ask(&a.renew(1)), Err(Refusal::OutOfStep { expected: 0 }));
    assert_eq!(world.ask(&a.renew(u64::MAX)), Err(Refusal::OutOfStep { expected: 0 }));
}

#[test]
fn a_lost_answer_to_an_opening_is_the_same_session_and_a_late_one_is_refused() {
    let mut world = World::new();
    let a = world.worker("a");
    let open = Request::Open {
        id: a.session,
        owner: a.owner.clone(),
        on_this_host: false,
        ttl: TTL,
        asked_at: world.now,
        seen: Seen::default(),
    };
    assert!(world.ask_twice(&open).is_ok());
    assert_eq!(world.changes, 1);
    assert_eq!(world.ask_twice(&Request::Close { id: a.session }), Ok(Reply::Ended));
    assert_eq!(world.ask(&open), Err(Refusal::SessionEnded { why: Some(EndReason::Closed) }));
    world.pass(SWEEP_AGE);
    assert_eq!(world.ask_twice(&Request::Sweep { id: a.session }), Ok(Reply::Ended));
    assert!(world.sessions.is_empty());
    assert_eq!(world.ask_twice(&open), Err(Refusal::OpeningTooOld));
}

#[test]
fn a_ttl_above_the_authoritys_maximum_is_refused() {
    let mut world = World::new();
    let a = world.worker("a");
    world.authority.max_ttl = Ttl::MIN;
    let open = Request::Open {
        id: crate::SessionId::from_bits(99),
        owner: a.owner,
        on_this_host: false,
        ttl: TTL,
        asked_at: world.now,
        seen: Seen::default(),
    };
    assert_eq!(world.ask(&open), Err(Refusal::TtlTooLong { max: Ttl::MIN }));
}

#[test]
fn an_operators_end_is_final_and_frees_what_stood_on_the_session() {
    let mut world = World::new();
    let (a, b) = (world.worker("a"), world.worker("b"));
    let token = world.granted(&a, "r");
    let (actor, reason) = (Actor::new("op").unwrap(), Reason::new("hung").unwrap());
    let end = Request::RevokeSession { id: a.session, actor, reason };
    assert_eq!(world.ask_twice(&end), Ok(Reply::Ended));
    let ended = Err(Refusal::SessionEnded { why: Some(EndReason::Revoked) });
    assert_eq!(world.ask(&a.renew(0)), ended);
    assert_eq!(world.ask(&a.check(&token)), ended);
    assert_eq!(world.granted(&b, "r").epoch, token.epoch.next().unwrap());
}
