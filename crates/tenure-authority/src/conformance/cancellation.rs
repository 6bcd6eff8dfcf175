use super::records::{Worker, grant, grant_id, resource};
use super::{Subject, waker};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::task::Context;
use tenure_core::decide::{Keys, Reply, Request};
use tenure_core::record::Event;

/// An acquire is dropped after each number of polls. Whether it was made or not, it is whole, and the same request again
/// gets the one grant.
pub(super) fn a_dropped_request_is_done_or_not_done(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let authority = subject.authority();
    for polls in 0..64 {
        let name = format!("r{polls}");
        let request = Request::Acquire {
            resource: resource(&name),
            grant: grant_id(polls),
            session: worker.session,
            sinks: BTreeSet::new(),
        };
        let finished = drop_after(polls, authority.execute(&request));
        // The same request again. It also waits for a swap of the dropped one that is still under way: of two swaps of
        // one version one is made.
        match worker.ask(&request) {
            Ok(Reply::Granted(granted)) => assert_eq!(granted.token.epoch.get(), 1, "after {polls} polls"),
            other => unreachable!("after {polls} polls: {other:?}"),
        }
        let rows = subject.history();
        let granted = |grant| {
            rows.iter().filter(move |row| row.transition.grant == Some(grant) && row.transition.event == Event::Granted)
        };
        assert_eq!(granted(grant_id(polls)).count(), 1, "after {polls} polls");
        let keys = Keys { session: Some(worker.session), ..Keys::default() };
        let expected = (0..=polls).map(|n| grant(1, n)).collect();
        assert_eq!(subject.read(&keys).view.holdings, expected, "after {polls} polls");
        if finished {
            return;
        }
    }
    unreachable!("an acquire takes fewer polls");
}

/// Polls so often, each time when there is something new, and drops the future. Whether it was ready by then.
fn drop_after(polls: u64, future: impl Future) -> bool {
    let mut future = pin!(future);
    let waker = waker();
    for poll in 0..polls {
        if poll > 0 {
            std::thread::park();
        }
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return true;
        }
    }
    false
}
