use super::world::{TTL, World, resource};
use crate::decide::{EXPLAINED_FOR, Refusal, Reply, Request, SinkRefusal};
use crate::record::{AuthorityRecord, LeaseRecord, Phase};
use crate::{Actor, Epoch, GrantId, Reason, SinkId, Ttl};
use alloc::collections::BTreeSet;

fn actor() -> Actor {
    Actor::new("op").unwrap()
}

fn restore() -> Request {
    Request::Restore { longest_ttl: None, actor: actor(), reason: Reason::new("the backup of Monday").unwrap() }
}

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

fn sinks(names: &[&str]) -> BTreeSet<SinkId> {
    names.iter().map(|name| SinkId::new(name).unwrap()).collect()
}

fn learn(name: &str, number: u64, names: &[&str]) -> Request {
    let (resource, grant) = (resource(name), GrantId::from_bits(u128::from(number) << 64));
    Request::Learn { resource, epoch: epoch(number), grant, sinks: sinks(names), actor: actor() }
}

fn restored(world: &mut World) -> AuthorityRecord {
    assert!(matches!(world.ask(&restore()), Ok(Reply::Restored { .. })));
    world.authority.clone()
}

fn lease<'world>(world: &'world World, name: &str) -> &'world LeaseRecord {
    world.leases.get(&resource(name)).unwrap()
}

/// A backup of the same hour was put back on the same machine: nothing about the store tells it.
#[test]
fn an_operator_who_says_so_quarantines_a_store_that_noticed_nothing() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "r");
    let answer = world.ask_twice(&restore());
    assert_eq!(answer, Ok(Reply::Restored { incarnation: 2, remaining: Ttl::MAX.get() }));
    assert_eq!(world.changes, 3, "said twice, it quarantines once");
    assert!(matches!(world.ask(&a.check(&token)), Err(Refusal::SessionEnded { .. })));
    assert!(matches!(world.ask(&a.renew(0)), Err(Refusal::SessionEnded { .. })));
    let wish = world.wish(&a, "r");
    assert!(matches!(world.ask(&wish), Err(Refusal::Quarantined { .. })));
    world.pass(Ttl::MAX.get());
    let b = world.worker("b");
    assert_eq!(world.granted(&b, "r").epoch, epoch(2));
    assert_eq!(restored(&mut world).incarnation, 3, "and after its end it is a new restore");
}

#[test]
fn an_operator_who_knows_how_long_the_lost_may_believe_waits_no_longer() {
    for (longest_ttl, span) in [(Some(TTL), TTL), (Some(Ttl::MAX), Ttl::MAX), (None, Ttl::MAX)] {
        let mut world = World::new();
        let request = Request::Restore { longest_ttl, actor: actor(), reason: Reason::new("").unwrap() };
        assert_eq!(world.ask(&request), Ok(Reply::Restored { incarnation: 2, remaining: span.get() }));
    }
}

#[test]
fn a_store_learns_the_epoch_and_the_enrolment_that_it_has_forgotten() {
    let mut world = World::new();
    let a = world.worker("a");
    world.granted(&a, "r");
    restored(&mut world);
    assert_eq!(world.ask_twice(&learn("r", 7, &["db", "files"])), Ok(Reply::Learnt));
    let known = lease(&world, "r").clone();
    assert_eq!((known.epoch, &known.phase), (epoch(7), &Phase::Free));
    assert_eq!(known.sinks.keys().cloned().collect::<BTreeSet<_>>(), sinks(&["db", "files"]));
    let changes = world.changes;
    assert_eq!(world.ask(&learn("r", 3, &["db"])), Ok(Reply::Learnt));
    assert_eq!((lease(&world, "r"), world.changes), (&known, changes), "nothing is lowered, and nothing was learnt");
    world.pass(Ttl::MAX.get());
    let b = world.worker("b");
    let wish = world.wish_with(&b, "r", &["db"]);
    assert_eq!(world.ask(&wish), Err(Refusal::NoAdapter { sink: SinkId::new("files").unwrap() }));
    let wish = world.wish_with(&b, "r", &["db", "files"]);
    assert!(matches!(world.ask(&wish), Ok(Reply::Granted(granted)) if granted.token.epoch == epoch(8)));
}

#[test]
fn a_resource_that_only_a_receiver_knows_is_known_again() {
    let mut world = World::new();
    restored(&mut world);
    assert_eq!(world.ask_twice(&learn("lost", 4, &["db"])), Ok(Reply::Learnt));
    assert_eq!(lease(&world, "lost").phase, Phase::Free);
    world.pass(Ttl::MAX.get());
    let a = world.worker("a");
    let wish = world.wish_with(&a, "lost", &["db"]);
    assert!(matches!(world.ask(&wish), Ok(Reply::Granted(granted)) if granted.token.epoch == epoch(5)));
}

#[test]
fn a_holder_of_the_present_incarnation_loses_nothing_by_what_is_taught() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "r");
    let busy = world.ask_twice(&learn("r", 7, &["db"]));
    assert!(matches!(busy, Err(Refusal::Busy { .. })), "{busy:?}");
    assert_eq!(world.ask(&a.check(&token)), Ok(Reply::Stands));
    assert_eq!(world.ask(&learn("r", 1, &[])), Ok(Reply::Learnt), "nothing in it is new");
    world.pass(TTL.get());
    assert!(matches!(world.ask(&learn("r", 7, &["db"])), Err(Refusal::Busy { .. })), "overdue, but not ended");
}

#[test]
fn what_is_done_stays_done_and_what_is_being_retired_gets_the_higher_cut() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "done");
    assert_eq!(world.ask(&a.complete(&token, "ok")), Ok(Reply::Completed));
    let token = world.granted(&a, "gone");
    assert_eq!(world.ask(&super::world::release(&token)), Ok(Reply::Released));
    let mut leaving = lease(&world, "gone").clone();
    leaving.phase = Phase::Retiring { cut: epoch(1), forgotten: sinks(&["db"]) };
    leaving.sinks = sinks(&["db"]).into_iter().map(|sink| (sink, Default::default())).collect();
    world.leases.insert(resource("gone"), leaving);
    restored(&mut world);
    assert_eq!(world.ask_twice(&learn("done", 5, &[])), Ok(Reply::Learnt));
    assert!(matches!(lease(&world, "done").phase, Phase::Completed { .. }));
    assert_eq!(lease(&world, "done").epoch, epoch(5));
    assert_eq!(world.ask_twice(&learn("gone", 5, &["db"])), Ok(Reply::Learnt));
    assert_eq!(lease(&world, "gone").phase, Phase::Retiring { cut: epoch(5), forgotten: BTreeSet::new() });
}

#[test]
fn a_floor_is_learnt_and_never_lowered() {
    let mut world = World::new();
    restored(&mut world);
    let floor = |number| Request::LearnFloor { floor: epoch(number), actor: actor() };
    assert_eq!(world.ask_twice(&floor(9)), Ok(Reply::Learnt));
    assert_eq!(world.ask_twice(&floor(3)), Ok(Reply::Learnt));
    assert_eq!(world.authority.floor, Some(epoch(9)));
    world.pass(Ttl::MAX.get());
    let a = world.worker("a");
    assert_eq!(world.granted(&a, "new").epoch, epoch(10));
}

/// A restored authority had lost the grants of two hundred resources. It was put into quarantine once, rightly; then the
/// first candidate of each of the two hundred met an unknown grant at its receiver, and each put the whole authority into
/// quarantine again and ended everybody's session, for weeks.
#[test]
fn what_one_quarantine_stands_for_does_not_quarantine_again() {
    let mut world = World::new();
    world.grant_known = false;
    restored(&mut world);
    world.pass(Ttl::MAX.get());
    let a = world.worker("a");
    for name in ["one", "two"] {
        let token = world.granted(&a, name);
        let shown = SinkRefusal { epoch: epoch(9), grant: Some(GrantId::from_bits(99)) };
        assert_eq!(world.ask(&Request::Refused { token, shown }), Ok(Reply::Learnt));
        assert_eq!(world.granted(&a, name).epoch, epoch(10));
    }
    assert_eq!(world.authority.incarnation, 2);
    world.pass(EXPLAINED_FOR);
    let b = world.worker("b");
    let token = world.granted(&b, "three");
    let shown = SinkRefusal { epoch: epoch(9), grant: Some(GrantId::from_bits(99)) };
    assert_eq!(world.ask(&Request::Refused { token, shown }), Ok(Reply::Learnt));
    assert_eq!(world.authority.incarnation, 3, "much later it is another loss");
}
