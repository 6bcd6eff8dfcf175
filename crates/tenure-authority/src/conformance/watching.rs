//! What a store can do, and what it says that it cannot.

use super::records::{Worker, grant_id, resource};
use super::{Subject, block_on};
use crate::store::{Scope, TimeSource};
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

/// A wake that was made before the look is told of what happens after it, by any hand and through any process.
pub(super) fn a_watcher_is_told_of_changes(subject: &Subject) {
    let worker = Worker::open(&subject.store, 1).expect("a session");
    let token = worker.acquire("r", grant_id(1), &[]).expect("a grant").token;
    let Some(mut wake) = subject.store.watch(&resource("r")) else { return };
    // A store may have to connect for it, and tells of that as of a change.
    told(&mut wake, Duration::from_millis(300));
    worker.release(&token).expect("a release");
    assert!(told(&mut wake, Duration::from_secs(10)), "nobody was told of the release");
    told(&mut wake, Duration::from_millis(100));
    let token = worker.acquire("r", grant_id(2), &[]).expect("a grant").token;
    assert!(told(&mut wake, Duration::from_secs(10)), "nobody was told of the grant");
    assert_eq!(token.epoch.get(), 2);
}

/// Whether the wake was told within the time.
fn told(wake: &mut crate::store::Wake, within: Duration) -> bool {
    std::thread::scope(|scope| {
        let (tell, heard) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        scope.spawn(move || {
            let mut changed = pin!(wake.changed());
            let mut stopped = stopped;
            let ended = block_on(poll_fn(|cx| match changed.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(true),
                Poll::Pending => Pin::new(&mut stopped).poll(cx).map(|_| false),
            }));
            if ended {
                let _ = tell.send(());
            }
        });
        let told = heard.recv_timeout(within).is_ok();
        drop(stop);
        told
    })
}
