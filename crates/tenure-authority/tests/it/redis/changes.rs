//! Changes: those from memory, those that come together, and how one hears of them.

use super::{fresh, granting, made, open, opened, read, transition};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{RecallOutcome, Recalled, Store, SwapOutcome, Version, Wake};
use tenure_core::decide::{Change, Keys, Swap};
use tenure_core::record::{AuthorityRecord, EndReason, Event, Holdings, SessionRecord};
use tenure_core::{Instant, SessionId};
use tenure_servers::{Redis, eventually};

fn recalled(store: &Arc<dyn Store>, recalled: Recalled) -> RecallOutcome {
    block_on(store.swap_recalled(recalled).expect("this store does")).expect("an outcome")
}

fn authority(store: &Arc<dyn Store>) -> (AuthorityRecord, Version) {
    let found = read(store);
    (found.view.authority, found.versions.authority.expect("a version"))
}

fn session(store: &Arc<dyn Store>, id: SessionId) -> (SessionRecord, Version, Holdings) {
    let found = block_on(store.read(&Keys { session: Some(id), ..Keys::default() })).expect("a read");
    (found.view.caller.expect("a session"), found.versions.caller.expect("a version"), found.view.holdings)
}

fn renewal(of: &SessionRecord) -> Swap {
    let renewed = SessionRecord { renew_seq: of.renew_seq + 1, deadline: Instant::from_nanos(7), ..of.clone() };
    let told =
        tenure_core::record::Transition { session: Some(of.id), ..transition(Event::Renewed, Instant::from_nanos(1)) };
    Swap { change: Change::Session(renewed), relies_on: Some(of.id), transition: told }
}

fn session_end(of: &SessionRecord) -> Swap {
    let told =
        tenure_core::record::Transition { session: Some(of.id), ..transition(Event::Ended, Instant::from_nanos(1)) };
    let ended = of.ended(EndReason::Closed, Instant::from_nanos(9));
    Swap { change: Change::Session(ended), relies_on: None, transition: told }
}

#[test]
fn a_renewal_from_memory_is_one_step_with_the_server_s_deadline() {
    let store = made(&Redis::shared().url());
    let (before, version) = opened(&store, 1);
    let (_, own) = authority(&store);
    assert_eq!(block_on(store.swap(granting("r", &before), None)).expect("a grant"), SwapOutcome::Done);
    let asked = Recalled {
        swap: renewal(&before),
        expected: Some(version),
        authority: own,
        valid_before: Some(before.deadline),
    };
    let RecallOutcome::Done(after) = recalled(&store, asked.clone()) else { panic!("nothing has changed") };
    let (found, version, holdings) = session(&store, before.id);
    assert_eq!((version, holdings), (after.version, after.holdings));
    assert_eq!(found.deadline, after.now.after(before.ttl.get()), "whatever the change said");
    assert!(found.deadline > before.deadline);
    assert_eq!((found.renew_seq, after.history), (1, 2));
    assert_eq!(read(&store).view.history, 2, "a renewal has no row");
    assert_eq!(recalled(&store, asked), RecallOutcome::Changed, "its version is another one now");
}

/// Each condition refuses by itself.
#[test]
fn what_is_not_as_remembered_is_not_changed() {
    let store = made(&Redis::shared().url());
    let (before, _) = opened(&store, 1);
    let (record, own) = authority(&store);
    let now = read(&store).now;
    let asked =
        |valid_before, authority| Recalled { swap: granting("r", &before), expected: None, authority, valid_before };
    assert_eq!(recalled(&store, asked(Some(now), own)), RecallOutcome::Changed, "it is not before that any more");
    assert_eq!(recalled(&store, asked(None, Version(own.0 + 1))), RecallOutcome::Changed);
    let quarantined = record.quarantined(record.identity.clone(), Default::default(), now);
    let change = Swap {
        change: Change::Authority(quarantined),
        relies_on: None,
        transition: transition(Event::Quarantined, now),
    };
    assert_eq!(block_on(store.swap(change, Some(own))).expect("a change"), SwapOutcome::Done);
    assert_eq!(recalled(&store, asked(None, own)), RecallOutcome::Changed, "the store's record is another one");
    assert_eq!(read(&store).view.history, 2);
}

/// The ttl is whole to the nanosecond, which Lua's numbers are not.
#[test]
fn a_deadline_is_exact() {
    let store = made(&Redis::shared().url());
    for (n, nanos) in [(1, 0), (2, 1), (3, 999), (4, 1_000), (5, 123_456_789)] {
        let (mut of, version) = opened(&store, n);
        of.ttl = tenure_core::Ttl::new(Duration::from_secs(20) + Duration::from_nanos(nanos)).expect("within bounds");
        let (_, own) = authority(&store);
        let asked = Recalled { swap: renewal(&of), expected: Some(version), authority: own, valid_before: None };
        let RecallOutcome::Done(after) = recalled(&store, asked) else { panic!("nothing has changed") };
        assert_eq!(session(&store, of.id).0.deadline, after.now.after(of.ttl.get()));
    }
}

/// Sixty-four changes that wait together are few scripts, and each is judged alone.
#[test]
fn changes_that_wait_together_share_a_script() {
    let server = Redis::start();
    let store = open(&fresh(&server.url())).expect("an address");
    let (holder, _) = opened(&store, 1);
    let calls = || -> u64 {
        let stats = server.cli(&["info", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")).unwrap_or("0,");
        line.split(',').next().expect("a number").parse().expect("a number")
    };
    assert_eq!(block_on(store.swap(granting(&"r".repeat(5), &holder), None)).expect("a grant"), SwapOutcome::Done);
    let before = calls();
    server.pause();
    let mut waiting: Vec<_> = (1..=64).map(|n| store.swap(granting(&"r".repeat(n), &holder), None)).collect();
    for swapping in &mut waiting {
        assert!(matches!(swapping.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }
    server.resume();
    let outcomes: Vec<_> = waiting.into_iter().map(|swapping| block_on(swapping).expect("an outcome")).collect();
    for (n, outcome) in (1..).zip(&outcomes) {
        assert_eq!(*outcome, if n == 5 { SwapOutcome::Changed } else { SwapOutcome::Done }, "{n}");
    }
    let scripts = calls() - before;
    assert!((1..=4).contains(&scripts), "64 changes took {scripts} scripts");
    assert_eq!(block_on(store.grants(holder.id)).expect("the grants").len(), 64);
}

/// A grant and the end of the session on which it stands were one batch: whoever waited heard that the resource was taken, and
/// nothing after that.
#[test]
fn a_grant_whose_session_ends_in_the_same_batch_is_told_as_free() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let store = open(&url).expect("an address");
    let (holder, version) = opened(&store, 1);
    let channel = format!("{{{}}}:changes", url.rsplit_once("name=").expect("a name").1);
    let mut connection = redis::Client::open(server.url()).expect("an address").get_connection().expect("a connection");
    connection.set_read_timeout(Some(Duration::from_secs(10))).expect("a bound");
    let mut heard = connection.as_pubsub();
    heard.subscribe(&channel).expect("a subscription");
    server.pause();
    // The first one is sent alone; the others wait for its answer.
    let end = session_end(&holder);
    let mut waiting = [
        store.swap(granting("other", &holder), None),
        store.swap(granting("r", &holder), None),
        store.swap(end, Some(version)),
    ];
    for swapping in &mut waiting {
        assert!(matches!(swapping.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }
    server.resume();
    for swapping in waiting {
        assert_eq!(block_on(swapping).expect("an outcome"), SwapOutcome::Done);
    }
    server.cli(&["publish", &channel, "over"]);
    let told = std::iter::from_fn(|| {
        let said: String = heard.get_message().expect("a message").get_payload().expect("a text");
        (said != "over").then_some(said)
    });
    let lines: Vec<_> = told.flat_map(|said| said.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    for name in ["r", "other"] {
        let last = lines.iter().rfind(|line| line[1..] == *name);
        assert_eq!(last, Some(&format!("f{name}")), "{lines:?}");
    }
}

/// What a renewal writes does not depend on what stands on the session.
#[test]
fn a_renewal_writes_as_much_for_a_thousand_leases() {
    let server = Redis::options().appendfsync("always").start();
    let store = open(&fresh(&server.url())).expect("an address");
    let (holder, _) = opened(&store, 1);
    let written = || -> u64 {
        let said = server.cli(&["info", "persistence"]);
        let size = said.lines().find_map(|line| line.strip_prefix("aof_current_size:"));
        size.expect("a figure").trim().parse().expect("a number")
    };
    let renew = || {
        let (of, version, _) = session(&store, holder.id);
        let before = written();
        assert_eq!(block_on(store.swap(renewal(&of), Some(version))).expect("a renewal"), SwapOutcome::Done);
        written() - before
    };
    let one = renew();
    let swaps = (0..1_000).map(|n| store.swap(granting(&format!("{n}{}", "r".repeat(n % 400)), &holder), None));
    for swapping in swaps.collect::<Vec<_>>() {
        assert_eq!(block_on(swapping).expect("a grant"), SwapOutcome::Done);
    }
    let many = renew();
    assert!(one > 100 && many <= one + 64, "{many} {one}");
    assert_eq!(block_on(store.grants(holder.id)).expect("the grants").len(), 1_000);
}

/// A renewal does not touch the list of the living: whoever looks for idle sessions finds it there under a deadline that has
/// passed long since, passes it over, and puts the list right.
#[test]
fn a_renewed_session_is_not_idle() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let store = open(&url).expect("an address");
    let tag = format!("{{{}}}", url.rsplit_once("name=").expect("a name").1);
    let (renewed, other) = (opened(&store, 1), opened(&store, 2));
    let (_, own) = authority(&store);
    let asked = Recalled { swap: renewal(&renewed.0), expected: Some(renewed.1), authority: own, valid_before: None };
    assert!(matches!(recalled(&store, asked), RecallOutcome::Done(_)));
    for id in [renewed.0.id, other.0.id] {
        server.cli(&["zadd", &format!("{tag}:live"), "1", &id.to_string()]);
    }
    // This one is idle by its record.
    let mut over = other.0;
    over.deadline = Instant::from_nanos(2_000);
    let swap = Swap { change: Change::Session(over.clone()), relies_on: None, transition: renewal(&over).transition };
    assert_eq!(block_on(store.swap(swap, Some(other.1))).expect("a change"), SwapOutcome::Done);
    for limit in [1, 100] {
        assert_eq!(block_on(store.idle_sessions(limit)).expect("the idle sessions"), [over.id], "{limit}");
    }
    let score = server.cli(&["zscore", &format!("{tag}:live"), &renewed.0.id.to_string()]);
    let deadline = session(&store, renewed.0.id).0.deadline;
    assert_eq!(score, deadline.as_nanos().div_ceil(1_000).to_string());
}

/// Whether the wake is told within a bound.
fn is_told(mut wake: Wake) -> bool {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        block_on(wake.changed());
        // The test may have given up.
        let _ = tell.send(());
    });
    told.recv_timeout(Duration::from_secs(10)).is_ok()
}

/// One process waits, another changes: a grant, the end of the session it stands on, and what was missed while nobody
/// listened.
#[test]
fn changes_by_another_process_are_heard_of() {
    let server = Redis::start();
    let url = fresh(&server.url());
    let (waits, changes) = (open(&url).expect("an address"), open(&url).expect("an address"));
    let (holder, version) = opened(&changes, 1);
    let watch = |name: &str| waits.watch(&crate::world::resource(name)).expect("this store tells");
    // The first word is that somebody listens from now on.
    assert!(is_told(watch("r")));
    let granted = watch("r");
    assert_eq!(block_on(changes.swap(granting("r", &holder), None)).expect("a grant"), SwapOutcome::Done);
    assert!(is_told(granted));
    let (ended, other) = (watch("r"), watch("other"));
    assert_eq!(block_on(changes.swap(session_end(&holder), Some(version))).expect("an end"), SwapOutcome::Done);
    assert!(is_told(ended));
    let mut other = other;
    let changed = std::pin::pin!(other.changed());
    assert!(changed.poll(&mut Context::from_waker(Waker::noop())).is_pending(), "it was about another resource");
    // The connection of the listener is lost, and comes again.
    let missed = watch("quiet");
    server.cli(&["client", "kill", "type", "pubsub"]);
    assert!(is_told(missed));
    let listeners =
        || server.cli(&["client", "list", "type", "pubsub"]).lines().filter(|line| !line.is_empty()).count();
    assert_eq!(listeners(), 1, "one for the store, whoever waits");
    drop(waits);
    eventually("nobody listens any more", || (listeners() == 0).then_some(()));
}
