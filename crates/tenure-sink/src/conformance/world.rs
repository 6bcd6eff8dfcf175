//! What the clauses share: names, tokens, and the steps that a holder takes.

use super::{SetAuthority, SinkUnderTest};
use crate::{Description, SinkError};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Epoch, Generation, GrantId, OperationId, Outcome, ResourceName, SinkId, Token, Verdict};

/// How often a transient error is met with another try.
const TRIES: u32 = 2000;

/// One sink of one clause.
pub(super) struct World {
    pub(super) sut: Box<dyn SinkUnderTest>,
    pub(super) rule: Rule,
}

impl World {
    pub(super) fn new(sut: Box<dyn SinkUnderTest>) -> Self {
        let rule = sut.sink().rule();
        Self { sut, rule }
    }

    /// Does what a takeover does at this sink before it is announced: seals, where the rule has seals.
    #[track_caller]
    pub(super) fn grant(&self, token: &Token) {
        if self.rule.is_sealed() {
            let sealing = self.seal(token);
            assert!(matches!(sealing, Sealing::Seal(_)), "{token} was not sealed: {sealing:?}");
        }
    }

    #[track_caller]
    pub(super) fn seal(&self, token: &Token) -> Sealing {
        self.seal_in(token, &self.describe(&token.resource).generation, &BTreeSet::new())
    }

    /// A seal comes after the grant, which an authority in the same database has written down.
    #[track_caller]
    pub(super) fn seal_in(&self, token: &Token, generation: &Generation, enrolled: &BTreeSet<SinkId>) -> Sealing {
        self.has_granted(token);
        patiently(|| answered(self.sut.sink().seal(token, generation, enrolled)))
    }

    #[track_caller]
    pub(super) fn has_granted(&self, token: &Token) {
        if self.rule == Rule::Held {
            patiently(|| self.authority().grants(token));
        }
    }

    /// The authority in the sink's own database.
    pub(super) fn authority(&self) -> &dyn SetAuthority {
        self.sut.authority().unwrap_or_else(|| unreachable!("a sink under the rule held has an authority beside it"))
    }

    #[track_caller]
    pub(super) fn describe(&self, resource: &ResourceName) -> Description {
        patiently(|| answered(self.sut.sink().describe(resource)))
    }

    #[track_caller]
    pub(super) fn write(&self, token: &Token, value: &str) -> Verdict {
        patiently(|| self.sut.write(token, None, value))
    }

    #[track_caller]
    pub(super) fn apply(&self, token: &Token, operation: &OperationId, value: &str) -> Verdict {
        patiently(|| self.sut.write(token, Some(operation), value))
    }

    #[track_caller]
    pub(super) fn value_is(&self, token: &Token, value: &str) {
        assert_eq!(self.sut.value(&token.resource).as_deref(), Some(value), "the value of {}", token.resource);
    }
}

/// Repeats what is worth repeating. A sink under test that is held up for ever fails here.
#[track_caller]
pub(super) fn patiently<T>(mut call: impl FnMut() -> Result<T, SinkError>) -> T {
    for _ in 0..TRIES {
        match call() {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
    unreachable!("the sink was busy all the time")
}

/// Waits for a future on this thread: sinks need no runtime.
pub fn answered<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}

/// The token of an epoch of the resource `r`, with a grant of its own.
pub(super) fn token(epoch: u64) -> Token {
    of("r", epoch, u128::from(epoch) << 64 | 7)
}

pub(super) fn of(resource: &str, epoch: u64, grant: u128) -> Token {
    let (resource, epoch) = (ResourceName::new(resource), Epoch::new(epoch));
    let (Ok(resource), Ok(epoch)) = (resource, epoch) else { unreachable!("a valid token") };
    Token { resource, epoch, grant: GrantId::from_bits(grant) }
}

pub(super) fn operation(name: &str) -> OperationId {
    OperationId::new(name).unwrap_or_else(|error| unreachable!("{error}"))
}

pub(super) fn sinks(names: &[&str]) -> BTreeSet<SinkId> {
    names.iter().map(|name| SinkId::new(name).unwrap_or_else(|error| unreachable!("{error}"))).collect()
}

pub(super) fn outcome(value: &str) -> Outcome {
    Outcome::new(format!("wrote {value}")).unwrap_or_else(|error| unreachable!("{error}"))
}

pub(super) fn stale(presented: &Token, current: &Token) -> Verdict {
    Verdict::Stale { presented: presented.epoch, current: current.epoch }
}
