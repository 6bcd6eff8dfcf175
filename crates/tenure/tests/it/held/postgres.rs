//! Authority, fence and the application's own tables in one PostgreSQL database.

use super::{RESOURCE, Row, revoke, view_says_what_core_says};
use crate::receivers::id;
use std::sync::Arc;
use std::time::Duration;
use tenure::authority::{Authority, Clock, store};
use tenure::core::fence::Rule;
use tenure::sink::{PostgresFence, PostgresSink};
use tenure::{Tenure, Token, Verdict};
use tenure_servers::postgres::psql;
use tenure_servers::{Postgres, eventually};

/// Short, and longer than what a busy machine takes for a round trip.
const TTL: Duration = Duration::from_secs(3);

struct Site {
    url: String,
}

impl Site {
    fn new() -> Self {
        let site = Self { url: Postgres::shared().database() };
        psql(&site.url, "CREATE TABLE effect (n serial, by text)").unwrap();
        site
    }

    fn authority(&self) -> Authority {
        let url = format!("{}?create=true", self.url);
        Authority::new(store::connect(&url, Clock::from_env().unwrap()).unwrap())
    }

    fn sink(&self) -> PostgresSink {
        PostgresSink::create(&self.url, id("shop"), Rule::Held).unwrap()
    }

    async fn worker(&self, name: &str) -> Tenure {
        Tenure::builder().owner(name).connect(&format!("{}?create=true", self.url)).await.unwrap()
    }

    async fn client(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        client
    }

    async fn write(&self, token: &Token, by: &str) -> Verdict {
        let mut client = self.client().await;
        let tx = client.transaction().await.unwrap();
        let checked = PostgresFence::default().admit(&tx, token).await.unwrap().map(drop);
        match checked {
            Ok(()) => {
                tx.execute("INSERT INTO effect (by) VALUES ($1)", &[&by]).await.unwrap();
                tx.commit().await.unwrap();
                Verdict::Written
            }
            Err(verdict) => verdict,
        }
    }

    /// Asks until the answer is this one, past everybody else.
    async fn until(&self, sql: &'static str, answer: &'static str) {
        let url = self.url.clone();
        let asks = move || eventually(sql, || (psql(&url, sql).as_deref() == Ok(answer)).then_some(()));
        tokio::task::spawn_blocking(asks).await.unwrap();
    }

    fn effects(&self) -> String {
        psql(&self.url, "SELECT string_agg(by, ', ' ORDER BY n) FROM effect").unwrap()
    }
}

#[test]
fn h2_the_view_says_what_core_says_of_every_record() {
    let site = Site::new();
    let view = || -> Option<Row> {
        let sql = "SELECT epoch, replace(grant_id::text, '-', ''), owner, since_ns, deadline_ns, ending, ended_ns
                   FROM tenure.held";
        let said = psql(&site.url, sql).unwrap();
        let fields: Vec<&str> = said.split('|').collect();
        let [epoch, grant, owner, since, deadline, ending, ended] = fields[..] else { return None };
        let number = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Some((
            number(epoch)?,
            grant.to_owned(),
            owner.to_owned(),
            number(since)?,
            number(deadline),
            text(ending),
            number(ended),
        ))
    };
    let seen = view_says_what_core_says(&site.authority(), view);
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

/// The story: a check that locked the session's row kept the holder's own renewal waiting, and a transaction that took
/// longer than the ttl was the end of its own lease.
#[tokio::test(flavor = "multi_thread")]
async fn h3_a_transaction_that_outlasts_the_ttl_does_not_hold_up_its_holders_renewals() {
    let site = Site::new();
    let alice = site.worker("alice").await;
    let lease = alice.acquire(RESOURCE).ttl(TTL).sink(Arc::new(site.sink())).await.unwrap();
    let (fence, mut client) = (PostgresFence::default(), site.client().await);
    psql(&site.url, "CREATE TABLE first AS SELECT deadline_ns FROM tenure.held").unwrap();
    let tx = client.transaction().await.unwrap();
    assert!(fence.admit(&tx, lease.token()).await.unwrap().is_ok());
    // Past the deadline that stood when the token was checked, and the grant stands: it was renewed meanwhile.
    site.until("SELECT count(*) FROM tenure.held h, first f WHERE h.now_ns > f.deadline_ns + 1000000000", "1").await;
    assert!(fence.admit(&tx, lease.token()).await.unwrap().is_ok());
    tx.execute("INSERT INTO effect (by) VALUES ('alice')", &[]).await.unwrap();
    tx.commit().await.unwrap();
    assert!(lease.ensure_owned().await.is_ok());
    assert_eq!(site.effects(), "alice");
}

/// The takeover is granted at once, since nothing of the authority is locked, and announced when what was checked before
/// has ended.
#[tokio::test(flavor = "multi_thread")]
async fn h1_what_was_checked_before_commits_and_the_takeover_waits_for_it() {
    let site = Site::new();
    let (alice, bob) = (site.worker("alice").await, site.worker("bob").await);
    let lease = alice.acquire(RESOURCE).sink(Arc::new(site.sink())).await.unwrap();
    let token = lease.token().clone();
    // Alice's transaction works on something that takes as long as the test wants, so that nobody takes it for idle.
    let (mut gate, mut client) = (site.client().await, site.client().await);
    let closed = gate.transaction().await.unwrap();
    closed.batch_execute("SELECT pg_advisory_xact_lock(7)").await.unwrap();
    let checked = token.clone();
    let (told, tells) = tokio::sync::oneshot::channel();
    let working = tokio::spawn(async move {
        let tx = client.transaction().await.unwrap();
        assert!(PostgresFence::default().admit(&tx, &checked).await.unwrap().is_ok());
        told.send(()).unwrap();
        tx.batch_execute("SELECT pg_advisory_xact_lock(7); INSERT INTO effect (by) VALUES ('alice')").await.unwrap();
        tx.commit().await.unwrap();
    });
    tells.await.unwrap();
    let authority = tokio::task::block_in_place(|| site.authority());
    tokio::task::block_in_place(|| revoke(&authority));
    let sink = Arc::new(site.sink().with_wait(Duration::from_secs(30)));
    let takeover = tokio::spawn(bob.acquire(RESOURCE).sink(sink).into_future());
    site.until("SELECT owner || ' ' || epoch FROM tenure.held WHERE ending IS NULL", "bob 2").await;
    site.until(
        "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND mode = 'ExclusiveLock'
         AND objid <> 7 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        "1",
    )
    .await;
    assert!(!takeover.is_finished(), "the takeover went past an open transaction");
    closed.rollback().await.unwrap();
    working.await.unwrap();
    let next = takeover.await.unwrap().unwrap();
    assert_eq!(site.write(&token, "alice, late").await.name(), "stale");
    assert_eq!(site.write(next.token(), "bob").await, Verdict::Written);
    assert_eq!(site.effects(), "alice, bob");
}

/// Between the loss and the takeover: nobody has sealed anything, and the late write is refused all the same.
#[tokio::test(flavor = "multi_thread")]
async fn h2_what_an_operator_took_away_is_refused_before_anybody_takes_over() {
    let site = Site::new();
    let alice = site.worker("alice").await;
    let lease = alice.acquire(RESOURCE).sink(Arc::new(site.sink())).await.unwrap();
    assert_eq!(site.write(lease.token(), "alice").await, Verdict::Written);
    let authority = tokio::task::block_in_place(|| site.authority());
    tokio::task::block_in_place(|| revoke(&authority));
    let refused = site.write(lease.token(), "alice, late").await;
    assert!(matches!(&refused, Verdict::Over(over) if over.why == tenure::core::Ending::Free), "{refused:?}");
    assert!(lease.heed(&id("shop"), &refused).await.is_err());
    assert_eq!(site.effects(), "alice");
}
