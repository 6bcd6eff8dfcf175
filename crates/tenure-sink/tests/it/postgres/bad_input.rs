//! What no program should send: an error or a verdict, and the fence unmoved.

use super::database::{Database, connect, digest, set};
use crate::{id, operation, seal, token};
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Epoch, Outcome, ResourceName, Token, Verdict};
use tenure_servers::postgres::psql;
use tenure_servers::{Postgres, Proxy};
use tenure_sink::conformance::{SinkUnderTest, answered};
use tenure_sink::{ApplyError, PostgresFence, PostgresSink, Sink, SinkError, connect as sink_at};
use tokio_postgres::Transaction;

fn sealed() -> Database {
    let database = Database::create(Rule::Sealed);
    assert!(matches!(seal(&database.sink, &token(1)), Ok(Sealing::Seal(_))));
    database
}

fn row(database: &Database) -> String {
    psql(&database.url, "SELECT f, n FROM tenure.sink_fence f, tenure.sink_namespace n").unwrap()
}

#[test]
fn what_is_no_token_is_an_error_and_moves_nothing() {
    let database = sealed();
    let (before, grant) = (row(&database), token(1).grant);
    let cases = [
        (format!("tenure.admit('r', 9223372036854775808, '{grant}')"), "does not exist"),
        (format!("tenure.admit('r', 9223372036854775808::bigint, '{grant}')"), "out of range"),
        (format!("tenure.admit('r', 0, '{grant}')"), "no token"),
        (format!("tenure.admit('r', -1, '{grant}')"), "no token"),
        (format!("tenure.admit('r', NULL, '{grant}')"), "no token"),
        (format!("tenure.admit(NULL, 1, '{grant}')"), "no token"),
        (format!("tenure.admit('', 1, '{grant}')"), "no token"),
        (format!("tenure.admit(E'r\\n', 1, '{grant}')"), "no token"),
        (format!("tenure.admit(E'r\\u0085', 1, '{grant}')"), "no token"),
        (format!("tenure.admit(repeat('r', 513), 1, '{grant}')"), "no token"),
        ("tenure.admit('r', 1, NULL)".to_owned(), "no token"),
        ("tenure.admit('r', 1, 'forged')".to_owned(), "invalid input syntax for type uuid"),
        (format!("tenure.admit(E'r\\000', 1, '{grant}')"), "invalid byte sequence"),
        (format!("tenure.seal('r', 0, '{grant}', 'g')"), "no token"),
        (format!("tenure.seal(E'r\\t', 9, '{grant}', 'g')"), "no token"),
        // Each of them was kept, and from then on nobody could read the fence.
        (format!("tenure.seal('r', 9, '{grant}', 'g', ARRAY['shop', NULL])"), "is no name"),
        (format!("tenure.seal('r', 9, '{grant}', 'g', ARRAY[''])"), "is no name"),
        (format!("tenure.seal('r', 9, '{grant}', 'g', ARRAY[E'a\\n'])"), "is no name"),
        (
            format!("tenure.seal('r', 9, '{grant}', (tenure.describe('r')).generation, '{{}}', NULL)"),
            "NULL is no bound",
        ),
        ("tenure.forget('r', 5, NULL)".to_owned(), "NULL is no bound"),
        ("tenure.forget('r', 0)".to_owned(), "a cut of at least 1"),
        ("tenure.forget('', 5)".to_owned(), "a cut of at least 1"),
        (format!("tenure.apply('r', 1, '{grant}', '', sha256(''))"), "no operation id"),
        (format!("tenure.apply('r', 1, '{grant}', NULL, sha256(''))"), "no operation id"),
        (format!("tenure.apply('r', 1, '{grant}', 'op', '\\x00')"), "sink_operation_digest_check"),
        (format!("tenure.apply('r', 1, '{grant}', 'op', NULL)"), "null value in column"),
        (
            format!("tenure.apply('r', 1, '{grant}', 'op', sha256(''), repeat('x', 65537))"),
            "sink_operation_outcome_check",
        ),
        ("tenure.exempt('nobody_at_all', 'x')".to_owned(), "does not exist"),
    ];
    for (call, part) in cases {
        let said = psql(&database.url, &format!("SELECT {call}")).expect_err(&call);
        assert!(said.contains(part), "{call}: {said}");
    }
    // A seal with nothing where a generation is wanted is a verdict.
    let wrong = psql(&database.url, &format!("SELECT sealing FROM tenure.seal('r', 9, '{grant}', NULL)"));
    assert_eq!(wrong.as_deref(), Ok("wrong-generation"));
    assert_eq!(row(&database), before);
    assert_eq!(database.write(&token(1), None, "a").unwrap(), Verdict::Written);
}

#[test]
fn odd_names_are_names() {
    let database = Database::create(Rule::Sealed);
    for name in ["'; DROP TABLE tenure.sink_fence; --", "\\", "$1", "%s", "ü/\"q\"", "ä".repeat(256).as_str()] {
        let odd = Token { resource: ResourceName::new(name).unwrap(), ..token(1) };
        assert!(matches!(seal(&database.sink, &odd), Ok(Sealing::Seal(_))), "{name}");
        assert_eq!(database.write(&odd, Some(&operation(name)), name).unwrap(), Verdict::Written);
        assert_eq!(database.write(&odd, Some(&operation(name)), name).unwrap().name(), "replay");
        assert_eq!(database.write(&odd, Some(&operation(name)), "other").unwrap().name(), "conflict");
    }
}

#[test]
fn the_largest_epoch_is_an_epoch() {
    let database = sealed();
    let largest = Token { epoch: Epoch::new(Epoch::MAX_VALUE).unwrap(), ..token(1) };
    assert_eq!(
        database.write(&largest, None, "x").unwrap(),
        Verdict::Unsealed,
        "shouting a large number moved the fence"
    );
    assert_eq!(database.write(&token(1), None, "a").unwrap(), Verdict::Written);
}

/// It overflowed, and the call ended in a panic.
#[test]
fn the_longest_wait_is_a_wait() {
    let database = sealed();
    let sink = database.sink.with_wait(std::time::Duration::MAX);
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
    answered(sink.reopen()).unwrap();
}

/// PostgreSQL keeps no zero byte: an outcome that holds one is refused, with everything that belongs to it.
#[test]
fn an_outcome_with_a_zero_byte_is_refused_whole() {
    let database = sealed();
    let applied = database.transaction(async |client| {
        let mut tx = client.transaction().await.unwrap();
        let effect = async |tx: &Transaction<'_>| {
            set(tx, &token(1).resource, "half").await.map(|_| Outcome::new("a\0b").unwrap())
        };
        let fence = PostgresFence::default();
        let applied = fence.apply(&mut tx, &token(1), &operation("one"), &digest("x"), effect).await;
        tx.commit().await.unwrap();
        applied
    });
    assert!(matches!(&applied, Err(ApplyError::Sink(error)) if error.to_string().contains("zero byte")), "{applied:?}");
    assert_eq!(database.value(&token(1).resource), None);
}

/// The effect's own statement fails: the transaction goes on without it.
#[test]
fn an_effect_that_fails_in_the_database_leaves_the_transaction_usable() {
    let database = sealed();
    database.transaction(async |client| {
        let mut tx = client.transaction().await.unwrap();
        let fence = PostgresFence::default();
        let effect = async |tx: &Transaction<'_>| {
            set(tx, &token(1).resource, "half").await?;
            tx.batch_execute("SELECT 1 / 0").await.map(|()| Outcome::new("").unwrap())
        };
        let applied = fence.apply(&mut tx, &token(1), &operation("one"), &digest("x"), effect).await;
        assert!(matches!(applied, Err(ApplyError::Effect(_))), "{applied:?}");
        let effect = async |tx: &Transaction<'_>| set(tx, &token(1).resource, "whole").await;
        let applied = fence.apply(&mut tx, &token(1), &operation("two"), &digest("x"), effect).await;
        assert_eq!(applied.unwrap(), Verdict::Written);
        tx.commit().await.unwrap();
    });
    assert_eq!(database.value(&token(1).resource).as_deref(), Some("whole"));
}

/// Dropped in the middle of its effect, an operation leaves nothing that a commit could keep.
#[test]
fn an_apply_that_is_dropped_leaves_nothing() {
    let database = sealed();
    database.transaction(async |client| {
        let mut tx = client.transaction().await.unwrap();
        let (reached, is_reached) = tokio::sync::oneshot::channel();
        let fence = PostgresFence::default();
        let effect = async |tx: &Transaction<'_>| {
            set(tx, &token(1).resource, "half").await.unwrap();
            reached.send(()).unwrap();
            std::future::pending::<Result<Outcome, ()>>().await
        };
        let (first, one, same) = (token(1), operation("one"), digest("x"));
        tokio::select! {
            _ = fence.apply(&mut tx, &first, &one, &same, effect) => panic!("it cannot end"),
            _ = is_reached => {}
        }
        tx.commit().await.unwrap();
    });
    assert_eq!(database.value(&token(1).resource), None);
    assert_eq!(database.lookup(&token(1), &operation("one")).unwrap(), Ok(tenure_sink::Lookup::Absent));
}

#[test]
fn a_transaction_that_has_failed_is_said_to_be_over() {
    let database = sealed();
    database.transaction(async |client| {
        let tx = client.transaction().await.unwrap();
        tx.batch_execute("SELECT 1 / 0").await.unwrap_err();
        let error = PostgresFence::default().admit(&tx, &token(1)).await.map(|verdict| verdict.map(drop)).unwrap_err();
        assert!(matches!(error, SinkError::NoTransaction { .. }), "{error}");
    });
}

#[test]
fn a_read_only_transaction_is_an_error() {
    let database = sealed();
    database.transaction(async |client| {
        let tx = client.build_transaction().read_only(true).start().await.unwrap();
        let error = PostgresFence::default().admit(&tx, &token(1)).await.map(|verdict| verdict.map(drop)).unwrap_err();
        assert!(error.to_string().contains("read-only"), "{error}");
    });
}

/// A sink enrolled under two names is one fence: the second seal of the same token is the same seal.
#[test]
fn one_sink_under_two_names_is_sealed_twice_and_admits_once() {
    let database = sealed();
    let other = sink_at(&format!("{}?id=other", database.url)).unwrap();
    assert_ne!(other.id(), database.sink.id());
    assert!(matches!(seal(&*other, &token(2)), Ok(Sealing::Seal(row)) if row.seal_no == 2));
    assert!(matches!(seal(&database.sink, &token(2)), Ok(Sealing::Seal(row)) if row.seal_no == 3));
    assert_eq!(database.write(&token(1), None, "late").unwrap().name(), "stale");
    assert_eq!(database.write(&token(2), None, "new").unwrap(), Verdict::Written);
}

#[test]
fn an_address_without_a_server_is_transient_and_one_with_a_wrong_name_is_not() {
    let nobody = PostgresSink::open("postgres://postgres@127.0.0.1:1/shop", id(), Rule::Sealed).unwrap();
    let error = answered(nobody.ready()).unwrap_err();
    assert!(matches!(error, SinkError::Unreachable { .. }) && error.is_transient(), "{error}");
    let url = format!("postgres://postgres@127.0.0.1:{}/no_such_database", Postgres::shared().port());
    let error = answered(PostgresSink::create(&url, id(), Rule::Sealed).unwrap().ready()).unwrap_err();
    assert!(matches!(error, SinkError::Missing { .. }), "{error}");
}

/// The answer to a seal is lost, not the seal: it is an error, and sealing again is safe.
#[test]
fn a_lost_answer_is_an_error_and_the_seal_may_be_repeated() {
    let server = Postgres::shared();
    let proxy = Proxy::to(server.port());
    let direct = sealed();
    let url = direct.url.replace(&server.port().to_string(), &proxy.port().to_string());
    let sink = PostgresSink::open(&url, id(), Rule::Sealed).unwrap();
    answered(sink.ready()).unwrap();
    proxy.cut();
    let error = seal(&sink, &token(2)).unwrap_err();
    assert!(error.is_transient(), "{error}");
    proxy.heal();
    assert!(matches!(seal(&sink, &token(2)), Ok(Sealing::Seal(_))));
    direct.runtime.block_on(async { drop(connect(&direct.url).await) });
}
