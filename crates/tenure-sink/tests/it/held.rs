//! The rule `held` beside an authority in one SQLite file, and where it cannot be.

use crate::authority::InSqlite;
use crate::{id, operation, seal, token};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::operation::Attempt;
use tenure_core::record::EndReason;
use tenure_core::{Ending, Verdict};
use tenure_sink::conformance::{SetAuthority, answered};
use tenure_sink::ledger::{Decision, Intended, Intent, Ledger, Refused, Settled, Which};
use tenure_sink::sqlx::SqlxSqliteFence;
use tenure_sink::{FileSink, RedisFence, SinkError, SqliteFence, SqliteLedger, SqliteSink, digest_of};

struct Shop {
    folder: TempDir,
    authority: InSqlite,
    sink: SqliteSink,
}

impl Shop {
    /// Epoch 1 is granted and sealed.
    fn open() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("tenure.db");
        let authority = InSqlite::create(&path);
        let sink = SqliteSink::create(&path, id(), Rule::Held).unwrap().with_wait(Duration::from_millis(200));
        authority.grants(&token(1)).unwrap();
        assert!(matches!(seal(&sink, &token(1)), Ok(Sealing::Seal(_))));
        Self { folder, authority, sink }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("tenure.db")
    }

    fn run(&self, sql: &str) {
        Connection::open(self.path()).unwrap().execute_batch(sql).unwrap();
    }

    fn check(&self) -> Result<Result<(), Verdict>, SinkError> {
        let mut connection = Connection::open(self.path()).unwrap();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        Ok(SqliteFence::new(Rule::Held).admit(&tx, &token(1))?.map(drop))
    }

    /// The same by sqlx.
    fn check_by_sqlx(&self) -> Result<Result<(), Verdict>, SinkError> {
        use sqlx::{ConnectOptions, Connection};
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.path());
            let mut connection = options.connect().await.unwrap();
            let mut tx = connection.begin_with("BEGIN IMMEDIATE").await.unwrap();
            Ok(SqlxSqliteFence::new(Rule::Held).admit(&mut tx, &token(1)).await?.map(drop))
        })
    }

    /// What both say, which is the same.
    #[track_caller]
    fn error(&self) -> SinkError {
        let (one, other) = (self.check().unwrap_err(), self.check_by_sqlx().unwrap_err());
        assert_eq!(std::mem::discriminant(&one), std::mem::discriminant(&other), "{one:?}, {other:?}");
        one
    }
}

/// A ledger beside such a fence was refused, although it asks the same fence in the same transaction.
#[test]
fn a_ledger_beside_it_takes_what_the_holder_says_until_the_deadline() {
    let shop = Shop::open();
    let mut connection = Connection::open(shop.path()).unwrap();
    SqliteLedger.install(&connection).unwrap();
    let intent = |name: &str| Intent {
        operation: operation(name),
        digest: digest_of(name.as_bytes()),
        system: "bank".parse().unwrap(),
        owner: "alice".parse().unwrap(),
    };
    let mut begin = |name: &str| {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let intended = SqliteLedger.intent(&tx, &token(1), &intent(name)).unwrap();
        tx.commit().unwrap();
        intended
    };
    assert_eq!(begin("one"), Ok(Intended::Written));
    shop.authority.reaches_the_deadline();
    assert!(matches!(begin("two"), Err(Refused::Token(Verdict::Over(_)))));
    let mut connection = Connection::open(shop.path()).unwrap();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let marked = SqliteLedger.sent(tx, &token(1), &operation("one")).unwrap();
    assert!(matches!(marked, Err(Refused::Token(Verdict::Over(_)))), "{marked:?}");
    // The next holder settles it, and a person can look and decide.
    let next = token(2);
    shop.authority.grants(&next).unwrap();
    assert!(matches!(seal(&shop.sink, &next), Ok(Sealing::Seal(_))));
    assert_eq!(answered(shop.sink.settle(&next)).unwrap(), Ok(Settled { unknown: 0, not_applied: 1 }));
    let listed = answered(shop.sink.list(Which::All, None, None, 10)).unwrap();
    assert_eq!(listed.iter().map(|attempt| attempt.state).collect::<Vec<_>>(), [Attempt::NotApplied]);
    let (by, why) = ("op".parse().unwrap(), "as a test".parse().unwrap());
    let decided = answered(shop.sink.decide(&listed[0].key, &Decision::NotApplied, &by, &why)).unwrap();
    assert_eq!(decided, Ok(Attempt::NotApplied));
}

#[test]
fn h1_the_deadline_is_half_open_to_the_last_millisecond() {
    let shop = Shop::open();
    shop.authority.reaches_the_deadline();
    let deadline = shop.authority.now();
    for (millis, admitted) in [(deadline - 1, true), (deadline, false), (deadline + 1, false)] {
        shop.authority.set_clock(millis);
        for judged in [shop.check().unwrap(), shop.check_by_sqlx().unwrap()] {
            match judged {
                Ok(()) => assert!(admitted, "at {millis}, deadline {deadline}"),
                Err(Verdict::Over(over)) => {
                    assert!(!admitted, "at {millis}, deadline {deadline}");
                    assert_eq!(over.why, Ending::Session(EndReason::Expired));
                    assert_eq!(over.ago, Some(Duration::from_millis(millis - deadline)));
                    assert_eq!(over.holder.unwrap().as_str(), "alice");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_grant_of_a_former_incarnation_is_over() {
    let shop = Shop::open();
    shop.run("UPDATE meta SET incarnation = incarnation + 1");
    for judged in [shop.check().unwrap(), shop.check_by_sqlx().unwrap()] {
        let Err(Verdict::Over(over)) = judged else { panic!("{judged:?}") };
        assert_eq!(over.why, Ending::Session(EndReason::Restored));
    }
}

/// An authority that nobody has opened since the machine was started has deadlines of the clock before.
#[test]
fn deadlines_of_another_clock_are_not_compared() {
    let shop = Shop::open();
    for origin in ["of another start", "manual", "file:/not/there"] {
        shop.run(&format!("UPDATE meta SET origin = '{origin}'"));
        let error = shop.error();
        assert!(matches!(error, SinkError::NoAuthority { .. }) && !error.is_transient(), "{error:?}");
        assert!(error.to_string().contains(origin.trim_start_matches("file:")), "{error}");
    }
    // The machine's own clock, which all authorities have but those of tests.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    shop.run(&format!("UPDATE meta SET origin = '{}'; UPDATE session SET deadline_ns = {}", boot.trim(), i64::MAX));
    assert_eq!((shop.check().unwrap(), shop.check_by_sqlx().unwrap()), (Ok(()), Ok(())));
    shop.run("UPDATE session SET deadline_ns = 1");
    assert!(matches!(shop.check().unwrap(), Err(Verdict::Over(_))));
}

#[test]
fn a_file_without_an_authority_is_refused_by_name_and_nothing_is_made_in_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("shop.db");
    let error = SqliteSink::create(&path, id(), Rule::Held).unwrap_err();
    assert!(matches!(error, SinkError::Missing { .. }) && !path.exists(), "{error:?}");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("CREATE TABLE shop (x)").unwrap();
    let opened = SqliteSink::create(&path, id(), Rule::Held).unwrap_err();
    let installed = SqliteFence::new(Rule::Held).install(&connection).unwrap_err();
    for error in [opened, installed] {
        assert!(matches!(error, SinkError::NoAuthority { .. }), "{error:?}");
        let said = error.to_string();
        assert!(said.contains("shop.db") && said.contains("take the rule `sealed`"), "{said}");
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1, "something was made");
    let files = FileSink::create(folder.path().join("files"), id(), Rule::Held).unwrap_err();
    assert!(matches!(files, SinkError::NoAuthority { .. }) && !folder.path().join("files").exists(), "{files:?}");
    let redis = RedisFence::new("shop", Rule::Held).unwrap_err();
    assert!(matches!(redis, SinkError::NoAuthority { .. }), "{redis:?}");
    let redis = tenure_sink::connect("redis://127.0.0.1:1/0?rule=held").unwrap_err();
    assert!(redis.to_string().contains("write sealed or high-water"), "{redis}");
}

#[test]
fn an_authority_that_went_away_closes_the_fence() {
    let shop = Shop::open();
    shop.run("DROP VIEW tenure_held");
    assert!(matches!(shop.error(), SinkError::NoAuthority { .. }));
    let sealed = seal(&shop.sink, &token(2)).unwrap_err();
    assert!(matches!(sealed, SinkError::NoAuthority { .. }), "{sealed:?}");
    let opened = SqliteSink::open(shop.path(), id(), Rule::Held).unwrap_err();
    assert!(matches!(opened, SinkError::NoAuthority { .. }), "{opened:?}");
}

#[test]
fn what_no_authority_says_closes_the_fence() {
    let columns = "resource, epoch, grant_id, owner, since_ns, deadline_ns, ending, ended_ns, origin";
    for (version, said, kind) in [
        (2, columns.to_owned(), "Schema"),
        (1, columns.replace("ending,", "'gone',"), "Corrupt"),
        (1, columns.replace("deadline_ns", "NULL"), "Corrupt"),
        (1, columns.replace("epoch", "0"), "Corrupt"),
        (1, columns.replace("grant_id", "'x'"), "Corrupt"),
        (1, columns.replace("deadline_ns", "-1"), "Corrupt"),
        (1, columns.replace("owner", "''"), "Corrupt"),
    ] {
        let shop = Shop::open();
        shop.run(&format!(
            "CREATE TABLE kept AS SELECT * FROM tenure_held; DROP VIEW tenure_held;
             CREATE VIEW tenure_held (version, {columns}) AS SELECT {version}, {said} FROM kept"
        ));
        let error = shop.error();
        assert!(format!("{error:?}").starts_with(kind), "{said}: {error:?}");
    }
}

/// A writer holds the file, and with it the renewals of its own lease. Whoever waits is told which process that is.
#[test]
fn a_writer_that_holds_off_a_seal_is_named() {
    let shop = Shop::open();
    let connection = Connection::open(shop.path()).unwrap();
    let tx = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate).unwrap();
    let _ = SqliteFence::new(Rule::Held).admit(&tx, &token(1)).unwrap().unwrap();
    let error = seal(&shop.sink, &token(2)).unwrap_err();
    assert!(matches!(error, SinkError::HeldBy { .. }) && error.is_transient(), "{error:?}");
    let named = format!("Process {} ", std::process::id());
    assert!(error.to_string().contains(&named) && error.to_string().contains("200 ms"), "{error}");
    tx.commit().unwrap();
    shop.authority.grants(&token(2)).unwrap();
    assert!(matches!(seal(&shop.sink, &token(2)), Ok(Sealing::Seal(_))));
}
