use super::world::{TTL, Worker, World, release, resource};
use crate::decide::{Refusal, Reply, Request};
use crate::record::{Phase, SinkMark};
use crate::{Actor, Epoch, Generation, Reason, SinkId, Token};
use alloc::collections::{BTreeMap, BTreeSet};

fn by() -> (Actor, Reason) {
    (Actor::new("op").unwrap(), Reason::new("restored").unwrap())
}

fn sink() -> SinkId {
    SinkId::new("db").unwrap()
}

fn generation(name: &str) -> BTreeMap<SinkId, Generation> {
    BTreeMap::from([(sink(), Generation::new(name).unwrap())])
}

fn reopen(name: &str) -> Request {
    let (actor, reason) = by();
    Request::ReopenSink { resource: resource("r"), sink: SinkId::new(name).unwrap(), actor, reason }
}

fn bind(worker: &Worker, token: &Token, name: &str) -> Request {
    Request::Bind { token: token.clone(), session: worker.session, generations: generation(name) }
}

fn sealed(token: &Token, name: &str) -> Request {
    Request::Sealed { token: token.clone(), generations: generation(name) }
}

fn announce(worker: &Worker, token: &Token) -> Request {
    Request::Announce { token: token.clone(), session: worker.session, excused: BTreeSet::new() }
}

/// Granted with one sink, which is bound and sealed in generation `old`.
fn sealed_once(world: &mut World, worker: &Worker) -> Token {
    let wish = world.wish_with(worker, "r", &["db"]);
    let Ok(Reply::Granted(granted)) = world.ask(&wish) else { panic!("refused") };
    assert_eq!(world.ask(&bind(worker, &granted.token, "old")), Ok(Reply::Bound));
    assert_eq!(world.ask(&sealed(&granted.token, "old")), Ok(Reply::Marked));
    granted.token
}

/// An operator looked, saw a worker that hangs, and typed; meanwhile the next one had taken over.
#[test]
fn a_takeover_from_one_epoch_does_not_hit_the_next_one() {
    let mut world = World::new();
    let a = world.worker("a");
    let seen = world.granted(&a, "r");
    world.pass(TTL.get());
    let b = world.worker("b");
    let next = world.granted(&b, "r");
    let (actor, reason) = by();
    let from = |only| Request::Revoke { resource: resource("r"), only, actor: actor.clone(), reason: reason.clone() };
    let refused = Refusal::NotCurrent { epoch: Some(next.epoch), owner: Some(b.owner.clone()) };
    assert_eq!(world.ask_twice(&from(Some(seen.epoch))), Err(refused));
    assert_eq!(world.ask(&b.check(&next)), Ok(Reply::Stands));
    let revoked = Reply::Revoked { token: next.clone(), owner: b.owner.clone() };
    assert_eq!(world.ask(&from(Some(next.epoch))), Ok(revoked));
    assert_eq!(world.ask(&from(Some(next.epoch))), Err(Refusal::WrongPhase { phase: "free" }));
}

#[test]
fn a_reopened_sink_holds_off_the_announcement_until_it_is_sealed_in_its_new_generation() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = sealed_once(&mut world, &a);
    assert_eq!(world.ask_twice(&reopen("db")), Ok(Reply::SinkReopened));
    let waiting = Err(Refusal::NotAnnounced { waiting: BTreeSet::from([sink()]) });
    assert_eq!(world.ask_twice(&announce(&a, &token)), waiting);
    // The report of the seal before the restore comes late: nothing is bound any more.
    assert_eq!(world.ask_twice(&sealed(&token, "old")), Err(Refusal::NotBound { sink: sink() }));
    assert_eq!(world.ask(&announce(&a, &token)), waiting);
    assert_eq!(world.ask_twice(&bind(&a, &token, "new")), Ok(Reply::Bound));
    assert_eq!(world.ask_twice(&sealed(&token, "old")), Err(Refusal::NotBound { sink: sink() }));
    assert_eq!(world.ask_twice(&sealed(&token, "new")), Ok(Reply::Marked));
    assert_eq!(world.ask_twice(&announce(&a, &token)), Ok(Reply::Announced));
}

#[test]
fn the_holder_of_a_reopened_sink_keeps_the_resource_and_may_complete_it() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = sealed_once(&mut world, &a);
    assert_eq!(world.ask(&announce(&a, &token)), Ok(Reply::Announced));
    assert_eq!(world.ask_twice(&reopen("db")), Ok(Reply::SinkReopened));
    assert_eq!(world.leases[&resource("r")].sinks[&sink()], SinkMark::default());
    assert_eq!(world.ask_twice(&a.check(&token)), Ok(Reply::Stands));
    // It was announced, and a takeover is announced once: nothing older is accepted in a generation without a seal.
    assert_eq!(world.ask_twice(&announce(&a, &token)), Ok(Reply::Announced));
    assert_eq!(world.ask_twice(&a.complete(&token, "done")), Ok(Reply::Completed));
    // Reopening the sink of a completed resource does not open the resource.
    assert_eq!(world.ask_twice(&reopen("db")), Ok(Reply::SinkReopened));
    assert!(matches!(world.leases[&resource("r")].phase, Phase::Completed { .. }));
}

#[test]
fn only_an_enrolled_sink_is_reopened_and_it_forgets_once_more() {
    let mut world = World::new();
    let a = world.worker("a");
    assert_eq!(world.ask_twice(&reopen("db")), Err(Refusal::WrongPhase { phase: "absent" }));
    let token = sealed_once(&mut world, &a);
    let stranger = SinkId::new("files").unwrap();
    assert_eq!(world.ask_twice(&reopen("files")), Err(Refusal::NotEnrolled { sink: stranger }));
    assert_eq!(
        world.ask(&Request::Enrol { token: token.clone(), sinks: BTreeSet::from([SinkId::new("files").unwrap()]) }),
        Ok(Reply::Enrolled)
    );
    assert_eq!(world.ask(&release(&token)), Ok(Reply::Released));
    let retire = Request::Retire { resource: resource("r"), actor: by().0 };
    let cut = Epoch::FIRST;
    let waiting = |names: &[&str]| {
        let waiting = names.iter().map(|name| SinkId::new(name).unwrap()).collect();
        Ok(Reply::Retiring { cut, waiting })
    };
    assert_eq!(world.ask_twice(&retire), waiting(&["db", "files"]));
    let forgotten = Request::Forgotten { resource: resource("r"), cut, sink: sink() };
    assert_eq!(world.ask_twice(&forgotten), waiting(&["files"]));
    // The restore may have brought back the row that was forgotten.
    assert_eq!(world.ask_twice(&reopen("db")), Ok(Reply::SinkReopened));
    assert_eq!(world.ask_twice(&retire), waiting(&["db", "files"]));
}

/// The operator had the sink forget epoch 1; before the record was changed, the next grant was sealed there. Taken out
/// with that seal, the sink would accept this grant for ever, whoever holds later.
#[test]
fn a_sink_is_not_taken_out_with_a_seal_from_after_its_forgetting() {
    let mut world = World::new();
    let a = world.worker("a");
    let first = sealed_once(&mut world, &a);
    assert_eq!(world.ask(&release(&first)), Ok(Reply::Released));
    let second = sealed_once(&mut world, &a);
    let (actor, reason) = by();
    let mut unenrol = |forgotten| {
        let (actor, reason) = (actor.clone(), reason.clone());
        world.ask_twice(&Request::Unenrol { resource: resource("r"), sink: sink(), forgotten, actor, reason })
    };
    assert_eq!(unenrol(Some(first.epoch)), Err(Refusal::OldCut { cut: second.epoch }));
    assert_eq!(unenrol(Some(second.epoch)), Ok(Reply::Unenrolled));
    assert!(world.leases[&resource("r")].sinks.is_empty());
}
