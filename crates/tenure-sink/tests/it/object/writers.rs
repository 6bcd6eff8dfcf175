//! Many writers of one resource, in one process and in several.

use super::{Shop, operation, sent, stale, written};
use crate::token;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Replayed, Verdict};
use tenure_servers::S3;
use tenure_sink::Sink;
use tenure_sink::conformance::answered;
use tenure_sink::object::{Fate, Object, ObjectSink};

const WRITERS: usize = 16;

/// Each of them changes the same manifest, and none may undo another's change.
#[test]
fn sixteen_writers_of_one_resource_lose_nothing() {
    let shops = [Shop::in_memory(), Shop::create(super::s3::prefixed(S3::shared()), Rule::Sealed)];
    for shop in shops {
        shop.seal(&token(1));
        let others = [(); 3].map(|()| shop.another());
        let start = Barrier::new(WRITERS);
        std::thread::scope(|scope| {
            for n in 0..WRITERS {
                // Four to a process, as it were.
                let sink = if n % 4 == 0 { &shop.sink } else { &others[n % 4 - 1].sink };
                let start = &start;
                scope.spawn(move || {
                    let order = operation(&format!("order-{n}"), "paid");
                    start.wait();
                    // Twice: the second time it is there already.
                    for _ in 0..2 {
                        let write = sink.write(&token(1)).put(format!("name-{n}"), "paid").once(&order);
                        let fate = sent(write.put("last", format!("{n}"))).unwrap();
                        let replayed = Replayed { epoch: token(1).epoch, outcome: order.outcome.clone() };
                        assert!(
                            [written(), Fate::Judged(Verdict::Replay(replayed))].contains(&fate),
                            "writer {n}: {fate:?}"
                        );
                    }
                });
            }
        });
        for n in 0..WRITERS {
            assert_eq!(shop.value_of(&format!("name-{n}")).as_deref(), Some("paid"), "writer {n}'s change is lost");
        }
        let (_, manifest) = shop.manifest();
        assert_eq!(
            manifest["operations"].as_array().unwrap().len(),
            WRITERS,
            "an operation was recorded twice, or lost"
        );
    }
}

/// The writers of one process never lose a put to each other.
#[test]
fn the_writers_of_one_process_wait_for_each_other() {
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    assert_eq!(shop.put(&token(1), "first"), written());
    let before = wire.asked();
    std::thread::scope(|scope| {
        for n in 0..WRITERS {
            let sink = &shop.sink;
            scope.spawn(move || {
                assert_eq!(sent(sink.write(&token(1)).put(format!("name-{n}"), "x")).unwrap(), written());
            });
        }
    });
    let (puts, _) = wire.asked();
    assert_eq!(puts - before.0, 2 * WRITERS as u64, "an object and a manifest each");
}

/// The writers of one process put one manifest after the other, and one alone does so as well when it uploads nothing. A seal
/// from elsewhere has to read it and to put the next: in a row without a gap it found its version gone each time, for as long
/// as it tried.
#[test]
fn a_seal_gets_in_between_writers_that_do_not_rest() {
    for writers in [8, 1] {
        seal_in_between(writers);
    }
}

fn seal_in_between(writers: usize) {
    let shop = Shop::create(super::s3::prefixed(S3::shared()), Rule::Sealed);
    shop.seal(&token(1));
    let other = shop.another().sink.with_wait(Duration::from_secs(20));
    let (writes, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let started = Barrier::new(writers + 1);
    std::thread::scope(|scope| {
        for n in 0..writers {
            let (sink, writes, is_over, started) = (&shop.sink, &writes, &is_over, &started);
            scope.spawn(move || {
                let mut first = true;
                while !is_over.load(Ordering::Relaxed) {
                    // Taking a name away uploads nothing: put follows on put.
                    match sent(sink.write(&token(1)).remove(format!("name-{n}"))).unwrap() {
                        Fate::Judged(Verdict::Written) => writes.fetch_add(1, Ordering::Relaxed),
                        fate => {
                            assert_eq!(fate, stale(&token(1), &token(2)));
                            return;
                        }
                    };
                    if std::mem::take(&mut first) {
                        started.wait();
                    }
                }
            });
        }
        started.wait();
        let before = writes.load(Ordering::Relaxed);
        let sealed = crate::seal(&other, &token(2));
        let during = writes.load(Ordering::Relaxed) - before;
        is_over.store(sealed.is_err(), Ordering::Relaxed);
        assert!(matches!(sealed, Ok(Sealing::Seal(_))), "after {during} writes: {sealed:?}");
        eprintln!("the seal has waited for {during} writes");
        assert!(during < 400, "the seal has waited for {during} writes");
    });
}

#[test]
fn an_old_writer_that_wakes_uploads_nothing() {
    let (shop, wire) = Shop::wired();
    shop.seal(&token(1));
    assert_eq!(shop.put(&token(1), "first"), written());
    shop.another().seal(&token(2));
    // What this process remembers lets it in; the look before the upload does not, once somebody has told it.
    assert_eq!(shop.put(&token(1), "late"), stale(&token(1), &token(2)));
    let before = wire.asked().0;
    assert_eq!(shop.put(&token(1), "later"), stale(&token(1), &token(2)));
    assert_eq!(wire.asked().0, before, "something was put");
    assert_eq!(shop.value().as_deref(), Some("first"));
}

/// As docs/object-sink.md has it.
#[test]
fn what_each_verb_costs_is_what_the_page_says() {
    let (Shop { store, sink }, wire) = Shop::wired();
    let shop = Shop { store, sink: sink.without_retries() };
    let cost = |name: &str, puts_and_gets: (u64, u64), work: &dyn Fn()| {
        let before = wire.asked();
        work();
        let after = wire.asked();
        assert_eq!((after.0 - before.0, after.1 - before.1), puts_and_gets, "{name}");
    };
    let careful = shop.another();
    let other = shop.another().sink.without_retries();
    let other = Shop { store: Arc::clone(&shop.store), sink: other };
    let generation = answered(shop.sink.describe(&super::resource())).unwrap().generation;
    let seal = || {
        let sealing = answered(shop.sink.seal(&token(1), &generation, &BTreeSet::new())).unwrap();
        assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
    };
    cost("an opening", (4, 1), &|| drop(shop.another()));
    cost("the first seal", (2, 3), &seal);
    cost("a seal", (1, 2), &seal);
    cost("the first write of a process", (2, 2), &|| assert_eq!(other.put(&token(1), "a"), written()));
    cost("a write", (2, 0), &|| assert_eq!(other.put(&token(1), "b"), written()));
    cost("a write by another than the last", (3, 1), &|| assert_eq!(shop.put(&token(1), "c"), written()));
    cost("a name taken away", (1, 0), &|| {
        assert_eq!(sent(shop.sink.write(&token(1)).remove("value")).unwrap(), written());
    });
    let order = operation("order", "x");
    cost("a look-up that finds nothing", (1, 1), &|| {
        let looked = answered(shop.sink.lookup(&token(1), &order.id));
        assert_eq!(looked.unwrap(), Ok(tenure_sink::Lookup::Absent));
    });
    assert_eq!(careful.put(&token(1), "d"), written());
    cost("a write where the store may repeat", (2, 1), &|| assert_eq!(careful.put(&token(1), "e"), written()));
    cost("a reopening", (2, 4), &|| drop(answered(shop.sink.reopen())));
}

/// Changes of several names stand together, also for a reader in between.
#[test]
fn names_of_one_resource_change_together() {
    let shop = Shop::create(Arc::new(InMemory::new()), Rule::Sealed);
    shop.seal(&token(1));
    let other = shop.another();
    // What was replaced lies there still: nobody collects it.
    let content = |object: &Object| {
        let key = other.sink.key_of(&super::resource(), object);
        let body = super::runtime().block_on(async { shop.store.get(&key).await.unwrap().bytes().await.unwrap() });
        String::from_utf8(body.to_vec()).unwrap()
    };
    let mut seen = BTreeSet::new();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..50 {
                let write = shop.sink.write(&token(1)).put("a", format!("{n}")).put("b", format!("{n}"));
                assert_eq!(sent(write).unwrap(), written());
            }
        });
        loop {
            let is_over = writer.is_finished();
            let names = answered(other.sink.names(&super::resource())).unwrap();
            let pair = ["a", "b"].map(|name| names.get(name).map(content));
            assert_eq!(pair[0], pair[1]);
            seen.extend(pair[0].clone());
            if is_over {
                break;
            }
        }
    });
    assert!(seen.contains("49"), "{seen:?}");
}

/// A condition is judged in the step of the write: a counter that many raise loses no turn.
#[test]
fn a_condition_holds_when_the_write_lands() {
    let shop = Shop::in_memory();
    shop.seal(&token(1));
    let raise = |sink: &ObjectSink| loop {
        let (seen, names) = answered(async {
            let names = sink.names(&super::resource()).await.unwrap();
            let content = sink.read(&super::resource(), "count").await.unwrap();
            (content.map_or(0, |content| std::str::from_utf8(&content).unwrap().parse::<u64>().unwrap()), names)
        });
        let expected = names.get("count").cloned();
        let write = sink.write(&token(1)).put("count", format!("{}", seen + 1)).when(move |names| {
            if names.get("count") == expected.as_ref() { Ok(()) } else { Err("somebody has counted".to_owned()) }
        });
        // What was read may be newer than the names, but then the condition fails.
        match sent(write) {
            Ok(fate) => return assert_eq!(fate, written()),
            Err(tenure_sink::ApplyError::Effect(why)) => assert_eq!(why.to_string(), "somebody has counted"),
            Err(error) => panic!("{error}"),
        }
    };
    let others = [(); 2].map(|()| shop.another());
    std::thread::scope(|scope| {
        for other in &others {
            scope.spawn(|| (0..10).for_each(|_| raise(&other.sink)));
        }
    });
    assert_eq!(shop.value_of("count").as_deref(), Some("20"));
}
