//! What the fence costs in a PostgreSQL transaction, and how long a seal takes. Run on demand:
//! `cargo bench -p tenure-sink --bench postgres`. It starts a server of its own, with everything synchronous.
//!
//! Variants take turns, so that a noisy machine is noisy to all of them; what is printed are medians of the rounds' ratios.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Epoch, GrantId, ResourceName, SinkId, Token};
use tenure_servers::Postgres;
use tenure_sink::{PostgresFence, PostgresSink, Sink};
use tokio_postgres::{Client, NoTls, Statement};

const ROUNDS: usize = 40;
const TRANSACTIONS: u32 = 50;
const WRITERS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// BEGIN, UPDATE, COMMIT.
    Bare,
    /// The same with the check as a call of its own.
    Admit,
    /// The check and the UPDATE are sent together.
    Along,
    /// The UPDATE checks by itself.
    Within,
    /// The check is sent along, into a protected table.
    Protected,
}

const VARIANTS: [(Variant, &str); 5] = [
    (Variant::Bare, "bare"),
    (Variant::Admit, "admit, a call of its own"),
    (Variant::Along, "admit, sent along"),
    (Variant::Within, "admit, in the statement"),
    (Variant::Protected, "protected table, sent along"),
];

/// What the rule held adds is the same in all of them.
const HELD: [(Variant, &str); 2] = [(Variant::Bare, "bare"), (Variant::Along, "admit under held, sent along")];

const AUTHORITY: &str = include_str!("../../tenure-authority/src/store/postgres/first.sql");

struct Writer {
    client: Client,
    open: Statement,
    within: Statement,
    guarded: Statement,
    fence: PostgresFence,
    token: Token,
    row: i32,
}

impl Writer {
    async fn connect(url: &str, row: i32) -> Self {
        let client = connected(url).await;
        let open = client.prepare("UPDATE item SET n = n + 1 WHERE id = $1").await.unwrap();
        let within = "UPDATE item SET n = n + 1 WHERE id = $1 AND (SELECT tenure.admit($2, $3, $4::text::uuid)) > 0";
        let within = client.prepare(within).await.unwrap();
        let guarded = client.prepare("UPDATE guarded SET n = n + 1 WHERE id = $1").await.unwrap();
        Self { client, open, within, guarded, fence: PostgresFence::default(), token: token(1), row }
    }

    async fn write(&mut self, variant: Variant) {
        let tx = self.client.transaction().await.unwrap();
        let update = if variant == Variant::Protected { &self.guarded } else { &self.open };
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&self.row];
        let updated = match variant {
            Variant::Bare => tx.execute(update, &parameters).await,
            Variant::Admit => {
                let _ = self.fence.admit(&tx, &self.token).await.unwrap().unwrap();
                tx.execute(update, &parameters).await
            }
            Variant::Within => {
                let (resource, epoch) = (self.token.resource.as_str(), self.token.epoch.as_i64());
                tx.execute(&self.within, &[&self.row, &resource, &epoch, &self.token.grant.to_string()]).await
            }
            Variant::Along | Variant::Protected => {
                let (admitted, updated) =
                    tokio::join!(self.fence.admit(&tx, &self.token), tx.execute(update, &parameters));
                let _ = admitted.unwrap().unwrap();
                updated
            }
        };
        assert_eq!(updated.unwrap(), 1);
        tx.commit().await.unwrap();
    }
}

async fn connected(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

fn token(epoch: u64) -> Token {
    let (resource, epoch) = (ResourceName::new("tenant-7").unwrap(), Epoch::new(epoch).unwrap());
    Token { resource, epoch, grant: GrantId::from_bits(7) }
}

async fn seal(sink: &PostgresSink, token: &Token) {
    let generation = sink.describe(&token.resource).await.unwrap().generation;
    let sealing = sink.seal(token, &generation, &BTreeSet::new()).await.unwrap();
    assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
}

async fn sink(server: &Postgres, rule: Rule) -> (String, PostgresSink) {
    let url = server.database();
    if rule == Rule::Held {
        grant(&url).await;
    }
    let sink = PostgresSink::create(&url, SinkId::new("shop").unwrap(), rule).unwrap();
    sink.ready().await.unwrap();
    seal(&sink, &token(1)).await;
    let client = connected(&url).await;
    let tables = "CREATE TABLE item (id int PRIMARY KEY, tenant text, n int); CREATE TABLE guarded (LIKE item INCLUDING ALL); \
                  INSERT INTO item SELECT g, 'tenant-7', 0 FROM generate_series(0, 63) g; INSERT INTO guarded SELECT * FROM item; \
                  SELECT tenure.protect('guarded', 'tenant')";
    client.batch_execute(tables).await.unwrap();
    (url, sink)
}

/// An authority, at which the first token holds for an hour.
async fn grant(url: &str) {
    let client = connected(url).await;
    let tables = AUTHORITY.replace("{schema}", "tenure").replace("{planning}", "").replace("{planning_one}", "");
    let (id, hour) = (format!("'\\x{}'::bytea", token(1).grant), "3600000000000");
    let sql = format!(
        "CREATE SCHEMA tenure; {}; INSERT INTO tenure.meta VALUES (true, tenure.identity(), 1, NULL, 1, NULL, 1, 0, 0); \
         INSERT INTO tenure.session VALUES ({id}, 'alice', {id}, true, {hour}, tenure.clock_ns() + {hour}, 0, 1, NULL, NULL, 1); \
         INSERT INTO tenure.lease VALUES ('{}', 1, {id}, {id}, 'alice', {id}, 1, 'held', NULL, NULL, NULL, '{{}}', 1, 0, 0)",
        tables.replace("{lock_timeout}", "3s"),
        token(1).resource,
    );
    client.batch_execute(&sql).await.unwrap();
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

async fn one_caller(url: &str, variants: &[(Variant, &str)]) {
    let mut writer = Writer::connect(url, 0).await;
    let mut times = vec![Vec::new(); variants.len()];
    for _ in 0..ROUNDS {
        for ((variant, _), all) in variants.iter().zip(&mut times) {
            let start = Instant::now();
            for _ in 0..TRANSACTIONS {
                writer.write(*variant).await;
            }
            all.push(start.elapsed().as_secs_f64() / f64::from(TRANSACTIONS));
        }
    }
    show("1 writer", variants, &times);
}

async fn many_callers(url: &str) {
    let mut writers = Vec::new();
    for row in 0..WRITERS {
        writers.push(Writer::connect(url, i32::try_from(row).unwrap()).await);
    }
    let mut times = VARIANTS.map(|_| Vec::new());
    for _ in 0..ROUNDS / 2 {
        for ((variant, _), all) in VARIANTS.iter().zip(&mut times) {
            let (start, variant) = (Instant::now(), *variant);
            let tasks: Vec<_> = writers
                .drain(..)
                .map(|mut writer| {
                    tokio::spawn(async move {
                        for _ in 0..TRANSACTIONS {
                            writer.write(variant).await;
                        }
                        writer
                    })
                })
                .collect();
            for task in tasks {
                writers.push(task.await.unwrap());
            }
            all.push(start.elapsed().as_secs_f64() / f64::from(TRANSACTIONS));
        }
    }
    show("16 writers of one resource", &VARIANTS, &times);
}

fn show(what: &str, variants: &[(Variant, &str)], times: &[Vec<f64>]) {
    for ((_, name), all) in variants.iter().zip(times) {
        let ratios = all.iter().zip(&times[0]).map(|(time, bare)| time / bare).collect();
        println!("postgres/{what}/{name}: {:.3} times bare, {:.0} us", median(ratios), median(all.clone()) * 1e6);
    }
}

/// One sink, and ten at once, as a takeover does it.
async fn seals(server: &Postgres) {
    let mut sinks = Vec::new();
    for _ in 0..10 {
        sinks.push(sink(server, Rule::Sealed).await.1);
    }
    bare_pairs(server, sinks.len()).await;
    let (mut one, mut ten) = (Vec::new(), Vec::new());
    for epoch in 2..22 {
        let start = Instant::now();
        seal(&sinks[0], &token(epoch)).await;
        one.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let all: Vec<_> =
            sinks.iter().cloned().map(|sink| tokio::spawn(async move { seal(&sink, &token(epoch)).await })).collect();
        for sealed in all {
            sealed.await.unwrap();
        }
        ten.push(start.elapsed().as_secs_f64());
    }
    let (one, ten) = (median(one), median(ten));
    println!("postgres/seal: one sink {:.2} ms, ten {:.2} ms, {:.2} times", one * 1e3, ten * 1e3, ten / one);
}

async fn pair(writer: &Writer) {
    writer.client.query_typed("SELECT 1", &[]).await.unwrap();
    assert_eq!(writer.client.execute(&writer.open, &[&writer.row]).await.unwrap(), 1);
}

/// The least that a sink can take: a reading and a synced write, without a fence. Ten at once are as many as the sinks, on the same
/// server and the same two cores.
async fn bare_pairs(server: &Postgres, number: usize) {
    let mut writers = Vec::new();
    for _ in 0..number {
        writers.push(Arc::new(Writer::connect(&sink(server, Rule::Sealed).await.0, 0).await));
    }
    let (mut one, mut ten) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        pair(&writers[0]).await;
        one.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let all: Vec<_> =
            writers.iter().cloned().map(|writer| tokio::spawn(async move { pair(&writer).await })).collect();
        for done in all {
            done.await.unwrap();
        }
        ten.push(start.elapsed().as_secs_f64());
    }
    let (one, ten) = (median(one), median(ten));
    println!(
        "postgres/bare reading and write: one {:.2} ms, ten {:.2} ms, {:.2} times",
        one * 1e3,
        ten * 1e3,
        ten / one
    );
}

/// A takeover while eight writers follow each other without a pause.
async fn seal_under_load(url: &str, sink: &PostgresSink) {
    let mut times = Vec::new();
    for epoch in 2..12 {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = Vec::new();
        for row in 0..8 {
            let mut writer = Writer::connect(url, row).await;
            writer.token = token(epoch - 1);
            let stop = Arc::clone(&stop);
            tasks.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let tx = writer.client.transaction().await.unwrap();
                    if writer.fence.admit(&tx, &writer.token).await.unwrap().is_err() {
                        return;
                    }
                    tx.execute(&writer.open, &[&writer.row]).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    tx.commit().await.unwrap();
                }
            }));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let start = Instant::now();
        seal(sink, &token(epoch)).await;
        times.push(start.elapsed().as_secs_f64());
        stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.unwrap();
        }
    }
    let most = times.iter().copied().fold(0.0, f64::max);
    println!(
        "postgres/seal under 8 back-to-back writers of 20 ms: {:.0} ms, at most {:.0} ms",
        median(times) * 1e3,
        most * 1e3
    );
}

fn main() {
    let server = Postgres::options().conf("max_connections = 200").start();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (url, receiver) = sink(&server, Rule::Sealed).await;
        one_caller(&url, &VARIANTS).await;
        one_caller(&sink(&server, Rule::Held).await.0, &HELD).await;
        many_callers(&url).await;
        seal_under_load(&url, &receiver).await;
        seals(&server).await;
    });
}
