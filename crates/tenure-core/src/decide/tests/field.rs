//! Bugs that others have had, each asked of this authority.

use super::world::{TTL, World, release, resource};
use crate::decide::{Refusal, Reply, SinkRefusal};
use crate::record::EndReason;
use crate::{Epoch, GrantId, Token};
use core::time::Duration;

/// etcd #11456: a waiter was told that it held, although its own lease had run out while it waited.
#[test]
fn a_waiter_whose_own_session_ended_while_it_waited_is_not_granted() {
    let mut world = World::new();
    let waiter = world.worker("waiter");
    world.pass(TTL.get() - Duration::from_secs(1));
    let holder = world.worker("holder");
    let token = world.granted(&holder, "r");
    let wish = world.wish(&waiter, "r");
    assert!(matches!(world.ask(&wish), Err(Refusal::Busy { .. })));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.ask(&release(&token)), Ok(Reply::Released));
    let expired = Refusal::SessionEnded { why: Some(EndReason::Expired) };
    assert_eq!(world.ask(&wish), Err(expired));
    assert!(!world.leases[&resource("r")].is_granted());
}

/// azure-event-hubs-dotnet #115: a host that had lost a partition read the record again before each write, and so went
/// on with its successor's token.
#[test]
fn no_answer_hands_the_successors_token_to_the_one_who_lost() {
    let mut world = World::new();
    let old = world.worker("w");
    let lost = world.granted(&old, "r");
    world.pass(TTL.get());
    let new = world.worker("w");
    let current = world.granted(&new, "r");
    for request in [old.check(&lost), release(&lost), old.complete(&lost, "x"), old.renew(0)] {
        let answer = world.ask(&request);
        assert!(answer.is_err(), "{request:?}");
        // A refusal tells epoch and owner, and never the grant id that makes a token.
        let id = alloc::format!("{:?}", current.grant);
        let told = match answer {
            Err(Refusal::NotCurrent { epoch, owner }) => alloc::format!("{epoch:?} {}", owner.unwrap().name),
            other => alloc::format!("{other:?}"),
        };
        assert!(!told.contains(&alloc::format!("grant: {id}")), "{told}");
    }
    // Nor does knowing the token help: it stands on another session.
    assert!(matches!(world.ask(&old.check(&current)), Err(Refusal::SessionEnded { .. })));
    let again = world.worker("w");
    assert!(matches!(world.ask(&again.check(&current)), Err(Refusal::NotCurrent { .. })));
    assert!(matches!(world.ask(&again.complete(&current, "x")), Err(Refusal::NotCurrent { .. })));
}

/// redlock-rb #36: extending a lock that had expired created it anew.
#[test]
fn a_renewal_after_the_expiry_is_refused_whether_or_not_another_took_over() {
    for taken_over in [false, true] {
        let mut world = World::new();
        let a = world.worker("a");
        let token = world.granted(&a, "r");
        world.pass(TTL.get());
        if taken_over {
            let b = world.worker("b");
            world.granted(&b, "r");
        }
        assert_eq!(world.ask_twice(&a.renew(0)), Err(Refusal::SessionEnded { why: Some(EndReason::Expired) }));
        assert!(world.ask(&a.check(&token)).is_err());
    }
}

/// aegra #547: owners were compared by worker name, so a stalled worker extended its replacement's lease, gave it up,
/// and overwrote its result.
#[test]
fn a_stalled_worker_touches_nothing_of_a_replacement_with_the_same_name() {
    let mut world = World::new();
    let stalled = world.worker("worker-1");
    let old = world.granted(&stalled, "r");
    world.pass(TTL.get());
    let replacement = world.worker("worker-1");
    let new = world.granted(&replacement, "r");
    let deadline = world.sessions[&replacement.session].deadline;
    world.pass(Duration::from_secs(1));
    for request in [stalled.renew(0), release(&old), stalled.complete(&old, "late")] {
        assert!(world.ask(&request).is_err(), "{request:?}");
    }
    assert_eq!(world.sessions[&replacement.session].deadline, deadline);
    assert_eq!(world.ask(&replacement.check(&new)), Ok(Reply::Stands));
}

/// StarRocks #12138: the new epoch was counted from the rows that were there, and met an old one after a gap.
#[test]
fn after_a_gap_in_the_epochs_the_next_one_is_above_the_highest() {
    let mut world = World::new();
    let a = world.worker("a");
    let first = world.granted(&a, "r");
    let shown = SinkRefusal { epoch: Epoch::new(5).unwrap(), grant: None };
    assert_eq!(world.ask(&crate::decide::Request::Refused { token: first, shown }), Ok(Reply::Learnt));
    for expected in 6..9 {
        let token = world.granted(&a, "r");
        assert_eq!(token.epoch.get(), expected);
        assert_eq!(world.ask(&release(&token)), Ok(Reply::Released));
    }
    world.authority.floor = Epoch::new(40).ok();
    assert_eq!(world.granted(&a, "never-seen").epoch.get(), 41);
    // And at the end there is no wrapping around.
    world.authority.floor = Epoch::new(Epoch::MAX_VALUE).ok();
    let wish = world.wish(&a, "at-the-end");
    assert_eq!(world.ask(&wish), Err(Refusal::EpochsExhausted));
}

/// redislock #94, and Redisson the other way round: raising the token when the holder asks again would fence out the
/// holder's own outer frame.
#[test]
fn asking_again_for_what_one_holds_keeps_the_epoch_and_the_grant() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "r");
    let changes = world.changes;
    assert_eq!(world.granted(&a, "r"), token);
    assert_eq!(world.changes, changes);
}

/// twenty #25661, reinhardt-web #740, redis-py #415: unlocking without looking at the owner deleted another holder's
/// lock, whose unlocking deleted the next one's.
#[test]
fn a_release_with_any_part_of_the_token_wrong_releases_nothing() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "r");
    let wrong = [
        Token { epoch: token.epoch.next().unwrap(), ..token.clone() },
        Token { grant: GrantId::from_bits(77), ..token.clone() },
        Token { resource: resource("s"), epoch: token.epoch, grant: token.grant },
    ];
    for wrong in wrong {
        assert!(matches!(world.ask(&release(&wrong)), Err(Refusal::NotCurrent { .. })), "{wrong:?}");
        assert_eq!(world.ask(&a.check(&token)), Ok(Reply::Stands));
    }
    assert_eq!(world.ask_twice(&release(&token)), Ok(Reply::Released));
    let b = world.worker("b");
    let next = world.granted(&b, "r");
    // The same release, arriving once more.
    assert!(matches!(world.ask(&release(&token)), Err(Refusal::NotCurrent { .. })));
    assert_eq!(world.ask(&b.check(&next)), Ok(Reply::Stands));
}

/// kubernetes #61151, areev #300, openclaw #4015: two containers were both process 1 on hosts of one name, and each took
/// the other's lock for its own.
#[test]
fn two_processes_with_the_same_name_do_not_enter_together() {
    let mut world = World::new();
    let (one, other) = (world.worker("host:1"), world.worker("host:1"));
    assert_ne!(one.owner.instance, other.owner.instance);
    let token = world.granted(&one, "r");
    let wish = world.wish(&other, "r");
    assert!(matches!(world.ask(&wish), Err(Refusal::Busy { owner, .. }) if owner == one.owner));
    assert!(matches!(world.ask(&other.check(&token)), Err(Refusal::NotCurrent { .. })));
    assert!(matches!(world.ask(&other.complete(&token, "x")), Err(Refusal::NotCurrent { .. })));
}

/// The lock test of etcd's Jepsen suite: a request that timed out may still go through, and hold.
#[test]
fn an_acquisition_without_an_answer_is_sent_again_and_finds_its_own_grant() {
    let mut world = World::new();
    let a = world.worker("a");
    let wish = world.wish(&a, "r");
    let Ok(Reply::Granted(granted)) = world.ask_twice(&wish) else { panic!("refused") };
    assert_eq!(world.changes, 2, "one opening, one grant");
    // Or the wish is dropped, and what came of it is given up under the id that was drawn before it was sent.
    assert_eq!(world.ask(&release(&granted.token)), Ok(Reply::Released));
    let b = world.worker("b");
    assert_eq!(world.granted(&b, "r").epoch.get(), 2);
}
