//! What production does to a round: lost answers, slow stores, failovers, cuts. Each ends with one writer, and nothing left over.

use crate::site::{Kind, Site};
use crate::worker::Worker;
use serde_json::Value;
use std::time::Duration;
use tenure_servers::{Postgres, Proxy, Redis, Sentinels};
use vector_sync::point::STOP;

const TENANT: &str = "acme";

/// A site with version 1, and other documents for version 2.
fn with_a_version(site: &Site) {
    site.edition(TENANT, "first");
    let first = site.round(TENANT);
    assert_eq!(first["outcome"], "published", "{first}");
    site.edition(TENANT, "second");
}

/// One version is live, of one alias that moved once for each; nothing else is there.
fn is_whole(site: &Site, version: u64) {
    let standing = site.standing(TENANT);
    assert_eq!(
        (&standing["live"]["version"], &standing["live"]["recorded"]),
        (&version.into(), &true.into()),
        "{standing}"
    );
    let moves = standing["moves"].as_array().unwrap();
    assert_eq!(moves.len() as u64, version, "{standing}");
    let epochs: Vec<u64> = moves.iter().map(|moved| moved["by"].as_u64().unwrap()).collect();
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "{standing}");
    let generations = standing["generations"].as_array().unwrap();
    assert!(generations.iter().all(|it| it["state"] == "published"), "{standing}");
    assert_eq!(standing["holder"], Value::Null, "{standing}");
    let found = site.search(TENANT, "edition second page");
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.iter().any(|hit| hit["text"].as_str().unwrap().contains("Edition second")), "{found}");
}

/// The story: the switch was committed, its answer was lost, the worker took that for a failure and built everything again.
#[test]
fn a_switch_whose_answer_is_lost_is_looked_up_and_not_made_again() {
    let server = Postgres::shared_with_vectors();
    let proxy = Proxy::to(server.port());
    let mut site = Site::new(Kind::Postgres);
    with_a_version(&site);
    let direct = std::mem::take(&mut site.index);
    site.index = proxy.url(&direct);
    let mut worker = Worker::start(&site, TENANT, &[], &[(STOP, "before-switch")]);
    worker.is_stopped();
    // Not every text that begins so: the level of isolation does, too.
    proxy.drop_answer_to(b"COMMIT\0");
    worker.wake();
    proxy.wait_lost(1);
    proxy.heal();
    let (said, outcome) = worker.ends();
    assert_eq!(outcome.unwrap()["outcome"], "published", "{said:?}");
    assert!(said.out.contains("the answer to the switch was lost"), "{said:?}");
    site.index = direct;
    is_whole(&site, 2);
}

/// The story: the vector store took three minutes for a batch, the lease of two minutes ran out in the middle, and two workers
/// built the same index.
#[test]
#[expect(clippy::disallowed_methods, reason = "that so much time passes is what is tried")]
fn a_store_that_is_slower_than_the_lease_does_not_lose_it() {
    let server = Postgres::options().vectors().unsynced().start();
    let mut site = Site::new(Kind::Sqlite);
    site.index = server.database();
    with_a_version(&site);
    let mut worker = Worker::start(&site, TENANT, &[], &[(STOP, "written")]);
    worker.is_stopped();
    server.pause();
    worker.wake();
    std::thread::sleep(Duration::from_secs(8));
    server.resume();
    let (said, outcome) = worker.ends();
    assert_eq!(outcome.unwrap()["outcome"], "published", "{said:?}");
    is_whole(&site, 2);
}

/// The story: the vector store went away in the middle of a build; the run said that it had succeeded, with half of the rows.
#[test]
fn a_store_that_goes_away_fails_the_round_and_the_next_one_goes_on() {
    let server = Postgres::options().vectors().unsynced().start();
    let mut site = Site::new(Kind::Sqlite);
    site.index = server.database();
    with_a_version(&site);
    let mut worker = Worker::start(&site, TENANT, &["--patience", "2s"], &[(STOP, "written")]);
    worker.is_stopped();
    server.kill();
    worker.wake();
    let (said, outcome) = worker.ends();
    let outcome = outcome.unwrap();
    assert_eq!(
        (said.status, &outcome["outcome"], &outcome["stage"]),
        (70, &"failed".into(), &"writing".into()),
        "{said:?}"
    );
    assert!(outcome["why"].as_str().unwrap().contains("tried for"), "{outcome}");
    server.restart();
    let next = site.round(TENANT);
    assert_eq!((&next["outcome"], &next["embedded"]), (&"published".into(), &0.into()), "{next}");
    is_whole(&site, 2);
}

/// The story: renewals hung in a stalled connection pool; the work went on, long after somebody else had the lease.
#[test]
fn a_worker_whose_renewals_are_not_answered_is_lost() {
    let redis = Redis::start();
    let mut site = Site::new(Kind::Sqlite);
    site.authority = format!("{}?create=true", redis.url());
    with_a_version(&site);
    let mut worker = Worker::start(&site, TENANT, &[], &[(STOP, "written")]);
    worker.is_stopped();
    redis.pause();
    worker.wake();
    let (said, outcome) = worker.ends();
    redis.resume();
    let outcome = outcome.unwrap();
    assert_eq!(
        (said.status, &outcome["outcome"], &outcome["stage"]),
        (76, &"lost".into(), &"writing".into()),
        "{said:?}"
    );
    assert!(outcome["loss"].is_string(), "{outcome}");
    assert_eq!(site.standing(TENANT)["live"]["version"], 1);
    let next = site.round(TENANT);
    assert_eq!((&next["outcome"], &next["embedded"]), (&"published".into(), &0.into()), "{next}");
    is_whole(&site, 2);
}

/// The story: the worker was cut off from what had granted it the lock, another one took over on the other side, and both wrote.
#[test]
fn a_worker_that_is_cut_off_from_the_authority_publishes_nothing() {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let mut site = Site::new(Kind::Sqlite);
    site.authority = format!("{}?create=true", proxy.url(&redis.url()));
    with_a_version(&site);
    let mut cut_off = Worker::start(&site, TENANT, &[], &[(STOP, "verified")]);
    cut_off.is_stopped();
    proxy.cut();
    site.authority = format!("{}?create=true", redis.url());
    let (said, outcome) = Worker::start(&site, TENANT, &[], &[]).ends();
    assert_eq!(outcome.unwrap()["outcome"], "published", "{said:?}");
    let published = site.standing(TENANT);
    cut_off.wake();
    let (said, outcome) = cut_off.ends();
    // It cannot be told who came after, and says only what it knows.
    assert_eq!((said.status, &outcome.unwrap()["outcome"]), (76, &"lost".into()), "{said:?}");
    assert_eq!(site.standing(TENANT), published);
    is_whole(&site, 2);
}

/// The story: the keeper of the locks failed over to a copy that had not seen the newest one, and two workers had it.
#[test]
fn a_failover_of_the_authority_ends_with_one_writer() {
    let primary = Redis::start();
    let replica = primary.replica();
    let sentinels = Sentinels::start(3, &primary, 2, Duration::from_secs(1), Duration::from_secs(5));
    let mut site = Site::new(Kind::Sqlite);
    let hosts: Vec<String> = sentinels.addrs().iter().map(ToString::to_string).collect();
    site.authority = format!("redis+sentinel://{}/{}?create=true&max_ttl=5s", hosts.join(","), Sentinels::NAME);
    with_a_version(&site);
    let old = sentinels.primary();
    let mut worker = Worker::start(&site, TENANT, &[], &[(STOP, "written")]);
    worker.is_stopped();
    primary.kill();
    let _ = sentinels.wait_for_change(old);
    worker.wake();
    let (said, outcome) = worker.ends();
    let outcome = outcome.unwrap();
    // Either is right: the copy may know of the lease, or not. What is not right is a version that nobody accounts for.
    let ended = outcome["outcome"].as_str().unwrap();
    assert!(["published", "lost", "superseded"].contains(&ended), "{said:?}");
    tenure_servers::eventually("the new primary grants leases", || {
        let outcome = site.round(TENANT);
        ["published", "unchanged"].contains(&outcome["outcome"].as_str().unwrap()).then_some(())
    });
    is_whole(&site, 2);
    drop(replica);
}
