use super::world::{TTL, World, release, resource};
use crate::decide::{Refusal, Reply, Request, SinkRefusal};
use crate::record::{EndReason, Phase};
use crate::{Epoch, Generation, GrantId, Outcome, Reason, SinkId, Token};
use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

#[test]
fn the_same_owner_name_again_gets_a_new_epoch_and_its_old_requests_stay_dead() {
    let mut world = World::new();
    let first = world.worker("w");
    let old = world.granted(&first, "r");
    world.pass(TTL.get());
    let second = world.worker("w");
    let new = world.granted(&second, "r");
    assert_eq!(new.epoch, old.epoch.next().unwrap());
    assert!(matches!(world.ask(&first.check(&old)), Err(Refusal::NotCurrent { .. })));
    assert!(matches!(world.ask(&release(&old)), Err(Refusal::NotCurrent { .. })));
    assert!(matches!(world.ask(&first.complete(&old, "x")), Err(Refusal::NotCurrent { .. })));
    assert!(world.ask(&first.renew(0)).is_err());
    // Not even through the new process's session.
    assert!(world.ask(&second.complete(&old, "x")).is_err());
    assert_eq!(world.ask(&second.check(&new)), Ok(Reply::Stands));
}

#[test]
fn completion_after_expiry_is_refused_even_without_a_takeover() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "r");
    world.pass(TTL.get());
    let expired = Refusal::SessionEnded { why: Some(EndReason::Expired) };
    assert_eq!(world.ask_twice(&a.complete(&token, "x")), Err(expired));
    assert_eq!(world.leases[&resource("r")].phase, Phase::Held);
}

#[test]
fn completion_by_the_superseded_is_refused_and_names_the_successor() {
    let mut world = World::new();
    let a = world.worker("a");
    let old = world.granted(&a, "r");
    world.pass(TTL.get());
    let b = world.worker("b");
    let new = world.granted(&b, "r");
    let not_current = Refusal::NotCurrent { epoch: Some(new.epoch), owner: Some(b.owner.clone()) };
    assert_eq!(world.ask(&a.complete(&old, "old")), Err(not_current));
    assert_eq!(world.ask(&b.complete(&new, "new")), Ok(Reply::Completed));
    assert!(matches!(&world.leases[&resource("r")].phase, Phase::Completed { outcome } if outcome.as_str() == "new"));
}

#[test]
fn a_completion_is_repeated_with_the_same_outcome_and_refused_with_another() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "r");
    assert_eq!(world.ask_twice(&a.complete(&token, "x")), Ok(Reply::Completed));
    let other = world.ask(&a.complete(&token, "y"));
    assert!(matches!(other, Err(Refusal::Completed { outcome, .. }) if outcome.as_str() == "x"));
    // After the session's end too: the answer was lost for long.
    world.pass(TTL.get());
    assert_eq!(world.ask(&a.complete(&token, "x")), Ok(Reply::Completed));
    let b = world.worker("b");
    let wish = world.wish(&b, "r");
    assert!(matches!(world.ask_twice(&wish), Err(Refusal::Completed { outcome, .. }) if outcome.as_str() == "x"));
}

#[test]
fn resources_do_not_share_epochs() {
    let mut world = World::new();
    let a = world.worker("a");
    for _ in 0..3 {
        let token = world.granted(&a, "r");
        assert_eq!(world.ask(&release(&token)), Ok(Reply::Released));
    }
    assert_eq!(world.granted(&a, "r").epoch.get(), 4);
    assert_eq!(world.granted(&a, "s").epoch, Epoch::FIRST);
}

#[test]
fn busy_says_who_which_epoch_since_when_and_how_long_still() {
    let mut world = World::new();
    let (a, b) = (world.worker("a"), world.worker("b"));
    world.pass(Duration::from_secs(10));
    let token = world.granted(&a, "r");
    world.pass(Duration::from_secs(20));
    let wish = world.wish(&b, "r");
    let busy = Refusal::Busy {
        owner: a.owner.clone(),
        epoch: token.epoch,
        held_for: Duration::from_secs(20),
        remaining: Duration::from_secs(90),
        sealing: false,
    };
    assert_eq!(world.ask_twice(&wish), Err(busy.clone()));
    let text = alloc::format!("{busy}");
    for part in ["a (", "epoch 1", "20.0 s", "90.0 s"] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

/// Every request of a takeover is sent twice, as after a lost answer.
#[test]
fn a_whole_takeover_survives_lost_answers() {
    let mut world = World::new();
    let a = world.worker("a");
    let (sink, generation) = (SinkId::new("db").unwrap(), Generation::new("g").unwrap());
    let wish = world.wish_with(&a, "r", &["db"]);
    let Ok(Reply::Granted(granted)) = world.ask_twice(&wish) else { panic!("refused") };
    assert!(!granted.announced);
    let token = granted.token;
    let waiting = BTreeSet::from([sink.clone()]);
    assert_eq!(world.ask_twice(&a.check(&token)), Err(Refusal::NotAnnounced { waiting: waiting.clone() }));
    let announce = Request::Announce { token: token.clone(), session: a.session, excused: BTreeSet::new() };
    assert_eq!(world.ask_twice(&announce), Err(Refusal::NotAnnounced { waiting }));
    let generations = BTreeMap::from([(sink.clone(), generation)]);
    let seal = Request::Sealed { token: token.clone(), generations: generations.clone() };
    assert_eq!(world.ask_twice(&seal), Err(Refusal::NotBound { sink }));
    let bind = Request::Bind { token: token.clone(), session: a.session, generations };
    assert_eq!(world.ask_twice(&bind), Ok(Reply::Bound));
    assert_eq!(world.ask_twice(&seal), Ok(Reply::Marked));
    assert_eq!(world.ask_twice(&announce), Ok(Reply::Announced));
    assert_eq!(world.ask_twice(&a.check(&token)), Ok(Reply::Stands));
    let sinks = BTreeSet::from([SinkId::new("files").unwrap()]);
    assert_eq!(world.ask_twice(&Request::Enrol { token: token.clone(), sinks }), Ok(Reply::Enrolled));
    assert_eq!(world.ask_twice(&release(&token)), Ok(Reply::Released));
    // A candidate without an adapter for what was enrolled is refused by name.
    let wish = world.wish_with(&a, "r", &["db"]);
    assert_eq!(world.ask_twice(&wish), Err(Refusal::NoAdapter { sink: SinkId::new("files").unwrap() }));
}

#[test]
fn a_takeover_that_excuses_a_sink_names_it_until_it_is_sealed() {
    let mut world = World::new();
    let a = world.worker("a");
    let ids = ["db", "files", "log"].map(|name| SinkId::new(name).unwrap());
    let [db, files, log] = &ids;
    let wish = world.wish_with(&a, "r", &["db", "files", "log"]);
    let Ok(Reply::Granted(granted)) = world.ask_twice(&wish) else { panic!("refused") };
    let token = granted.token;
    let generations =
        |sinks: &[&SinkId]| sinks.iter().map(|sink| ((*sink).clone(), Generation::new("g").unwrap())).collect();
    let bind =
        |sinks: &[&SinkId]| Request::Bind { token: token.clone(), session: a.session, generations: generations(sinks) };
    let seal = |sinks: &[&SinkId]| Request::Sealed { token: token.clone(), generations: generations(sinks) };
    let announce = |excused: &[&SinkId]| Request::Announce {
        token: token.clone(),
        session: a.session,
        excused: excused.iter().map(|sink| (*sink).clone()).collect(),
    };
    // One is sealed, one only bound, one not even that.
    assert_eq!(world.ask_twice(&bind(&[db, files])), Ok(Reply::Bound));
    assert_eq!(world.ask_twice(&seal(&[db])), Ok(Reply::Marked));
    for named in [&[][..], &[files], &[log], &[db, log]] {
        let waiting = [files, log].into_iter().filter(|sink| !named.contains(sink)).cloned().collect();
        assert_eq!(world.ask_twice(&announce(named)), Err(Refusal::NotAnnounced { waiting }), "{named:?}");
    }
    assert_eq!(world.ask_twice(&announce(&[db, files, log])), Ok(Reply::Announced));
    let excused = |world: &World| world.leases[&token.resource].excused();
    assert_eq!(excused(&world), BTreeSet::from([files.clone(), log.clone()]), "the one that is sealed is not excused");
    assert_eq!(world.why.as_ref().map(Reason::as_str), Some("without files, log"));
    // The same answer again tells which are not sealed, and a bind ends no excuse.
    assert_eq!(world.ask(&bind(&[log])), Ok(Reply::Bound));
    let Ok(Reply::Granted(granted)) = world.ask(&wish) else { panic!("refused") };
    assert!(granted.announced);
    assert_eq!(granted.unsealed, excused(&world));
    assert_eq!(world.ask(&seal(&[log])), Ok(Reply::Marked));
    assert_eq!(world.why.as_ref().map(Reason::as_str), Some("not excused any more: log"));
    assert_eq!(excused(&world), BTreeSet::from([files.clone()]));
    // Whoever reads how it ended learns where it never came to be.
    let mut completed = world.clone();
    let outcome = Outcome::new("done").unwrap();
    let complete = Request::Complete { token: token.clone(), session: a.session, outcome };
    assert_eq!(completed.ask(&complete), Ok(Reply::Completed));
    assert_eq!(completed.why.as_ref().map(Reason::as_str), Some("never sealed: files"));
    assert_eq!(world.ask(&release(&token)), Ok(Reply::Released));
    assert_eq!(world.why.as_ref().map(Reason::as_str), Some("never sealed: files"));
    // The next grant excuses nobody.
    assert!(excused(&world).is_empty());
    let wish = world.wish_with(&a, "r", &["db", "files", "log"]);
    let Ok(Reply::Granted(granted)) = world.ask(&wish) else { panic!("refused") };
    assert_eq!(granted.unsealed, ids.into_iter().collect());
    assert!(excused(&world).is_empty());
}

#[test]
fn a_refusal_by_a_sink_frees_the_grant_and_the_next_epoch_is_above_both() {
    let mut world = World::new();
    let a = world.worker("a");
    let token = world.granted(&a, "r");
    let shown = SinkRefusal { epoch: Epoch::new(7).unwrap(), grant: None };
    // Nobody but the current grant is believed.
    let stranger = Token { grant: GrantId::from_bits(99), ..token.clone() };
    assert!(matches!(world.ask(&Request::Refused { token: stranger, shown }), Err(Refusal::NotCurrent { .. })));
    assert_eq!(world.ask_twice(&Request::Refused { token, shown }), Ok(Reply::Learnt));
    assert_eq!(world.granted(&a, "r").epoch.get(), 8);
}

/// The model brought it up: a grant was given up, and a late duplicate of the request that it came from brought the very
/// same grant back, under another epoch, on a session that nobody looked at any more.
#[test]
fn a_late_duplicate_does_not_bring_back_what_was_given_up() {
    let mut world = World::new();
    let a = world.worker("a");
    let wish = world.wish(&a, "r");
    let Ok(Reply::Granted(granted)) = world.ask(&wish) else { panic!("refused") };
    assert_eq!(world.ask_twice(&release(&granted.token)), Ok(Reply::Released));
    assert!(matches!(world.ask_twice(&wish), Err(Refusal::NotCurrent { owner: None, .. })));
    assert_eq!(world.granted(&a, "r").epoch.get(), 2);
}
