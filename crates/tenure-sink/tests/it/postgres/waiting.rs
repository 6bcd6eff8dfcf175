//! A seal and those who hold it up: it is bounded, it ends whoever does nothing, and it says who is left.

use super::database::{Database, Open, connect};
use crate::{id, seal, token};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Generation, GrantId, Token, Verdict};
use tenure_servers::Postgres;
use tenure_sink::conformance::{Held, SinkUnderTest, answered};
use tenure_sink::{PostgresFence, PostgresSink, Sink, SinkError};

/// A real process, stopped inside its transaction, and woken up when everything is over.
#[test]
fn a_stopped_process_does_not_hold_a_seal_off() {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut psql = Command::new("psql")
        .args(["-XAtq", "-d", &database.url])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = psql.stdin.take().unwrap();
    let grant = token(1).grant;
    writeln!(input, "BEGIN; SELECT 'checked' FROM tenure.admit('r', 1, '{grant}');").unwrap();
    let mut said = String::new();
    BufReader::new(psql.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said.trim(), "checked");
    let process = rustix::process::Pid::from_child(&psql);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    let sealed = seal(&database.sink, &token(2));
    assert!(matches!(sealed, Ok(Sealing::Seal(_))), "{sealed:?}");
    assert_eq!(database.write(&token(2), None, "new").unwrap(), Verdict::Written);
    rustix::process::kill_process(process, rustix::process::Signal::CONT).unwrap();
    // It may be gone by now.
    let _ = writeln!(input, "INSERT INTO shop VALUES ('late', 'late'); COMMIT;");
    drop(input);
    let output = psql.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("terminating connection"), "{complaint}");
    assert_eq!(database.value(&tenure_core::ResourceName::new("late").unwrap()), None);
    assert_eq!(database.value(&token(2).resource).as_deref(), Some("new"));
}

/// A session that works is waited for, and named when that takes too long. Nothing is sealed then.
#[test]
fn a_session_that_works_is_named() {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut client = database.connect();
    let (pid, error) = database.runtime.block_on(async {
        client.batch_execute("SET application_name = 'nightly'").await.unwrap();
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        let tx = client.transaction().await.unwrap();
        let _ = PostgresFence::default().admit(&tx, &token(1)).await.unwrap().unwrap();
        let sink = database.sink.clone();
        // One statement that takes longer than the seal waits: between two of them it would be idle.
        let working = tx.batch_execute("SELECT pg_sleep(2)");
        let sealing = async { database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2))).await };
        let (worked, sealed) = tokio::join!(working, sealing);
        worked.unwrap();
        tx.commit().await.unwrap();
        (pid, sealed.unwrap().unwrap_err())
    });
    assert!(error.is_transient(), "{error}");
    assert!(matches!(error, SinkError::HeldBy { .. }), "{error:?}");
    let message = error.to_string();
    for part in
        [&format!("pid {pid} "), "application \"nightly\"", "held by another transaction", "pg_terminate_backend"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert_eq!(database.write(&token(1), None, "goes on").unwrap(), Verdict::Written);
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
}

/// A holder that seals its own token once more (its sink was reopened, or it enrols another one) does not end its own work.
#[test]
fn sealing_the_same_token_ends_nobody() {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let held = Box::new(Open::begin(&database, &token(1)));
    assert!(matches!(seal(&database.sink, &token(1)), Err(SinkError::HeldBy { .. })));
    // Also whoever waits for no time at all is told who it is.
    let error = seal(&database.sink.clone().with_wait(Duration::ZERO), &token(1)).unwrap_err();
    assert!(error.to_string().contains("Held by pid "), "{error}");
    assert_eq!(held.finish("still there"), Ok(Verdict::Written));
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    assert_eq!(database.value(&token(1).resource).as_deref(), Some("still there"));
}

/// Each of these ended the present holder's idle transaction first, and was refused then.
#[test]
fn whoever_is_refused_anyway_ends_nobody() {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
    let held = Box::new(Open::begin(&database, &token(2)));
    let other = Token { grant: GrantId::from_bits(99), ..token(2) };
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Stale { .. })));
    assert!(matches!(seal(&database.sink, &other), Ok(Sealing::Conflict { .. })));
    let elsewhere = Generation::new("of another server").unwrap();
    let sealed = answered(database.sink.seal(&token(3), &elsewhere, &BTreeSet::new()));
    assert!(matches!(sealed, Ok(Sealing::WrongGeneration { .. })), "{sealed:?}");
    let forgotten = answered(database.sink.forget(&token(1).resource, token(1).epoch));
    assert!(matches!(forgotten, Ok(Forgetting::Above { .. })), "{forgotten:?}");
    assert_eq!(held.finish("still there"), Ok(Verdict::Written));
}

/// Two writers whose transactions overlap, each a second and a half long. A seal that gave its place up after each second let
/// in whoever had come since, and found somebody at work for as long as they went on.
#[test]
fn long_transactions_that_overlap_do_not_hold_a_seal_off() {
    let database = Database::create(Rule::Sealed);
    let sink = database.sink.clone().with_wait(Duration::from_secs(6));
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let (begun, has_begun) = std::sync::mpsc::channel();
    let writers = [0.0, 0.75].map(|late| {
        let (url, begun) = (database.url.clone(), begun.clone());
        database.runtime.spawn(async move {
            let (mut client, fence) = (connect(&url).await, PostgresFence::default());
            client.batch_execute(&format!("SELECT pg_sleep({late})")).await.unwrap();
            loop {
                let tx = client.transaction().await.unwrap();
                if let Err(verdict) = fence.admit(&tx, &token(1)).await.unwrap() {
                    return verdict;
                }
                // Nobody listens any more when the seal is made.
                let _ = begun.send(());
                tx.batch_execute("SELECT pg_sleep(1.5)").await.unwrap();
                tx.commit().await.unwrap();
            }
        })
    });
    for _ in 0..2 {
        has_begun.recv().unwrap();
    }
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))), "the seal was held off");
    for writer in writers {
        assert_eq!(database.runtime.block_on(writer).unwrap().name(), "stale");
    }
}

/// A forgetting had the fence and waited for the sink's own row, which a reopening had that waited for the fence.
#[test]
fn a_forgetting_and_a_reopening_do_not_wait_for_each_other() {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let mut client = database.connect();
    database.runtime.block_on(async {
        let tx = client.transaction().await.unwrap();
        tx.batch_execute("SELECT FROM tenure.sink_fence FOR UPDATE").await.unwrap();
        let (one, other, watch) =
            (connect(&database.url).await, connect(&database.url).await, connect(&database.url).await);
        let waiting = async |number: i64| {
            let sql =
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
            while watch.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) < number {
                tokio::task::yield_now().await;
            }
        };
        let (forgotten, reopened, ()) = tokio::join!(
            one.batch_execute("SELECT tenure.forget('r', 5)"),
            async {
                waiting(1).await;
                other.batch_execute("SELECT tenure.reopen('why')").await
            },
            async {
                waiting(2).await;
                tx.commit().await.unwrap();
            }
        );
        forgotten.unwrap();
        reopened.unwrap();
    });
    assert_eq!(database.write(&token(1), None, "late").unwrap().name(), "stale");
}

/// The owner of the sink may see and end only its own sessions: it says so, and what would let it.
#[test]
fn whoever_may_not_end_a_session_says_so() {
    let database = Database::create(Rule::Sealed);
    // Roles belong to the server, which other tests share.
    let name = format!("owner_{}", database.url.rsplit('_').next().unwrap());
    database.run(&format!(
        "CREATE ROLE {name} LOGIN; CREATE SCHEMA own AUTHORIZATION {name}; GRANT CREATE ON DATABASE {} TO {name}",
        database.url.rsplit('/').next().unwrap()
    ));
    let url = format!("{}?schema=own", database.url.replace("postgres@", &format!("{name}@")));
    let sink = PostgresSink::create(&url, id(), Rule::Sealed).unwrap().with_wait(Duration::from_millis(300));
    assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
    let fence = PostgresFence::in_schema("own").unwrap();
    let mut client = database.connect();
    database.runtime.block_on(async {
        let tx = client.transaction().await.unwrap();
        let _ = fence.admit(&tx, &token(1)).await.unwrap().unwrap();
        let sealing = database.runtime.handle().spawn_blocking(move || seal(&sink, &token(2)));
        let message = sealing.await.unwrap().unwrap_err().to_string();
        assert!(message.contains(&format!("GRANT pg_read_all_stats TO {name}")), "{message}");
        tx.commit().await.unwrap();
    });
    // It is cleaned up only here: the server is shared.
    database.run(&format!("DROP OWNED BY {name}; DROP ROLE {name}"));
}

/// It holds its locks without a session that could be ended.
#[test]
fn a_prepared_transaction_is_named() {
    let server = Postgres::options().unsynced().conf("max_prepared_transactions = 5").start();
    let database = Database::at(server.database(), Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    let grant = token(1).grant;
    database.run(&format!("BEGIN; SELECT tenure.admit('r', 1, '{grant}'); PREPARE TRANSACTION 'the ''one'''"));
    let message = seal(&database.sink, &token(2)).unwrap_err().to_string();
    assert!(
        message.contains("the prepared transaction 'the ''one'''") && message.contains("ROLLBACK PREPARED"),
        "{message}"
    );
    database.run("ROLLBACK PREPARED 'the ''one'''");
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
}

/// The server is stopped where it is: the call ends all the same.
#[test]
fn a_server_that_does_not_answer_is_an_error_in_time() {
    let server = Postgres::options().unsynced().start();
    let database = Database::at(server.database(), Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    server.pause();
    let sealed = seal(&database.sink, &token(2));
    server.resume();
    let error = sealed.unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }) && error.is_transient(), "{error}");
    // Connections that were given up are made anew.
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(_))));
    server.restart();
    let again = (0..20).find_map(|_| seal(&database.sink, &token(2)).ok());
    assert!(matches!(again, Some(Sealing::Seal(_))), "{again:?}");
    database.runtime.block_on(async { drop(connect(&database.url).await) });
}
