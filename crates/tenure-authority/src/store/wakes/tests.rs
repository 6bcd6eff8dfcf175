use super::Wakes;
use crate::store::memory::MemoryStore;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use tenure_core::ResourceName;

fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a name")
}

fn is_told(wake: &mut super::Wake) -> bool {
    pin!(wake.changed()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_change_before_the_waiting_is_not_missed() {
    let wakes = Wakes::default();
    let (mut r, mut s) = (wakes.watch(&resource("r")), wakes.watch(&resource("s")));
    assert!(!is_told(&mut r));
    wakes.tell(&resource("r"));
    assert!(is_told(&mut r));
    assert!(!is_told(&mut r), "one telling counts once");
    assert!(!is_told(&mut s), "it was about another resource");
    wakes.tell_all();
    assert!(is_told(&mut r) && is_told(&mut s));
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
fn a_store_in_memory_tells_of_its_changes() {
    use crate::Store;
    let clock = crate::Clock::Manual(std::sync::Arc::default());
    let store = MemoryStore::new(clock, tenure_core::Ttl::MAX).expect("a store");
    assert!(store.capabilities().wakes && store.watch(&resource("r")).is_some());
}
