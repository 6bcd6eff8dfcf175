//! What a store can do, and what it says that it cannot.

use super::records::{Worker, grant_id, resource};
use super::{Subject, block_on};
use crate::store::{Hint, Scope, TimeSource, Wake};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

/// What is declared is there, and what is not declared is not.
pub(super) fn capabilities_are_as_declared(subject: &Subject) {
    let declared = subject.store.capabilities();
    assert_eq!(declared, subject.store.capabilities(), "they do not change");
    assert_eq!(subject.store.watch(&resource("r")).is_some(), declared.wakes);
    if declared.clock == TimeSource::Server {
        assert!(declared.scope == Scope::Network && !subject.exact);
    }
}

/// A wake that was made before the look is told of what happens after it, by any hand and through any process. Its last
/// hint never says that a free resource is taken.
pub(super) fn a_watcher_is_told_of_changes(subject: &Subject) {
    let worker = Worker::open_long(&subject.store, 1).expect("a session");
    let mut token = worker.acquire("r", grant_id(1), &[]).expect("a grant").token;
    let Some(mut wake) = subject.store.watch(&resource("r")) else { return };
    // A store may have to connect for it, and tells of that as of a change, whenever it is done: one of the first two times it
    // may stand for the other news.
    told(&mut wake, Duration::from_millis(300));
    for n in 2..5 {
        worker.release(&token).expect("a release");
        told_other_than(Hint::Taken, &mut wake, "the release");
        assert_ne!(told(&mut wake, Duration::from_millis(100)), Some(Hint::Taken), "nobody holds it");
        token = worker.acquire("r", grant_id(n), &[]).expect("a grant").token;
        told_other_than(Hint::Free, &mut wake, "the grant");
        assert_eq!(token.epoch.get(), n);
    }
}

/// Waits for a hint that is not of the state before.
fn told_other_than(before: Hint, wake: &mut Wake, what: &str) {
    loop {
        let hint = told(wake, Duration::from_secs(10));
        assert!(hint.is_some(), "nobody was told of {what}");
        if hint != Some(before) {
            return;
        }
    }
}

/// What the wake was told within the time.
fn told(wake: &mut Wake, within: Duration) -> Option<Hint> {
    std::thread::scope(|scope| {
        let (tell, heard) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        scope.spawn(move || {
            let mut changed = pin!(wake.changed());
            let mut stopped = stopped;
            let hint = block_on(poll_fn(|cx| match changed.as_mut().poll(cx) {
                Poll::Ready(hint) => Poll::Ready(Some(hint)),
                Poll::Pending => Pin::new(&mut stopped).poll(cx).map(|_| None),
            }));
            if let Some(hint) = hint {
                let _ = tell.send(hint);
            }
        });
        let told = heard.recv_timeout(within).ok();
        drop(stop);
        told
    })
}
