//! What the fence costs in a SQLite transaction. Run on demand: `cargo bench -p tenure-sink`.
//!
//! First the ratios, from rounds in which the variants take turns, so that a noisy machine is noisy to all of them; then
//! criterion's figures, one variant after the other.
//!
//! Each is one transaction on one connection, in WAL mode at `synchronous=FULL`: a bare update of one row; the same behind
//! `admit`; the same as an operation with its record, through `apply`.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]

use criterion::{Criterion, criterion_group, criterion_main};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::collections::BTreeSet;
use tenure_core::fence::Rule;
use tenure_core::{Digest, Epoch, GrantId, OperationId, Outcome, ResourceName, SinkId, Token};
use tenure_sink::conformance::answered;
use tenure_sink::{Sink, SqliteFence, SqliteSink};

struct Shop {
    _folder: tempfile::TempDir,
    connection: Connection,
    fence: SqliteFence,
    token: Token,
    count: i64,
}

impl Shop {
    fn create() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.sqlite");
        let sink = SqliteSink::create(&path, SinkId::new("shop").unwrap(), Rule::Sealed).unwrap();
        let (resource, grant) = (ResourceName::new("tenant-7").unwrap(), GrantId::from_bits(7));
        let token = Token { resource, epoch: Epoch::FIRST, grant };
        let generation = answered(sink.describe(&token.resource)).unwrap().generation;
        let enrolled = BTreeSet::from([sink.id().clone()]);
        let _ = answered(sink.seal(&token, &generation, &enrolled)).unwrap();
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        connection
            .execute_batch("CREATE TABLE shop (item INTEGER PRIMARY KEY, n); INSERT INTO shop VALUES (1, 0)")
            .unwrap();
        Self { _folder: folder, connection, fence: sink.fence(), token, count: 0 }
    }

    fn transaction(&mut self, work: impl FnOnce(&Transaction<'_>, &SqliteFence, &Token, i64)) {
        self.count += 1;
        let tx = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        work(&tx, &self.fence, &self.token, self.count);
        tx.commit().unwrap();
    }
}

/// A new value each time: SQLite does not write a page that stays the same.
fn effect(tx: &Transaction<'_>, value: i64) -> rusqlite::Result<Outcome> {
    tx.prepare_cached("UPDATE shop SET n = ?1 WHERE item = 1")?.execute([value])?;
    Ok(Outcome::new("sold").unwrap())
}

fn bare(shop: &mut Shop) {
    shop.transaction(|tx, _, _, value| drop(effect(tx, value).unwrap()));
}

fn admit(shop: &mut Shop) {
    shop.transaction(|tx, fence, token, value| {
        let _ = fence.admit(tx, token).unwrap().unwrap();
        effect(tx, value).unwrap();
    });
}

fn apply(shop: &mut Shop) {
    shop.transaction(|tx, fence, token, value| {
        let operation = OperationId::new(format!("order-{value}")).unwrap();
        let done = fence.apply(tx, token, &operation, &Digest([7; 32]), |tx| effect(tx, value)).unwrap();
        assert!(done.stands());
    });
}

type Variant = (&'static str, fn(&mut Shop));

const VARIANTS: [Variant; 3] = [("bare", bare), ("admit", admit), ("apply", apply)];

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn ratios() {
    const ROUNDS: usize = 60;
    const TRANSACTIONS: u32 = 200;
    let mut shops = VARIANTS.map(|_| Shop::create());
    let mut ratios = VARIANTS.map(|_| Vec::with_capacity(ROUNDS));
    for _ in 0..ROUNDS {
        let mut times = [0.0; VARIANTS.len()];
        for ((time, shop), (_, variant)) in times.iter_mut().zip(&mut shops).zip(VARIANTS) {
            let start = std::time::Instant::now();
            (0..TRANSACTIONS).for_each(|_| variant(shop));
            *time = start.elapsed().as_secs_f64() / f64::from(TRANSACTIONS);
        }
        ratios.iter_mut().zip(times).for_each(|(all, time)| all.push((time / times[0], time)));
    }
    for (all, (name, _)) in ratios.iter_mut().zip(VARIANTS) {
        all.sort_by(|one, two| one.0.total_cmp(&two.0));
        let (low, (median, time), high) = (all[ROUNDS / 4].0, all[ROUNDS / 2], all[ROUNDS * 3 / 4].0);
        println!("sqlite/{name}: {median:.3} times bare (quartiles {low:.3} to {high:.3}), {:.1} us", time * 1e6);
    }
}

fn sqlite(criterion: &mut Criterion) {
    ratios();
    let mut group = criterion.benchmark_group("sqlite");
    for (name, variant) in VARIANTS {
        let mut shop = Shop::create();
        group.bench_function(name, |bencher| bencher.iter(|| variant(&mut shop)));
    }
    group.finish();
}

criterion_group!(benches, sqlite);
criterion_main!(benches);
