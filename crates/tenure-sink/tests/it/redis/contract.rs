//! It passes the suite, under both rules: by functions and by scripts, on the caller's thread and without it, alone and
//! under Sentinel.

use super::{Shop, connect, judged, operation, refused};
use std::time::Duration;
use tenure_core::fence::Rule;
use tenure_core::{OperationId, ResourceName, Token, Verdict};
use tenure_servers::{Redis, Sentinels};
use tenure_sink::conformance::{Capabilities, Held, SinkUnderTest, run_all};
use tenure_sink::redis::{Fate, RedisScript, Trace, Write};
use tenure_sink::{ApplyError, Lookup, RedisSink, Sink, SinkError};

#[test]
fn redis_passes_the_suite_under_the_sealed_rule() {
    let url = Redis::shared().url();
    run_all(|| Box::new(Subject::create(&url, &url, Rule::Sealed, Thread::Callers)));
}

#[test]
fn redis_passes_the_suite_under_the_high_water_rule() {
    let url = Redis::shared().url();
    run_all(|| Box::new(Subject::create(&url, &url, Rule::HighWater, Thread::Callers)));
}

#[test]
fn redis_passes_the_suite_without_blocking() {
    let url = Redis::shared().url();
    run_all(|| Box::new(Subject::create(&url, &url, Rule::Sealed, Thread::None)));
}

#[test]
fn redis_passes_the_suite_where_there_are_no_functions() {
    let server = super::ways::without_functions();
    let url = server.url();
    for rule in [Rule::Sealed, Rule::HighWater] {
        run_all(|| Box::new(Subject::create(&url, &url, rule, Thread::Callers)));
    }
}

#[test]
fn redis_passes_the_suite_under_sentinel() {
    let primary = Redis::start();
    let sentinels = Sentinels::start(3, &primary, 2, Duration::from_secs(1), Duration::from_secs(3));
    let hosts: Vec<_> = sentinels.addrs().iter().map(ToString::to_string).collect();
    let url = format!("redis+sentinel://{}/{}", hosts.join(","), Sentinels::NAME);
    run_all(|| Box::new(Subject::create(&url, &primary.url(), Rule::Sealed, Thread::Callers)));
}

#[derive(Clone, Copy)]
enum Thread {
    Callers,
    None,
}

struct Subject {
    shop: Shop,
    /// Where writes go.
    server: String,
    thread: Thread,
}

impl Subject {
    fn create(url: &str, server: &str, rule: Rule, thread: Thread) -> Self {
        Self { shop: Shop::create(url, rule), server: server.to_owned(), thread }
    }

    fn value_key(&self, resource: &ResourceName) -> String {
        format!("{{{}}}:value:{resource}", self.shop.name)
    }

    fn send(&self, write: &Write) -> Result<Fate, SinkError> {
        let said = match self.thread {
            Thread::Callers => write.send_blocking(&mut connect(&self.server)),
            Thread::None => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let client = redis::Client::open(self.server.as_str()).unwrap();
                    write.send(&mut client.get_multiplexed_async_connection().await.unwrap()).await
                })
            }
        };
        said.map_err(|error| match error {
            ApplyError::Sink(error) => error,
            ApplyError::Effect(why) => panic!("the effect was refused: {why}"),
        })
    }
}

impl SinkUnderTest for Subject {
    fn sink(&self) -> &dyn Sink {
        &self.shop.sink
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { seals_past_a_stopped_writer: true }
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        let sink = RedisSink::open(&self.shop.url).unwrap();
        let shop = Shop { name: self.shop.name.clone(), url: self.shop.url.clone(), sink };
        Box::new(Self { shop, server: self.server.clone(), thread: self.thread })
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        let name = format!("{}-missing", self.shop.name);
        let error = RedisSink::open(&self.shop.url.replacen(&self.shop.name, &name, 1)).err();
        let keys: Vec<String> = redis::cmd("KEYS").arg(format!("*{name}*")).query(&mut connect(&self.server)).unwrap();
        (error, !keys.is_empty())
    }

    fn write(&self, token: &Token, id: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        let mut write = self.shop.fence().set(token, self.value_key(&token.resource), value);
        if let Some(id) = id {
            write = write.once(&operation(id.as_str(), value));
        }
        match self.send(&write)? {
            Fate::Judged { verdict, .. } => Ok(verdict),
            other => panic!("no verdict: {other:?}"),
        }
    }

    fn write_failing(&self, token: &Token, id: Option<&OperationId>) {
        let (fence, key) = (self.shop.fence(), self.value_key(&token.resource));
        let looks_and_raises =
            RedisScript::new("if redis.call('GET', KEYS[1]) then error('the effect has a reason') end");
        let fails =
            [fence.apply::<_, &str>(token, &looks_and_raises, [&key], []), fence.hset(token, &key, [("a", "half")])];
        for (mut write, reason) in fails.into_iter().zip(["the effect has a reason", "WRONGTYPE"]) {
            if let Some(id) = id {
                write = write.once(&operation(id.as_str(), "half"));
            }
            let why = refused(write.send_blocking(&mut connect(&self.server)));
            assert!(why.contains(reason), "{why}");
        }
    }

    fn lookup(&self, token: &Token, id: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        let traced = self.shop.fence().lookup(token, id).send_blocking(&mut connect(&self.server))?;
        Ok(traced.map(|trace| match trace {
            Trace::Found(found) => Lookup::Found(found),
            Trace::Absent => Lookup::Absent,
            Trace::Broken(broken) => panic!("nothing broke off: {broken:?}"),
        }))
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        redis::cmd("GET").arg(self.value_key(resource)).query(&mut connect(&self.server)).unwrap()
    }

    /// The nearest thing to an open transaction that there is: a `MULTI` in which the token was shown once.
    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        let mut connection = connect(&self.server);
        let fence = self.shop.fence();
        let admitted = fence.set(token, self.shop.key("held"), "").send_blocking(&mut connection).unwrap();
        assert_eq!(admitted, judged(Verdict::Written));
        redis::cmd("MULTI").exec(&mut connection).unwrap();
        Box::new(Open { subject: self, connection, token: token.clone() })
    }
}

struct Open<'a> {
    subject: &'a Subject,
    connection: redis::Connection,
    token: Token,
}

impl Held for Open<'_> {
    fn finish(mut self: Box<Self>, value: &str) -> Result<Verdict, String> {
        let key = self.subject.value_key(&self.token.resource);
        let write = self.subject.shop.fence().set(&self.token, key, value);
        write.to_command().unwrap().exec(&mut self.connection).map_err(|error| error.to_string())?;
        let said: Vec<redis::Value> =
            redis::cmd("EXEC").query(&mut self.connection).map_err(|error| error.to_string())?;
        let fate = write.fate_of(Ok(said.into_iter().next().unwrap())).map_err(|error| error.to_string())?;
        fate.verdict().cloned().ok_or_else(|| format!("{fate:?}"))
    }
}
