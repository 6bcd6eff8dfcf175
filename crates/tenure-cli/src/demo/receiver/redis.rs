use super::super::DemoError;
use super::{Page, Place, id, name_of, outcome};
use redis::{Connection, FromRedisValue};
use std::sync::Arc;
use tenure::blocking::wait_for;
use tenure::core::fence::Rule;
use tenure::sink::redis::{Fate, Operation};
use tenure::sink::{ApplyError, RedisSink, Sink, digest_of, one_value_per_epoch};
use tenure::{Token, Verdict};

/// A key of a Redis server, and the fence's own keys.
#[derive(Debug)]
pub(super) struct Server {
    url: String,
    name: String,
}

impl Server {
    pub(super) fn at(url: &str) -> Result<Self, DemoError> {
        Ok(Self { url: url.to_owned(), name: name_of(url, "name=")? })
    }

    /// Without a rule there is a fence as well, and nobody asks it.
    fn open(&self, rule: Option<Rule>) -> Result<RedisSink, DemoError> {
        let rule = rule.unwrap_or(Rule::HighWater).name();
        Ok(RedisSink::open(&format!("{}&create=true&id={}&rule={rule}", self.url, id()?))?)
    }

    fn key(&self, of: &str) -> String {
        format!("{{{}}}:{of}", self.name)
    }
}

impl Place for Server {
    fn create(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        self.open(rule).map(drop)
    }

    fn sink(&self, rule: Rule) -> Result<Arc<dyn Sink>, DemoError> {
        Ok(Arc::new(self.open(Some(rule))?))
    }

    fn write(&self, rule: Option<Rule>, token: &Token, value: &str) -> Result<Verdict, DemoError> {
        let sink = self.open(rule)?;
        let (key, page) = (self.key("document"), Page::text(token, value));
        let mut connection = wait_for(sink.connection())?;
        if rule.is_none() {
            ask::<()>(&mut connection, redis::cmd("SET").arg(key).arg(page))?;
            return Ok(Verdict::Written);
        }
        let operation = Operation {
            id: one_value_per_epoch(token.epoch),
            digest: digest_of(value.as_bytes()),
            outcome: outcome(value),
        };
        match sink.fence().set(token, key, page).once(&operation).send_blocking(&mut connection) {
            Ok(Fate::Judged { verdict, .. }) => Ok(verdict),
            Ok(Fate::Broken(broken)) => Err(DemoError::Server(format!("the write broke off: {}", broken.why))),
            Ok(Fate::Unknown { why }) => Err(DemoError::Server(format!("nobody knows whether it was written: {why}"))),
            Err(ApplyError::Effect(refused)) => Err(DemoError::Server(refused.to_string())),
            Err(ApplyError::Sink(error)) => Err(DemoError::Sink(error)),
        }
    }

    fn document(&self, rule: Option<Rule>, _resource: &str) -> Result<Option<(i64, String)>, DemoError> {
        let mut connection = wait_for(self.open(rule)?.connection())?;
        let page: Option<Vec<u8>> = ask(&mut connection, redis::cmd("GET").arg(self.key("document")))?;
        page.map(|page| Page::read(&page)).transpose()
    }

    fn clear(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        let mut connection = wait_for(self.open(rule)?.connection())?;
        let keys = ["document", "fences", "names", "operations"].map(|of| self.key(of));
        ask::<()>(&mut connection, redis::cmd("DEL").arg(&keys))
    }
}

fn ask<T: FromRedisValue>(connection: &mut Connection, command: &redis::Cmd) -> Result<T, DemoError> {
    command.query(connection).map_err(|error| DemoError::Server(error.to_string()))
}
