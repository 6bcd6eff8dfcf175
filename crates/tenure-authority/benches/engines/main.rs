//! What the authority costs on the engines, beside what a user would write by hand on each: in the same run, on the same
//! server, with the same durability, each on one thread.
//!
//! `cargo bench -p tenure-authority --bench engines` prints the tables; `-- postgres`, `-- redis`, `-- etcd` only one of
//! them. `TENURE_BENCH_SECONDS` says how long each line is measured, `TENURE_BENCH_LEASES` how many leases the large
//! holder has. A busy machine multiplies every figure: compare lines of one run only.

#![expect(clippy::disallowed_methods, reason = "a stopwatch reads a clock")]

mod etcd;
mod figures;
mod ours;
mod postgres;
mod redis;

use figures::{Figures, measure};
use ours::Ours;
use std::future::Future;
use tokio::runtime::Runtime;

const CALLERS: [usize; 3] = [1, 16, 64];

fn main() {
    // `cargo test --benches` runs this as well; there is nothing to test.
    let arguments: Vec<String> = std::env::args().collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    let named = |name: &str| arguments.iter().any(|argument| argument == name);
    let all = !["postgres", "redis", "etcd"].into_iter().any(named);
    if all || named("postgres") {
        postgres::run();
    }
    if all || named("redis") {
        redis::run();
    }
    if all || named("etcd") {
        etcd::run();
    }
}

/// What a user writes by hand: one caller of many.
trait ByHand: Send + 'static {
    /// Takes its own key, and gives it back.
    fn cycle(&mut self) -> impl Future<Output = ()> + Send;
    /// Prolongs its own key.
    fn renew(&mut self) -> impl Future<Output = ()> + Send;
}

/// One thread, as the keeper of a worker has it.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The table of one engine. `hands` makes the callers that are written by hand.
fn compare<Hand: ByHand>(engine: &str, url: &str, hands: impl Fn(&Runtime, usize) -> Vec<Hand>) {
    println!("\n{engine}\n");
    println!(
        "| callers | what | by hand /s | p50 | ours /s | p50 | p99 | ours : by hand |\n|---|---|---|---|---|---|---|---|"
    );
    for callers in CALLERS {
        let runtime = runtime();
        let ours = Ours::open(&runtime, url);
        let line = |what: &str, hand: &Figures, own: &Figures| {
            let (by, own_rate) = (hand.rate, own.rate);
            println!(
                "| {callers} | {what} | {by:.0} | {} | {own_rate:.0} | {} | {} | {:.2} |",
                hand.p50(),
                own.p50(),
                own.p99(),
                own_rate / by
            );
        };
        let by_hand = measure(&runtime, hands(&runtime, callers), async |hand| hand.cycle().await);
        let own = measure(&runtime, ours.cyclers(callers), async |caller| caller.cycle().await);
        line("acquire + release", &by_hand, &own);
        let by_hand = measure(&runtime, hands(&runtime, callers), async |hand| hand.renew().await);
        let own = measure(&runtime, runtime.block_on(ours.renewers(callers)), async |caller| caller.renew().await);
        line("renewal", &by_hand, &own);
    }
    let runtime = runtime();
    let ours = Ours::open(&runtime, url);
    let one = measure(&runtime, runtime.block_on(ours.holder_of(1)), async |caller| caller.renew().await);
    let leases = leases();
    let many = measure(&runtime, runtime.block_on(ours.holder_of(leases)), async |caller| caller.renew().await);
    println!(
        "\nrenewal of a holder of {leases} leases: p50 {}, of one lease: p50 {}; {:.2} times (goal: at most 1.5)",
        many.p50(),
        one.p50(),
        many.median().as_secs_f64() / one.median().as_secs_f64()
    );
}

fn leases() -> usize {
    std::env::var("TENURE_BENCH_LEASES").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000)
}
