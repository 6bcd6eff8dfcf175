//! What the fence costs a `SET` in Redis. Run on demand: `cargo bench -p tenure-sink --bench redis`. It starts a server of
//! its own, with an append-only file that is synced each second.
//!
//! Variants take turns, so that a noisy machine is noisy to all of them; what is printed are medians of the rounds' ratios.
//! The server's time is what it says of itself (`INFO cpu`), so that the client's share does not count.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on should stop")]
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use redis::Connection;
use std::collections::BTreeSet;
use std::time::Instant;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Epoch, GrantId, OperationId, Outcome, ResourceName, Token, Verdict};
use tenure_servers::Redis;
use tenure_sink::redis::{Fate, Operation, RedisFence};
use tenure_sink::{RedisSink, Sink, digest_of};

const ROUNDS: u32 = 40;
const CALLS: u32 = 500;
/// Connections, and calls on each in a round, where the server is to be busy all the time.
const CLIENTS: usize = 50;
const TURNS: usize = 80;

#[derive(Clone, Copy)]
enum Variant {
    /// `SET`.
    Bare,
    /// The same behind the check.
    Fenced,
    /// The same as an operation, which takes effect once.
    Once,
}

const VARIANTS: [(Variant, &str); 3] =
    [(Variant::Bare, "SET"), (Variant::Fenced, "fenced SET"), (Variant::Once, "fenced SET, once")];

struct Writer {
    connection: Connection,
    clients: Vec<Connection>,
    fence: RedisFence,
    token: Token,
    written: u64,
}

impl Writer {
    fn operation(&mut self) -> Operation {
        self.written += 1;
        let id = OperationId::new(format!("o{}", self.written)).unwrap();
        Operation { id, digest: digest_of(b"value"), outcome: Outcome::new("").unwrap() }
    }

    /// One call, and its answer.
    fn write(&mut self, variant: Variant) {
        let mut write = self.fence.set(&self.token, "{tenure}:key", "value");
        match variant {
            Variant::Bare => {
                return redis::cmd("SET").arg("{tenure}:key").arg("value").exec(&mut self.connection).unwrap();
            }
            Variant::Fenced => {}
            Variant::Once => write = write.once(&self.operation()),
        }
        written(&write.send_blocking(&mut self.connection).unwrap());
    }

    /// One call on each of the many connections, and then their answers: nothing is pipelined.
    fn pour(&mut self, variant: Variant) {
        let write = self.fence.set(&self.token, "{tenure}:key", "value");
        for n in 0..self.clients.len() {
            let command = match variant {
                Variant::Bare => redis::cmd("SET").arg("{tenure}:key").arg("value").get_packed_command(),
                Variant::Fenced => write.to_command().unwrap().get_packed_command(),
                Variant::Once => write.clone().once(&self.operation()).to_command().unwrap().get_packed_command(),
            };
            self.clients[n].send_packed_command(&command).unwrap();
        }
        for client in &mut self.clients {
            let answer = client.recv_response();
            match variant {
                Variant::Bare => drop(answer.unwrap()),
                Variant::Fenced | Variant::Once => written(&write.fate_of(answer).unwrap()),
            }
        }
    }

    /// Seconds of a processor that the server has used.
    fn used(&mut self) -> f64 {
        let info: String = redis::cmd("INFO").arg("cpu").query(&mut self.connection).unwrap();
        let seconds = |name: &str| -> f64 {
            info.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
        };
        seconds("used_cpu_user_main_thread:") + seconds("used_cpu_sys_main_thread:")
    }
}

fn written(fate: &Fate) {
    assert!(matches!(fate, Fate::Judged { verdict: Verdict::Written, .. }), "{fate:?}");
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn show(what: &str, times: &[Vec<f64>]) {
    for ((_, name), all) in VARIANTS.iter().zip(times) {
        let ratios = all.iter().zip(&times[0]).map(|(time, bare)| time / bare).collect();
        println!("redis/{what}/{name}: {:.3} times SET, {:.1} us", median(ratios), median(all.clone()) * 1e6);
    }
}

fn main() {
    let server = Redis::start();
    let sink = RedisSink::open(&format!("{}?create=true", server.url())).unwrap();
    let resource = ResourceName::new("tenant-7").unwrap();
    let token = Token { resource: resource.clone(), epoch: Epoch::FIRST, grant: GrantId::from_bits(7) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (connection, clients) = runtime.block_on(async {
        let generation = sink.describe(&resource).await.unwrap().generation;
        let sealing = sink.seal(&token, &generation, &BTreeSet::new()).await.unwrap();
        assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
        let mut clients = Vec::new();
        for _ in 0..CLIENTS {
            clients.push(sink.connection().await.unwrap());
        }
        (sink.connection().await.unwrap(), clients)
    });
    assert_eq!(sink.rule(), Rule::Sealed);
    let mut writer = Writer { connection, clients, fence: sink.fence(), token, written: 0 };
    let (mut alone, mut busy) = (VARIANTS.map(|_| Vec::new()), VARIANTS.map(|_| Vec::new()));
    for _ in 0..ROUNDS {
        for ((variant, _), all) in VARIANTS.iter().zip(&mut alone) {
            let start = Instant::now();
            (0..CALLS).for_each(|_| writer.write(*variant));
            all.push(start.elapsed().as_secs_f64() / f64::from(CALLS));
        }
        for ((variant, _), all) in VARIANTS.iter().zip(&mut busy) {
            let before = writer.used();
            (0..TURNS).for_each(|_| writer.pour(*variant));
            #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
            all.push((writer.used() - before) / (CLIENTS * TURNS) as f64);
        }
    }
    show("one caller, latency", &alone);
    show("saturated, the server's time", &busy);
}
