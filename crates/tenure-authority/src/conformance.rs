//! The suite that every store passes, and a store that injects faults.
//!
//! ```
//! use std::sync::Arc;
//! use tenure_authority::conformance::{Subject, run_all};
//! use tenure_authority::store::memory::MemoryStore;
//!
//! run_all(&|| Subject::manual(|clock, max_ttl| Arc::new(MemoryStore::new(clock, max_ttl).expect("random bits"))));
//! ```

pub mod faults;

mod cancellation;
mod importing;
mod listing;
mod protocol;
mod quarantine;
mod racing;
mod reading;
mod recalling;
mod records;
mod swapping;
mod watching;

use crate::{Clock, Store};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;
use tenure_core::Ttl;

/// A fresh, empty store for one clause, and how its time passes.
pub struct Subject {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Lets the store's time pass: moves a manual clock, or waits.
    pub pass: Box<dyn Fn(Duration) + Send + Sync>,
    /// Whether time passes only by `pass`, so that the instant of a deadline itself can be met and hours cost nothing.
    pub exact: bool,
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("store", &self.store).field("exact", &self.exact).finish_non_exhaustive()
    }
}

impl Subject {
    /// A store on a manual clock that stands at two hours, with the longest ttl that the suite asks for.
    pub fn manual(make: impl FnOnce(Clock, Ttl) -> Arc<dyn Store>) -> Self {
        let nanos = Arc::new(AtomicU64::new(2 * 3_600_000_000_000));
        let store = make(Clock::Manual(Arc::clone(&nanos)), records::MAX_TTL);
        let pass = move |span: Duration| {
            nanos.fetch_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX), Ordering::AcqRel);
        };
        Self { store, pass: Box::new(pass), exact: true }
    }

    fn pass(&self, span: Duration) {
        (self.pass)(span);
    }
}

/// One clause of the contract, by name.
pub type Clause = (&'static str, fn(&Subject));

macro_rules! clauses {
    ($($module:ident :: $name:ident),* $(,)?) => { &[$((stringify!($name), $module::$name)),*] };
}

/// Every clause of the contract of [`Store`].
pub const CLAUSES: &[Clause] = clauses![
    reading::a_new_store_is_empty_and_has_an_identity,
    reading::what_was_swapped_is_read,
    reading::a_read_is_of_one_moment,
    reading::the_clock_is_read_after_the_records,
    reading::a_grant_that_was_ever_given_is_known,
    swapping::a_swap_is_all_or_nothing,
    swapping::a_changed_version_refuses,
    swapping::no_version_comes_back,
    swapping::an_ended_session_is_not_relied_on,
    swapping::an_overdue_session_still_stands,
    swapping::a_session_of_a_former_incarnation_is_not_relied_on,
    swapping::a_quarantine_that_comes_late_is_decided_anew,
    swapping::holdings_follow_the_grants,
    swapping::a_renewal_and_a_grant_do_not_disturb_each_other,
    swapping::a_renewal_needs_the_session_that_it_relies_on,
    listing::history_is_in_order_and_complete,
    listing::history_is_read_by_resource_and_from_either_end,
    listing::history_tells_when_people_saw_it,
    listing::resources_are_listed_in_pages,
    listing::idle_sessions_come_first_come_first,
    racing::one_resource_gives_each_epoch_once,
    racing::many_resources_do_not_share_epochs,
    racing::one_of_two_swaps_of_one_version_wins,
    protocol::from_opening_to_completion,
    protocol::a_takeover_happens_at_the_deadline,
    protocol::a_repeated_request_gets_the_same_answer,
    protocol::a_late_opening_revives_nothing,
    protocol::a_sweep_ends_and_removes,
    protocol::a_resource_is_retired_and_comes_back_above_the_floor,
    importing::what_was_exported_is_there_and_nobody_holds,
    importing::an_imported_authority_goes_on_above,
    importing::a_store_with_a_history_stays_as_it_is,
    quarantine::another_identity_quarantines,
    quarantine::a_caller_that_has_seen_more_quarantines,
    recalling::a_recalled_swap_is_made_like_another,
    recalling::a_recalled_swap_needs_the_same_store_record,
    recalling::a_recalled_renewal_is_judged_at_the_swap,
    watching::capabilities_are_as_declared,
    watching::a_watcher_is_told_of_changes,
    cancellation::a_dropped_request_is_done_or_not_done,
];

/// Runs every clause, each on a store of its own.
///
/// # Panics
/// At the first clause that the store breaks; the message names it.
pub fn run_all(make: &dyn Fn() -> Subject) {
    for (name, clause) in CLAUSES {
        let broken = Broken(name);
        clause(&make());
        drop(broken);
    }
}

/// Names the clause when it panics.
struct Broken(&'static str);

impl Drop for Broken {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the store breaks the clause `{}`", self.0);
        }
    }
}

/// Waits for a future on this thread, on any store and without a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = waker();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn waker() -> Waker {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    Waker::from(Arc::new(Unpark(std::thread::current())))
}
