//! A check and a seal at the same moment, on two connections, at each isolation level.
//!
//! The interleavings are those in which usual checks fail on PostgreSQL: a plain SELECT of the fence is stale at every
//! level, an advisory lock alone where the snapshot is older than the lock, and FOR SHARE alone keeps a seal waiting for as long
//! as writers follow each other.

use super::database::{Database, connect, set};
use crate::{id, seal, token};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Token, Verdict};
use tenure_servers::eventually;
use tenure_sink::conformance::{SinkUnderTest, answered};
use tenure_sink::{PostgresFence, PostgresSink, Sink, SinkError};
use tokio_postgres::{Client, IsolationLevel, Transaction};

const LEVELS: [IsolationLevel; 3] =
    [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];

/// A sink that waits long enough not to end anybody here.
fn patient(database: &Database) -> PostgresSink {
    PostgresSink::open(&database.url, id(), Rule::Sealed).unwrap().with_wait(Duration::from_secs(20))
}

fn begun(level: IsolationLevel, work: impl AsyncFnOnce(&Database, Transaction<'_>)) {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut client = database.connect();
    database.runtime.block_on(async {
        let tx = client.build_transaction().isolation_level(level).start().await.unwrap();
        work(&database, tx).await;
    });
    // Whatever happened: the old one is closed out, and the new one is let in.
    assert_eq!(database.write(&token(1), None, "late").unwrap().name(), "stale");
    assert_eq!(database.write(&token(2), None, "new").unwrap(), Verdict::Written);
}

/// Until somebody waits for an advisory lock that another one holds.
async fn somebody_waits(database: &Database) {
    somebody_waits_for(database, "advisory").await;
}

async fn somebody_waits_for(database: &Database, kind: &str) {
    let client = connect(&database.url).await;
    let sql = "SELECT FROM pg_locks l WHERE locktype = $1 AND NOT granted AND database = \
               (SELECT oid FROM pg_database WHERE datname = current_database())";
    loop {
        if !client.query(sql, &[&kind]).await.unwrap().is_empty() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn take_snapshot(tx: &Transaction<'_>) {
    tx.query("SELECT FROM shop", &[]).await.unwrap();
}

/// I10 and I2: what was checked before the seal may commit, and the seal waits for it.
#[test]
fn a_seal_waits_for_what_was_checked_before() {
    for level in LEVELS {
        begun(level, async |database, tx| {
            take_snapshot(&tx).await;
            let _ = PostgresFence::default().admit(&tx, &token(1)).await.unwrap().unwrap();
            let sink = patient(database);
            let sealing = database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2)));
            somebody_waits(database).await;
            assert!(!sealing.is_finished(), "{level:?}: the seal has not waited");
            set(&tx, &token(1).resource, "in time").await.unwrap();
            tx.commit().await.unwrap();
            assert!(matches!(sealing.await.unwrap(), Ok(Sealing::Seal(_))));
        });
    }
}

/// A snapshot that is older than the seal shows the old fence; it must not be believed.
#[test]
fn a_snapshot_from_before_the_seal_admits_nothing() {
    for level in LEVELS {
        begun(level, async |database, tx| {
            take_snapshot(&tx).await;
            let sink = patient(database);
            let sealing = database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2)));
            assert!(matches!(sealing.await.unwrap(), Ok(Sealing::Seal(_))));
            refused(level, &PostgresFence::default().admit(&tx, &token(1)).await);
        });
    }
}

/// The check begins while a seal is under way, waits for it, and finds it.
#[test]
fn a_check_that_waits_for_a_seal_finds_it() {
    for level in LEVELS {
        begun(level, async |database, tx| {
            let mut sealer = connect(&database.url).await;
            let sealing = sealed_in(&mut sealer, &token(2)).await;
            let fence = PostgresFence::default();
            let old = token(1);
            let (checked, ()) = tokio::join!(fence.admit(&tx, &old), async {
                somebody_waits(database).await;
                sealing.commit().await.unwrap();
            });
            refused(level, &checked);
        });
    }
}

/// A seal that was rolled back never was.
#[test]
fn a_check_that_waits_for_a_seal_that_is_rolled_back_goes_on() {
    for level in LEVELS {
        begun(level, async |database, tx| {
            let mut sealer = connect(&database.url).await;
            let sealing = sealed_in(&mut sealer, &token(2)).await;
            let fence = PostgresFence::default();
            let old = token(1);
            let (checked, ()) = tokio::join!(fence.admit(&tx, &old), async {
                somebody_waits(database).await;
                sealing.rollback().await.unwrap();
            });
            assert_eq!(checked.unwrap().unwrap().epoch(), old.epoch, "{level:?}");
            tx.rollback().await.unwrap();
            let sink = patient(database);
            let sealing = database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2)));
            assert!(matches!(sealing.await.unwrap(), Ok(Sealing::Seal(_))));
        });
    }
}

/// Under REPEATABLE READ a reopening is as easily missed as a seal.
#[test]
fn a_snapshot_from_before_a_reopening_admits_nothing() {
    for level in LEVELS {
        begun(level, async |database, tx| {
            take_snapshot(&tx).await;
            let sink = patient(database);
            let reopening = database.runtime.handle().spawn_blocking(move || answered(sink.reopen()));
            reopening.await.unwrap().unwrap();
            let checked = PostgresFence::default().admit(&tx, &token(1)).await;
            assert!(
                matches!(checked, Ok(Err(Verdict::Unsealed)) | Err(SinkError::Repeat { .. })),
                "{level:?}: {checked:?}"
            );
            tx.rollback().await.unwrap();
            let sink = patient(database);
            let sealing = database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2)));
            assert!(matches!(sealing.await.unwrap(), Ok(Sealing::Seal(_))));
        });
    }
}

/// A reopening takes no lock of a resource, so a check that locks no row is seen by it in another way. Whoever has checked may
/// commit first, and whoever checks meanwhile finds it reopened.
#[test]
fn a_reopening_waits_for_what_was_checked_before_and_a_check_for_the_reopening() {
    for level in LEVELS {
        begun(level, async |database, tx| {
            let mut client = connect(&database.url).await;
            let late = client.build_transaction().isolation_level(level).start().await.unwrap();
            take_snapshot(&late).await;
            let _ = PostgresFence::default().admit(&tx, &token(1)).await.unwrap().unwrap();
            let sink = patient(database);
            let mut reopening = database.runtime.handle().spawn_blocking(move || answered(sink.reopen()));
            tokio::select! {
                () = somebody_waits_for(database, "relation") => {}
                reopened = &mut reopening => panic!("{level:?}: the reopening has not waited, {reopened:?}"),
            }
            let (fence, old) = (PostgresFence::default(), token(1));
            let (checked, ()) = tokio::join!(fence.admit(&late, &old), async {
                set(&tx, &old.resource, "in time").await.unwrap();
                tx.commit().await.unwrap();
            });
            reopening.await.unwrap().unwrap();
            assert!(
                matches!(checked, Ok(Err(Verdict::Unsealed)) | Err(SinkError::Repeat { .. })),
                "{level:?}: {checked:?}"
            );
            late.rollback().await.unwrap();
            let sink = patient(database);
            let sealing = database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2)));
            assert!(matches!(sealing.await.unwrap(), Ok(Sealing::Seal(_))));
        });
    }
}

/// Sixteen writers of one resource took twice as long as without a fence: each locked the row, and wrote down who else had it. Where
/// a statement sees what the seal has done, the row is left alone; elsewhere it must not be.
#[test]
fn only_a_check_with_a_snapshot_locks_the_row() {
    for level in LEVELS {
        begun(level, async |database, tx| {
            let _ = PostgresFence::default().admit(&tx, &token(1)).await.unwrap().unwrap();
            let other = connect(&database.url).await;
            let free = other.query_one("SELECT FROM tenure.sink_fence FOR NO KEY UPDATE NOWAIT", &[]).await;
            assert_eq!(free.is_ok(), matches!(level, IsolationLevel::ReadCommitted), "{level:?}: {free:?}");
            tx.rollback().await.unwrap();
            let sink = patient(database);
            let sealing = database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2)));
            assert!(matches!(sealing.await.unwrap(), Ok(Sealing::Seal(_))));
        });
    }
}

/// Eight writers whose transactions overlap without a pause. With the row lock alone the seal waited for seven to
/// twenty-five seconds.
#[test]
fn writers_that_follow_each_other_closely_do_not_hold_a_seal_off() {
    const WRITERS: u32 = 8;
    let database = Database::create(Rule::Sealed);
    let sink = PostgresSink::open(&database.url, id(), Rule::Sealed).unwrap().with_wait(Duration::from_secs(3));
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let written = Arc::new([const { AtomicU32::new(0) }; WRITERS as usize]);
    let writers: Vec<_> = (0..WRITERS as usize)
        .map(|at| {
            let (url, written) = (database.url.clone(), Arc::clone(&written));
            database.runtime.spawn(async move {
                let (mut client, fence) = (connect(&url).await, PostgresFence::default());
                loop {
                    let tx = client.transaction().await.unwrap();
                    match fence.admit(&tx, &token(1)).await.unwrap() {
                        Ok(_) => tx.batch_execute("SELECT pg_sleep(0.02)").await.unwrap(),
                        Err(verdict) => return verdict,
                    }
                    tx.commit().await.unwrap();
                    written[at].fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let all_write = || written.iter().all(|count| count.load(Ordering::Relaxed) > 2).then_some(());
    eventually("all writers write", all_write);
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))), "the seal was held off");
    for writer in writers {
        assert_eq!(database.runtime.block_on(writer).unwrap().name(), "stale");
    }
}

/// A transaction that took its snapshot before a forgetting must not bring the row back under the floor.
#[test]
fn a_snapshot_from_before_a_forgetting_raises_nothing() {
    for level in LEVELS {
        let database = Database::create(Rule::HighWater);
        let mut client = database.connect();
        database.runtime.block_on(async {
            let tx = client.build_transaction().isolation_level(level).start().await.unwrap();
            take_snapshot(&tx).await;
            let (sink, cut) = (database.sink.clone(), token(5));
            let forgetting = move || answered(sink.forget(&cut.resource, cut.epoch)).unwrap();
            let _ = database.runtime.handle().spawn_blocking(forgetting).await.unwrap();
            refused(level, &PostgresFence::default().admit(&tx, &token(5)).await);
        });
    }
}

/// With a snapshot, a forgetting and a reopening did not see the fence that the first seal of a resource made meanwhile. They
/// said that they were done, and its token was admitted all the same.
#[test]
fn a_first_seal_is_missed_by_no_forgetting_and_no_reopening() {
    for (call, verdict) in [("forget('r', 5)", "stale"), ("reopen('why')", "unsealed")] {
        for level in LEVELS {
            let database = Database::create(Rule::Sealed);
            let mut client = database.connect();
            let done = database.runtime.block_on(async {
                let tx = client.build_transaction().isolation_level(level).start().await.unwrap();
                take_snapshot(&tx).await;
                let mut sealer = connect(&database.url).await;
                let sealing = sealed_in(&mut sealer, &token(1)).await;
                let sql = format!("SELECT tenure.{call}");
                let committed = async {
                    // With a snapshot it is refused at once, and waits for nobody.
                    if matches!(level, IsolationLevel::ReadCommitted) {
                        somebody_waits_for(&database, if call.starts_with("forget") { "advisory" } else { "relation" })
                            .await;
                    }
                    sealing.commit().await.unwrap();
                };
                let (done, ()) = tokio::join!(tx.batch_execute(&sql), committed);
                done?;
                tx.commit().await
            });
            match done {
                Ok(()) => assert_eq!(database.write(&token(1), None, "x").unwrap().name(), verdict, "{call} {level:?}"),
                Err(error) => {
                    assert!(!matches!(level, IsolationLevel::ReadCommitted), "{call}: {error:?}");
                    assert!(format!("{error:?}").contains("READ COMMITTED"), "{call}: {error:?}");
                }
            }
        }
    }
}

/// Where transactions have a snapshot unless they say otherwise, the operator's calls say otherwise.
#[test]
fn a_database_that_is_serializable_by_default_is_forgotten_in_and_reopened() {
    let database = Database::create(Rule::Sealed);
    let name = database.url.rsplit('/').next().unwrap();
    database.run(&format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"));
    let database = database.anew();
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    answered(database.sink.reopen()).unwrap();
    assert_eq!(database.write(&token(1), None, "x").unwrap(), Verdict::Unsealed);
    let forgotten = answered(database.sink.forget(&token(5).resource, token(5).epoch)).unwrap();
    assert_eq!(forgotten, Forgetting::Forget { floor: token(5).epoch });
    assert_eq!(database.write(&token(1), None, "x").unwrap().name(), "stale");
}

/// Under the high-water rule a look-up may have waited for an older write that its snapshot does not show.
#[test]
fn under_high_water_a_lookup_with_a_snapshot_is_refused() {
    let database = Database::create(Rule::HighWater);
    let mut client = database.connect();
    database.runtime.block_on(async {
        let tx = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await.unwrap();
        let found = PostgresFence::default().lookup(&tx, &token(1), &crate::operation("one")).await;
        assert!(found.as_ref().is_err_and(|error| error.to_string().contains("READ COMMITTED")), "{found:?}");
    });
}

async fn sealed_in<'c>(client: &'c mut Client, token: &Token) -> Transaction<'c> {
    let tx = client.transaction().await.unwrap();
    let sql = format!(
        "SELECT s.sealing FROM tenure.describe('r') d, tenure.seal('r', {}, '{}', d.generation) s",
        token.epoch, token.grant
    );
    let sealing: String = tx.query_one(&sql, &[]).await.unwrap().get(0);
    assert_eq!(sealing, "sealed");
    tx
}

fn refused<T: std::fmt::Debug>(level: IsolationLevel, checked: &Result<Result<T, Verdict>, SinkError>) {
    match (level, checked) {
        (IsolationLevel::ReadCommitted, Ok(Err(Verdict::Stale { .. }))) => {}
        (IsolationLevel::RepeatableRead | IsolationLevel::Serializable, Err(error @ SinkError::Repeat { .. })) => {
            assert!(error.is_transient());
        }
        _ => panic!("{level:?}: {checked:?}"),
    }
}
