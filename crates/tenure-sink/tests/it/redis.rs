//! The sink in Redis, on real servers.

mod address;
mod answers;
mod contract;
mod keys;
mod losses;
mod scripts;
mod ways;

use crate::id;
use redis::Connection;
use sha2::{Digest as _, Sha256};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tenure_core::fence::{Rule, Sealing};
use tenure_core::{Digest, OperationId, Outcome, Token, Verdict};
use tenure_servers::Redis;
use tenure_sink::redis::{Fate, Operation, RedisFence, Refused};
use tenure_sink::{ApplyError, RedisSink};

/// A sink of its own on a server.
struct Shop {
    name: String,
    url: String,
    sink: RedisSink,
}

impl Shop {
    fn create(server: &str, rule: Rule) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("shop{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let url = format!("{server}?name={name}&rule={}&id={}&wait=1s", rule.name(), id());
        let sink = RedisSink::open(&format!("{url}&create=true")).unwrap();
        Self { name, url, sink }
    }

    fn on(server: &Redis) -> Self {
        Self::create(&server.url(), Rule::Sealed)
    }

    fn fence(&self) -> RedisFence {
        self.sink.fence()
    }

    fn key(&self, name: &str) -> String {
        format!("{{{}}}:{name}", self.name)
    }

    fn seal(&self, token: &Token) {
        let sealing = crate::seal(&self.sink, token).unwrap();
        assert!(matches!(sealing, Sealing::Seal(_)), "{sealing:?}");
    }

    /// What becomes of a bare write of a value.
    fn write(&self, server: &Redis, token: &Token, value: &str) -> Fate {
        self.fence().set(token, self.key("value"), value).send_blocking(&mut open(server)).unwrap()
    }

    fn value(&self, server: &Redis) -> String {
        server.cli(&["get", &self.key("value")])
    }
}

fn open(server: &Redis) -> Connection {
    connect(&server.url())
}

fn connect(url: &str) -> Connection {
    let connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    connection
}

fn judged(verdict: Verdict) -> Fate {
    Fate::Judged { verdict, said: None }
}

fn written() -> Fate {
    judged(Verdict::Written)
}

fn unsealed() -> Fate {
    judged(Verdict::Unsealed)
}

fn stale(presented: &Token, current: &Token) -> Fate {
    judged(Verdict::Stale { presented: presented.epoch, current: current.epoch })
}

/// An operation whose content is `content`.
fn operation(name: &str, content: &str) -> Operation {
    Operation {
        id: OperationId::new(name).unwrap(),
        digest: Digest(Sha256::digest(content).into()),
        outcome: Outcome::new(format!("wrote {content}")).unwrap(),
    }
}

/// The effect's own reason.
#[track_caller]
fn refused(said: Result<Fate, ApplyError<Refused>>) -> String {
    match said {
        Err(ApplyError::Effect(why)) => why.to_string(),
        other => panic!("the effect was not refused: {other:?}"),
    }
}
