//! Authority, fence and the application's own tables in one SQLite file.

use super::{Holder, RESOURCE, Row, resource, revoke, seal, view_says_what_core_says};
use crate::receivers::id;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure::authority::{Authority, Clock, FileClock, store};
use tenure::core::decide::Request;
use tenure::core::fence::Rule;
use tenure::core::record::{EndReason, Seen};
use tenure::core::{Ending, Over};
use tenure::sink::{SqliteFence, SqliteSink};
use tenure::{HeedError, Loss, Tenure, Token, Ttl, Verdict};

/// One file, and a clock that the test moves.
struct Site(TempDir);

impl Site {
    fn new() -> Self {
        let site = Self(TempDir::new().unwrap());
        site.set_clock(1_000_000_000_000_000);
        site
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("tenure.db")
    }

    fn set_clock(&self, nanos: u64) {
        FileClock::set_millis(self.0.path().join("clock"), nanos / 1_000_000).unwrap();
    }

    fn clock(&self) -> Clock {
        Clock::File(FileClock::open(self.0.path().join("clock")).unwrap())
    }

    fn url(&self) -> String {
        format!("sqlite:{}?create=true", self.path().display())
    }

    fn authority(&self) -> Authority {
        Authority::new(store::connect(&self.url(), self.clock()).unwrap())
    }

    /// In the authority's own file, with a table of the application's beside it.
    fn sink(&self) -> SqliteSink {
        let sink = SqliteSink::create(self.path(), id("shop"), Rule::Held).unwrap();
        Connection::open(self.path()).unwrap().execute_batch("CREATE TABLE IF NOT EXISTS effect (by TEXT)").unwrap();
        sink
    }

    fn write(&self, token: &Token, by: &str) -> Verdict {
        let connection = Connection::open(self.path()).unwrap();
        let tx = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate).unwrap();
        match SqliteFence::new(Rule::Held).admit(&tx, token).unwrap() {
            Ok(_) => {
                tx.execute("INSERT INTO effect VALUES (?1)", [by]).unwrap();
                tx.commit().unwrap();
                Verdict::Written
            }
            Err(verdict) => verdict,
        }
    }

    fn effects(&self) -> Vec<String> {
        let connection = Connection::open(self.path()).unwrap();
        let mut statement = connection.prepare("SELECT by FROM effect ORDER BY rowid").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    fn view(&self) -> Option<Row> {
        let sql = "SELECT epoch, grant_id, owner, since_ns, deadline_ns, ending, ended_ns FROM tenure_held";
        let row = |row: &rusqlite::Row<'_>| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
        };
        Connection::open(self.path()).unwrap().query_row(sql, [], row).optional().unwrap()
    }
}

#[track_caller]
fn over(verdict: Verdict) -> Over {
    match verdict {
        Verdict::Over(over) => over,
        other => panic!("it is over, but the verdict is {other:?}"),
    }
}

#[test]
fn h2_the_view_says_what_core_says_of_every_record() {
    let site = Site::new();
    let authority = site.authority();
    let seen = view_says_what_core_says(&authority, || site.view());
    assert_eq!(
        seen,
        [
            "unknown",
            "stands",
            "free",
            "stands",
            "completed",
            "free",
            "revoked",
            "stands",
            "closed",
            "restored",
            "retiring"
        ]
    );
}

/// The story of the rule: the holder was stopped, its deadline has come, and nobody has taken over. Under `sealed` its late
/// write lands.
#[test]
fn h1_a_late_write_is_refused_before_anybody_takes_over_and_a_renewal_moves_the_deadline() {
    let site = Site::new();
    let (authority, ttl) = (site.authority(), Ttl::DEFAULT);
    let alice = Holder::open(&authority, "alice", ttl);
    let token = alice.acquire(&[]);
    seal(&site.sink(), &token);
    let first = alice.deadline().as_nanos();
    site.set_clock(first - 1_000_000);
    assert_eq!(site.write(&token, "alice"), Verdict::Written);
    alice.ask(&Request::Renew { id: alice.session, n: 0, seen: Seen::default() });
    let second = alice.deadline().as_nanos();
    assert!(second > first);
    site.set_clock(second - 1_000_000);
    assert_eq!(site.write(&token, "alice, renewed"), Verdict::Written);
    site.set_clock(second);
    let refused = over(site.write(&token, "alice, late"));
    assert_eq!(refused.why, Ending::Session(EndReason::Expired));
    assert_eq!((refused.current, refused.ago), (Some(token.epoch), Some(Duration::ZERO)));
    // A renewal that comes at the deadline changes nothing any more.
    assert!(alice.try_ask(&Request::Renew { id: alice.session, n: 1, seen: Seen::default() }).is_err());
    assert!(matches!(site.write(&token, "alice, later"), Verdict::Over(_)));
    assert_eq!(site.effects(), ["alice", "alice, renewed"]);
}

/// One writer has the file: what it has checked before the deadline may commit after it, and the takeover waits for it.
#[test]
fn h1_what_was_checked_before_the_deadline_commits_and_the_takeover_waits_for_it() {
    let site = Site::new();
    let authority = site.authority();
    let alice = Holder::open(&authority, "alice", Ttl::DEFAULT);
    let token = alice.acquire(&[]);
    seal(&site.sink(), &token);
    let bob = Holder::open(&site.authority(), "bob", Ttl::MAX);
    let connection = Connection::open(site.path()).unwrap();
    let tx = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate).unwrap();
    assert!(SqliteFence::new(Rule::Held).admit(&tx, &token).unwrap().is_ok());
    site.set_clock(alice.deadline().as_nanos());
    // Whoever does not want to wait for so long is told for whom.
    let hasty = store::connect(&format!("sqlite:{}?busy_timeout=20ms", site.path().display()), site.clock());
    let said = hasty.err().unwrap().to_string();
    assert!(said.contains(&format!("process {} ", std::process::id())), "{said}");
    let taken = std::thread::scope(|scope| {
        let takeover = scope.spawn(|| {
            let token = bob.acquire(&[]);
            seal(&site.sink(), &token);
            token
        });
        tx.execute("INSERT INTO effect VALUES ('alice')", []).unwrap();
        tx.commit().unwrap();
        takeover.join().unwrap()
    });
    assert_eq!(taken.epoch.get(), 2);
    assert_eq!(site.write(&token, "alice, late").name(), "stale");
    assert_eq!(site.write(&taken, "bob"), Verdict::Written);
    assert_eq!(site.effects(), ["alice", "bob"]);
}

/// With a worker's own library: the receiver is enrolled and sealed like any other, a refusal is a loss, and who comes next
/// writes.
#[tokio::test]
async fn what_is_over_at_the_receiver_is_lost_for_the_worker() {
    let site = Site::new();
    let worker =
        async |name: &str| Tenure::builder().owner(name).clock(site.clock()).connect(&site.url()).await.unwrap();
    let (alice, bob) = (worker("alice").await, worker("bob").await);
    let lease = alice.acquire(RESOURCE).sink(Arc::new(site.sink())).await.unwrap();
    let token = lease.token().clone();
    let record = alice.authority().inspect(&resource()).await.unwrap().view.lease.unwrap();
    assert!(record.sinks[&id("shop")].sealed, "{record:?}");
    assert_eq!(site.write(&token, "alice"), Verdict::Written);
    // The clock stands still, so that no renewal tells the worker.
    tokio::task::spawn_blocking({
        let authority = site.authority();
        move || revoke(&authority)
    })
    .await
    .unwrap();
    assert!(lease.ensure_local().is_ok(), "she has heard of it already");
    let verdict = site.write(&token, "alice, late");
    assert_eq!(over(verdict.clone()).why, Ending::Free);
    // What somebody else's receiver says is not hers.
    assert!(matches!(lease.heed(&id("other"), &verdict).await, Err(HeedError::NotMine { .. })));
    let heeded = lease.heed(&id("shop"), &verdict).await;
    assert!(matches!(&heeded, Err(HeedError::Lost(lost)) if lost.loss == Loss::CheckRefused), "{heeded:?}");
    assert_eq!(lease.ensure_local().unwrap_err().loss, Loss::CheckRefused);
    let next = bob.acquire(RESOURCE).sink(Arc::new(site.sink())).await.unwrap();
    assert_eq!(site.write(next.token(), "bob"), Verdict::Written);
    assert_eq!(site.write(&token, "alice, later").name(), "stale");
    assert_eq!(site.effects(), ["alice", "bob"]);
}
