use super::{Hint, Wakes};
use crate::store::memory::MemoryStore;
use crate::{Authority, Store};
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tenure_core::decide::{Reply, Request};
use tenure_core::record::{Owner, Seen};
use tenure_core::{GrantId, InstanceId, Instant, OwnerName, ResourceName, SessionId, Ttl};

fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a name")
}

fn told(wake: &mut super::Wake) -> Option<Hint> {
    match pin!(wake.changed()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(hint) => Some(hint),
        Poll::Pending => None,
    }
}

#[test]
fn a_change_before_the_waiting_is_not_missed() {
    let wakes = Wakes::default();
    let (mut r, mut s) = (wakes.watch(&resource("r")), wakes.watch(&resource("s")));
    assert_eq!(told(&mut r), None);
    wakes.tell(&resource("r"), Hint::Free);
    assert_eq!(told(&mut r), Some(Hint::Free));
    assert_eq!(told(&mut r), None, "one telling counts once");
    assert_eq!(told(&mut s), None, "it was about another resource");
    wakes.tell_all();
    assert_eq!((told(&mut r), told(&mut s)), (Some(Hint::Unknown), Some(Hint::Unknown)));
}

#[test]
fn the_newest_hint_counts() {
    let wakes = Wakes::default();
    let mut wake = wakes.watch(&resource("r"));
    wakes.tell(&resource("r"), Hint::Free);
    wakes.tell(&resource("r"), Hint::Taken);
    assert_eq!(told(&mut wake), Some(Hint::Taken));
    assert_eq!(told(&mut wake), None);
}

#[test]
fn a_hint_comes_through_a_message_and_nonsense_says_nothing() {
    for hint in [Hint::Free, Hint::Taken, Hint::Unknown] {
        assert_eq!(Hint::from_code(hint.code()), hint);
    }
    assert_eq!(Hint::from_code("nonsense"), Hint::Unknown);
}

#[test]
fn nothing_is_kept_of_those_who_went() {
    let wakes = Wakes::default();
    let (first, second) = (wakes.watch(&resource("r")), wakes.watch(&resource("r")));
    drop(first);
    assert!(wakes.is_watched(&resource("r")));
    drop(second);
    assert!(!wakes.is_watched(&resource("r")));
}

#[test]
fn a_store_in_memory_tells_what_a_change_leaves_behind() {
    let clock = crate::Clock::Manual(std::sync::Arc::default());
    let store = std::sync::Arc::new(MemoryStore::new(clock, Ttl::MAX).expect("a store"));
    assert!(store.capabilities().wakes);
    let mut wake = store.watch(&resource("r")).expect("it wakes");
    let authority = Authority::new(store);
    let ask = |request| match pin!(authority.execute(&request)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(Ok(reply))) => reply,
        other => panic!("{other:?}"),
    };
    let (session, grant) = (SessionId::from_bits(1), GrantId::from_bits(2));
    let owner = Owner { name: OwnerName::new("a").expect("a name"), instance: InstanceId::from_bits(3) };
    let (asked_at, seen) = (Instant::from_nanos(0), Seen::default());
    ask(Request::Open { id: session, owner, on_this_host: true, ttl: Ttl::DEFAULT, asked_at, seen });
    assert_eq!(told(&mut wake), None, "nothing has happened to the resource");
    let wish = Request::Acquire { resource: resource("r"), grant, session, sinks: [].into() };
    let Reply::Granted(granted) = ask(wish) else { panic!("not granted") };
    assert_eq!(told(&mut wake), Some(Hint::Taken));
    ask(Request::Release { token: granted.token });
    assert_eq!(told(&mut wake), Some(Hint::Free));
}
