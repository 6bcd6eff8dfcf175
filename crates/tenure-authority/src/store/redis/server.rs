//! The server that is the primary now, and what it answers to scripts.

use super::fault::{self, Fault};
use super::link::{Link, Links};
use super::place::Place;
use super::replicas::{self, Replicas};
use super::row::{Damage, number};
use super::script::Script;
use super::time::Time;
use crate::StoreError;
use redis::{ErrorKind, RedisResult, ServerErrorKind, Value};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::{AuthorityClock, Instant, StoreIdentity};

/// Whom this store asks.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) place: Arc<Place>,
    pub(super) links: Links,
    pub(super) time: Time,
    pub(super) replicas: Replicas,
}

/// What a script answered, as far as it was taken.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) now: Instant<AuthorityClock>,
    pub(super) observed: StoreIdentity,
    rest: std::vec::IntoIter<Value>,
}

impl Server {
    pub(super) fn new(place: Place) -> Self {
        let place = Arc::new(place);
        Self { links: Links::new(Arc::clone(&place)), place, time: Time::default(), replicas: Replicas::default() }
    }

    /// Runs a script that changes nothing. It reads these fields of the records in one go with the store's own.
    pub(super) async fn ask(
        self: &Arc<Self>,
        script: &Script,
        fields: &[String],
        args: &[String],
    ) -> Result<Answer, StoreError> {
        let asked = async {
            let link = self.links.get(self).await?;
            let answer = self.call_on(&link, script, fields, args, self.place.timeout).await?;
            replicas::settle_doubt(self, &link).await?;
            Ok(answer)
        };
        asked.await.map_err(|fault: Fault| fault.error)
    }

    /// Runs a script, once, and gives the connection up when it is of no use any more.
    pub(super) async fn call_on(
        &self,
        link: &Arc<Link>,
        script: &Script,
        fields: &[String],
        args: &[String],
        patience: Duration,
    ) -> Result<Answer, Fault> {
        let called = self.called(link, script, fields, args, patience).await;
        if called.as_ref().is_err_and(|fault| fault.is_over) {
            self.links.leave(link);
        }
        called
    }

    async fn called(
        &self,
        link: &Link,
        script: &Script,
        fields: &[String],
        args: &[String],
        patience: Duration,
    ) -> Result<Answer, Fault> {
        let seen = self.time.seen();
        let mut all = Vec::with_capacity(fields.len() + args.len() + 3);
        let (micros, count) = (seen.micros.to_string(), fields.len().to_string());
        all.extend([seen.identity.as_str(), micros.as_str(), count.as_str()]);
        all.extend(fields.iter().chain(args).map(String::as_str));
        let said = evaluate(link, &self.place, script, &all, patience).await;
        let said = said.map_err(|error| fault::of_call(&error, &self.place))?;
        self.answer(said)
    }

    fn answer(&self, said: Value) -> Result<Answer, Fault> {
        let damage = |damage: Damage| Fault::certain(self.damaged(&damage));
        let mut rest = items(said).map_err(damage)?.into_iter();
        let mut next = || rest.next().map(text).unwrap_or_else(|| Ok(String::new()));
        let status = next().map_err(damage)?;
        let detail = next().map_err(damage)?;
        match status.as_str() {
            "ok" => {}
            "replica" => {
                let error = StoreError::Unavailable(format!("{} is a replica now", self.place.shown));
                return Err(Fault { error, is_certain: true, is_over: true });
            }
            other => return Err(Fault::certain(self.refused(other, &detail))),
        }
        let identity = next().map_err(damage)?;
        let micros = number(&detail).map_err(damage)?;
        let observed = StoreIdentity::new(&identity).map_err(|error| damage(Damage(error.to_string())))?;
        self.time.learn(&identity, micros);
        Ok(Answer { now: Instant::from_nanos(micros.saturating_mul(1_000)), observed, rest })
    }

    /// What a script says before it begins.
    pub(super) fn refused(&self, status: &str, detail: &str) -> StoreError {
        match status {
            "missing" => StoreError::Missing(self.place.shown.clone()),
            "foreign" => StoreError::Foreign(format!("{} in {}", self.place.own_key(), self.place.shown)),
            "schema" => {
                let found = detail.parse().unwrap_or_default();
                let advice = if found > SCHEMA {
                    "update this program, or use the one that made the store; it was left alone"
                } else {
                    "open it with the program that made it, finish its work there, and create a new store"
                };
                StoreError::Schema { found, known: SCHEMA, advice }
            }
            "nameless" => {
                StoreError::Engine(format!("{} tells no replication id (INFO replication)", self.place.shown))
            }
            "lost" => StoreError::Corrupt(format!(
                "{}: keys of the store are gone: somebody removed them, or the server evicts keys (maxmemory-policy)",
                self.place.shown
            )),
            "back" => StoreError::ClockWentBack { by: Duration::from_micros(detail.parse().unwrap_or(u64::MAX)) },
            _ => fault::of_script(detail, &self.place),
        }
    }

    pub(super) fn damaged(&self, damage: &Damage) -> StoreError {
        StoreError::Corrupt(format!("{}: {}", self.place.shown, damage.0))
    }
}

/// The version of what stands in Redis: see `lua/create.lua`.
const SCHEMA: i64 = 1;

/// By its hash, and with its text where the server does not know it. Then nothing was done yet.
pub(super) async fn evaluate(
    link: &Link,
    place: &Place,
    script: &Script,
    args: &[&str],
    patience: Duration,
) -> RedisResult<Value> {
    let key = place.own_key();
    let command = |name: &str, script: &str| {
        let mut command = redis::cmd(name);
        command.arg(script).arg(1).arg(&key).arg(args);
        command
    };
    let mut connection = link.connection.clone();
    connection.set_response_timeout(patience);
    match command("EVALSHA", &script.hash).query_async(&mut connection).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            command("EVAL", &script.text).query_async(&mut connection).await
        }
        said => said,
    }
}

impl Answer {
    /// The next part; `None` for one that is not there.
    pub(super) fn next(&mut self) -> Result<Option<String>, Damage> {
        match self.rest.next() {
            None | Some(Value::Nil) => Ok(None),
            Some(value) => text(value).map(Some),
        }
    }

    /// The next part, which must be there.
    pub(super) fn expect(&mut self, what: &str) -> Result<String, Damage> {
        self.next()?.ok_or_else(|| Damage(format!("{what} is missing")))
    }

    /// The next part, which must be there; `None` when it is nothing.
    pub(super) fn next_of(&mut self, what: &str) -> Result<Option<String>, Damage> {
        if self.is_at_end() {
            return Err(Damage(format!("{what} is missing")));
        }
        self.next()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.as_slice().is_empty()
    }
}

pub(super) fn items(value: Value) -> Result<Vec<Value>, Damage> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(Damage(format!("an answer is no list: {other:?}"))),
    }
}

pub(super) fn text(value: Value) -> Result<String, Damage> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map_err(|error| Damage(error.to_string())),
        Value::SimpleString(text) => Ok(text),
        Value::Int(number) => Ok(number.to_string()),
        Value::Nil => Ok(String::new()),
        other => Err(Damage(format!("a part of an answer is no text: {other:?}"))),
    }
}
