//! Others hold what a change needs.

use super::{Other, made, recalled, renewal, session};
use crate::world::{Worker, grant};
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::{AuthorityError, RecallOutcome, StoreError};
use tenure_core::Ttl;
use tenure_servers::{Postgres, eventually};

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
    let release = tenure_core::decide::Request::Release { token: token.clone() };
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
