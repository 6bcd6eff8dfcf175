//! Others hold what a change needs.

use super::{Other, made, recalled, renewal, session, store};
use crate::world::{Worker, grant};
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{AuthorityError, Read, RecallOutcome, StoreError, SwapOutcome};
use tenure_core::Ttl;
use tenure_core::decide::{Change, Request, Swap};
use tenure_core::record::{Event, Transition};
use tenure_servers::{Postgres, eventually};

const LONG: Duration = Duration::from_secs(500);

/// How many wait for a lock in this database.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// A nightly job took the session's row and was slow to commit. The renewal waited for it past the session's deadline, and
/// was granted all the same: the condition on the clock stood in the statement that waited.
#[test]
fn a_renewal_that_waits_for_a_lock_past_its_deadline_is_refused() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(Duration::from_secs(1), Arc::clone(&store), 1, false);
    let (other, watcher) = (Other::at(&database), Other::at(&database));
    other.run("BEGIN; SELECT FROM tenure.session FOR UPDATE");
    let read = session(&store, worker.session);
    let before = read.view.caller.clone().expect("a session");
    assert!(!read.now.reached(&before.deadline), "the machine is too slow for this test");
    let made = std::thread::scope(|scope| {
        let renewing = scope.spawn(|| recalled(&store, renewal(&before, &read)));
        eventually("the renewal waits", || (watcher.number(WAITING) == 1).then_some(()));
        eventually("the deadline passes", || {
            session(&store, worker.session).now.reached(&before.deadline).then_some(())
        });
        other.run("COMMIT");
        renewing.join().expect("no panic")
    });
    assert_eq!(made.expect("an answer"), RecallOutcome::Changed);
    assert_eq!(session(&store, worker.session).view.caller, Some(before), "nothing was renewed");
}

/// The same wait, but it ends in time.
#[test]
fn a_renewal_that_waits_for_a_lock_within_its_deadline_counts_from_its_end() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(Duration::from_secs(60), Arc::clone(&store), 1, false);
    let (other, watcher) = (Other::at(&database), Other::at(&database));
    other.run("BEGIN; SELECT FROM tenure.session FOR UPDATE");
    let read = session(&store, worker.session);
    let before = read.view.caller.clone().expect("a session");
    let (made, released) = std::thread::scope(|scope| {
        let renewing = scope.spawn(|| recalled(&store, renewal(&before, &read)));
        eventually("the renewal waits", || (watcher.number(WAITING) == 1).then_some(()));
        let released = session(&store, worker.session).now;
        other.run("COMMIT");
        (renewing.join().expect("no panic"), released)
    });
    let Ok(RecallOutcome::Done(after)) = made else { panic!("{made:?}") };
    let renewed = session(&store, worker.session).view.caller.expect("a session");
    assert!(after.now.reached(&released));
    assert_eq!(renewed.deadline, after.now.after(before.ttl.get()));
}

/// Somebody looked at a lease in a console, within a transaction, and went home. The resource could not be had, and the
/// error said nothing but "timeout".
#[test]
fn who_is_idle_in_a_transaction_is_named_and_keeps_nobody_else_waiting() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(Ttl::MAX.get().min(Duration::from_secs(500)), Arc::clone(&store), 1, false);
    let token = worker.acquire("r", grant(1));
    let other = Other::at(&format!("{database}?application_name=console"));
    other.run("BEGIN; SELECT FROM tenure.lease WHERE resource = 'r' FOR UPDATE");
    let release = Request::Release { token: token.clone() };
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| worker.ask(&release));
        // Renewals go another way, and reads wait for nobody.
        worker.renew(0).expect("a renewal");
        let answer = releasing.join().expect("no panic");
        let Err(AuthorityError::Store(error @ StoreError::Unavailable(_))) = answer else { panic!("{answer:?}") };
        let said = error.to_string();
        assert!(said.contains("console") && said.contains("idle in transaction"), "{said}");
        assert!(said.contains("pg_terminate_backend") && error.is_transient(), "{said}");
    });
    // What is asked for beside it is not held up for longer than that.
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| worker.ask(&release));
        assert_eq!(worker.acquire("s", grant(2)).epoch.get(), 1);
        assert!(releasing.join().expect("no panic").is_err());
    });
    other.run("ROLLBACK");
    worker.release(&token);
}

/// A backup job held the row of one session. Its end waited for that with the lock of all steps in its hand, and for as long
/// nothing could be granted to anybody. The row of a resource did the same.
#[test]
fn who_waits_for_a_row_keeps_no_other_step_waiting() {
    let database = Postgres::shared().database();
    let (one, two) = (made(&database), made(&database));
    let worker = Worker::open_for(LONG, Arc::clone(&one), 1, false);
    let beside = Worker::open_for(LONG, Arc::clone(&two), 2, false);
    let token = worker.acquire("r", grant(1));
    let (other, watcher) = (Other::at(&database), Other::at(&database));
    let session = format!("session WHERE id = decode('{:032x}', 'hex')", worker.session.bits());
    let steps = [
        ("lease WHERE resource = 'r'".to_owned(), Request::Release { token }),
        (session, Request::Close { id: worker.session }),
    ];
    for (n, (row, step)) in (10..).zip(steps) {
        other.run(&format!("BEGIN; SELECT FROM tenure.{row} FOR UPDATE"));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| worker.ask(&step));
            eventually("it waits for the row", || (watcher.number(WAITING) == 1).then_some(()));
            beside.acquire(&format!("s{n}"), grant(n));
            assert_eq!(watcher.number(WAITING), 1, "it waits still");
            other.run("ROLLBACK");
            waiting.join().expect("no panic").expect("an answer").expect("done");
        });
    }
}

/// Eight sessions are renewed together, and somebody holds the row of one of them. All of them waited for it, twice.
#[test]
fn a_session_that_somebody_holds_keeps_no_other_renewal_waiting() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let workers: Vec<_> = (0..8).map(|n| Worker::open_for(LONG, Arc::clone(&store), n, false)).collect();
    let (other, watcher) = (Other::at(&database), Other::at(&database));
    let held = workers.first().expect("the first of eight").session.bits();
    other.run(&format!("BEGIN; SELECT FROM tenure.session WHERE id = decode('{held:032x}', 'hex') FOR UPDATE"));
    std::thread::scope(|scope| {
        let renewing: Vec<_> = workers.iter().map(|worker| scope.spawn(|| worker.renew(0))).collect();
        let mut renewing = renewing.into_iter();
        let held = renewing.next().expect("the first of eight");
        for renewing in renewing {
            renewing.join().expect("no panic").expect("a renewal");
        }
        eventually("the held one waits", || (watcher.number(WAITING) == 1).then_some(()));
        for worker in workers.iter().skip(1) {
            worker.renew(1).expect("a renewal");
        }
        assert_eq!(watcher.number(WAITING), 1, "it waits still");
        other.run("COMMIT");
        held.join().expect("no panic").expect("a renewal");
    });
}

/// The store's own record was held while a quarantine was to be made. It was made late, counted from its reading: shorter
/// than the sessions that were renewed in the meantime.
#[test]
fn a_quarantine_that_waits_for_too_long_is_not_made() {
    let database = Postgres::shared().database();
    let store = store(&format!("{database}?create=true&max_ttl=4s"));
    let read = super::looked(&store).expect("a new store");
    let (other, watcher) = (Other::at(&database), Other::at(&database));
    other.run("BEGIN; SELECT FROM tenure.meta FOR UPDATE");
    let read = Read { now: super::looked(&store).expect("a read").now, ..read };
    let after = read.view.authority.quarantined(read.view.observed.clone(), read.view.seen(), read.now);
    let transition = Transition {
        at: read.now,
        event: Event::Quarantined,
        resource: None,
        session: None,
        epoch: None,
        grant: None,
        actor: None,
        why: None,
    };
    let swap = Swap { change: Change::Authority(after), relies_on: None, transition };
    let until = swap.made_before().expect("it is bounded");
    let made = std::thread::scope(|scope| {
        let swapping = scope.spawn(|| block_on(store.swap(swap, read.versions.authority)));
        eventually("it waits", || (watcher.number(WAITING) == 1).then_some(()));
        eventually("it is too late", || super::looked(&store).expect("a read").now.reached(&until).then_some(()));
        other.run("COMMIT");
        swapping.join().expect("no panic")
    });
    assert_eq!(made.expect("an answer"), SwapOutcome::Changed);
    assert_eq!(super::looked(&store).expect("a read").view.authority, read.view.authority);
}

/// A long import was at work, and the message said to end it. Only who stands still in a transaction is named for that.
#[test]
fn who_is_at_work_is_not_named_to_be_ended() {
    let database = Postgres::shared().database();
    let store = made(&database);
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    let (other, watcher) = (Other::at(&database), Other::at(&database));
    other.run("BEGIN; SELECT pg_advisory_xact_lock(1415933554, 'tenure.history'::regclass::oid::int)");
    let said = || match worker.ask(&worker.acquiring("r", grant(1))) {
        Err(AuthorityError::Store(error @ StoreError::Unavailable(_))) => error.to_string(),
        answer => panic!("{answer:?}"),
    };
    std::thread::scope(|scope| {
        let working = scope.spawn(|| other.run("SELECT pg_sleep(8)"));
        let sleeps =
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
        eventually("it works", || (watcher.number(sleeps) == 1).then_some(()));
        let at_work = said();
        assert!(!at_work.contains("pg_terminate_backend") && at_work.contains("others"), "{at_work}");
        working.join().expect("no panic");
    });
    let idle = said();
    assert!(idle.contains("pg_terminate_backend"), "{idle}");
    other.run("ROLLBACK");
    worker.acquire("r", grant(1));
}

/// Grants and renewals of one session at the same time, from two processes: nobody waits in a circle.
#[test]
fn grants_and_renewals_of_the_same_sessions_do_not_block_each_other_for_good() {
    let database = Postgres::shared().database();
    let (one, two) = (made(&database), made(&database));
    let workers: Vec<_> =
        (0..4).map(|n| Worker::open_for(Duration::from_secs(500), Arc::clone(&one), n, false)).collect();
    std::thread::scope(|scope| {
        for (n, worker) in (0..).zip(&workers) {
            scope.spawn(move || {
                for cycle in 0..25 {
                    let token = worker.acquire(&format!("r{n}"), grant(n * 100 + cycle));
                    worker.release(&token);
                }
            });
            let store = Arc::clone(&two);
            scope.spawn(move || {
                for seq in 0..25 {
                    let read = session(&store, worker.session);
                    let before = read.view.caller.clone().expect("a session");
                    assert_eq!(before.renew_seq, seq);
                    let made = recalled(&store, renewal(&before, &read)).expect("an answer");
                    assert!(matches!(made, RecallOutcome::Done(_)), "{made:?}");
                }
            });
        }
    });
    let other = Other::at(&database);
    assert_eq!(other.number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"), 0);
    for worker in &workers {
        assert_eq!(session(&one, worker.session).view.holdings, Default::default());
    }
}
