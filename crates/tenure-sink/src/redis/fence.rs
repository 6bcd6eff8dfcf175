//! The fence on the caller's own connection.

use super::answer::{self, hex};
use super::fate::{Fate, Mended, Mending, Refused, Trace};
use super::program::{Program, Verb};
use super::request::{Request, Ways};
use crate::{ApplyError, SinkError};
use redis::{Cmd, RedisResult, Value};
use std::sync::Arc;
use tenure_core::fence::Rule;
use tenure_core::operation::Attempt;
use tenure_core::{Digest, OperationId, Outcome, Token, Verdict};

/// The fence of a sink in Redis, for writes on the caller's own connection. Cheap to clone.
///
/// A connection to whatever server will do: the check is made in the server, in the same step as the write, and a server that
/// is not the primary, or was not sealed since it became one, refuses.
#[derive(Clone, Debug)]
pub struct RedisFence {
    sink: Arc<Sink>,
}

#[derive(Debug)]
struct Sink {
    /// How it is called in messages.
    place: String,
    /// The key of its fences. The other two are named after it.
    key: String,
    rule: Rule,
    ways: Ways,
}

/// An operation that takes effect once, however often it is sent, and under whatever epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which intent it is.
    pub id: OperationId,
    /// Of its content: the same operation with another digest is a conflict. [`digest_of`](crate::digest_of) makes one.
    pub digest: Digest,
    /// What a replay is told. A script's own text takes its place.
    pub outcome: Outcome,
}

/// A script of the caller's, to be run behind the check. Make it once and keep it.
///
/// It is Lua, as `EVAL` takes it, and sees its own keys and arguments as `KEYS` and `ARGV`. Check first and write afterwards:
/// Redis undoes nothing when a script ends with an error. One that has not written by then counts as refused and
/// leaves nothing behind; one that has, or may have, is [`Fate::Broken`].
#[derive(Clone, Debug)]
pub struct RedisScript(Arc<Program>);

impl RedisScript {
    /// Takes the text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(Arc::new(Program::of_body(text)))
    }
}

/// A write that was put together and not sent yet.
#[derive(Clone, Debug)]
#[must_use = "nothing is written until it is sent"]
pub struct Write {
    sink: Arc<Sink>,
    program: Arc<Program>,
    token: Token,
    operation: Option<Operation>,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

/// A question about an operation that was put together and not sent yet. `T` is what is answered to a token that is admitted;
/// the inner `Err` is the verdict that refuses it.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked until it is sent"]
pub struct Question<T> {
    sink: Arc<Sink>,
    request: Request,
    token: Token,
    read: Reading<T>,
}

/// What the answer of a server means, at a place, to a token.
type Reading<T> = fn(RedisResult<Value>, &str, &Token) -> Result<Result<T, Verdict>, SinkError>;

/// So many arguments fit on the stack of a script.
const PARTS_MAX: usize = 4_000;

impl RedisFence {
    /// The fence of the sink with this name, which is under this rule, in the database of the connection that is used.
    ///
    /// # Errors
    /// [`SinkError::BadName`] when a sink cannot have this name; [`SinkError::NoAuthority`] under [`Rule::Held`].
    pub fn new(name: &str, rule: Rule) -> Result<Self, SinkError> {
        super::place::check_name(name).map_err(|why| SinkError::BadName { name: name.to_owned(), why })?;
        let place = format!("the Redis sink {name:?}");
        if rule == Rule::Held {
            let why = "a script reads no authority: take the rule `sealed`".to_owned();
            return Err(SinkError::NoAuthority { place, why });
        }
        Ok(Self::at(place, name, rule))
    }

    pub(super) fn at(place: String, name: &str, rule: Rule) -> Self {
        Self { sink: Arc::new(Sink { place, key: format!("{{{name}}}:fences"), rule, ways: Ways::default() }) }
    }

    /// What the sink accepts.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.sink.rule
    }

    /// `SET key value`, if the token is admitted.
    pub fn set(&self, token: &Token, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Write {
        self.command(token, "SET", [key], [value])
    }

    /// `HSET key field value …`, if the token is admitted.
    pub fn hset<F: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        token: &Token,
        key: impl AsRef<[u8]>,
        fields: impl IntoIterator<Item = (F, V)>,
    ) -> Write {
        let mut args = Vec::new();
        for (field, value) in fields {
            args.extend([field.as_ref().to_vec(), value.as_ref().to_vec()]);
        }
        self.command(token, "HSET", [key], args)
    }

    /// `DEL key …`, if the token is admitted.
    pub fn del<K: AsRef<[u8]>>(&self, token: &Token, keys: impl IntoIterator<Item = K>) -> Write {
        self.command::<K, &[u8]>(token, "DEL", keys, [])
    }

    /// One command of any kind, if the token is admitted: its name, its keys, and what comes behind them. A command whose
    /// keys stand elsewhere goes into a script.
    pub fn command<K: AsRef<[u8]>, A: AsRef<[u8]>>(
        &self,
        token: &Token,
        name: &str,
        keys: impl IntoIterator<Item = K>,
        args: impl IntoIterator<Item = A>,
    ) -> Write {
        let name = [name.as_bytes().to_vec()];
        let args = name.into_iter().chain(args.into_iter().map(|arg| arg.as_ref().to_vec()));
        self.write(Verb::Write.program(), token, keys, args.collect())
    }

    /// A script of the caller's own, if the token is admitted. A number that it returns is one of Lua, which tells whole ones
    /// apart up to 2^53: let it return a text where that is not enough.
    pub fn apply<K: AsRef<[u8]>, A: AsRef<[u8]>>(
        &self,
        token: &Token,
        script: &RedisScript,
        keys: impl IntoIterator<Item = K>,
        args: impl IntoIterator<Item = A>,
    ) -> Write {
        let args = args.into_iter().map(|arg| arg.as_ref().to_vec()).collect();
        self.write(Arc::clone(&script.0), token, keys, args)
    }

    fn write<K: AsRef<[u8]>>(
        &self,
        program: Arc<Program>,
        token: &Token,
        keys: impl IntoIterator<Item = K>,
        args: Vec<Vec<u8>>,
    ) -> Write {
        let keys = keys.into_iter().map(|key| key.as_ref().to_vec()).collect();
        Write { sink: Arc::clone(&self.sink), program, token: token.clone(), operation: None, keys, args }
    }

    /// Looks for the effect of an operation. Only whoever is admitted may ask, because only for them is an absence final.
    pub fn lookup(&self, token: &Token, operation: &OperationId) -> Question<Trace> {
        self.question(Verb::Lookup, token, vec![operation.as_str().into()], answer::trace)
    }

    /// Says what became of an operation that broke off half-way, once that was found out.
    pub fn mend(&self, token: &Token, operation: &OperationId, mending: &Mending) -> Question<Mended> {
        let (state, outcome) = match mending {
            Mending::Applied(outcome) => (Attempt::Applied, outcome.as_str()),
            Mending::NotApplied => (Attempt::NotApplied, ""),
        };
        let args = vec![operation.as_str().into(), state.name().into(), outcome.into()];
        self.question(Verb::Mend, token, args, answer::mended)
    }

    fn question<T>(&self, verb: Verb, token: &Token, rest: Vec<Vec<u8>>, read: Reading<T>) -> Question<T> {
        let mut args = Vec::from(shown(token, self.sink.rule));
        args.extend(rest);
        let request = self.request(verb, args);
        Question { sink: Arc::clone(&self.sink), request, token: token.clone(), read }
    }

    pub(super) fn request(&self, verb: Verb, args: Vec<Vec<u8>>) -> Request {
        Request { program: verb.program(), keys: vec![self.sink.key.clone().into()], args }
    }

    pub(super) fn key(&self) -> &str {
        &self.sink.key
    }

    pub(super) fn ways(&self) -> &Ways {
        &self.sink.ways
    }
}

/// A token, as the verbs take it.
pub(super) fn shown(token: &Token, rule: Rule) -> [Vec<u8>; 4] {
    let words = [token.resource.as_str(), &token.epoch.to_string(), &token.grant.to_string(), rule.name()];
    words.map(|word| word.as_bytes().to_vec())
}

impl Write {
    /// Makes an operation of it: it takes effect once, and a repeat is a replay. Without, a lost answer leaves nobody any
    /// the wiser.
    pub fn once(mut self, operation: &Operation) -> Self {
        self.operation = Some(operation.clone());
        self
    }

    /// Sends it on any connection of `redis`. It is sent once; when no answer comes, that is [`Fate::Unknown`].
    ///
    /// # Errors
    /// [`ApplyError::Sink`]: nothing was written. [`ApplyError::Effect`]: the token was admitted, the effect was refused, and
    /// nothing of it stands.
    pub async fn send(&self, connection: &mut impl redis::aio::ConnectionLike) -> Result<Fate, ApplyError<Refused>> {
        let said = self.request()?.send(&self.sink.ways, connection).await;
        self.fate_of(said)
    }

    /// The same on the caller's thread.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_blocking(&self, connection: &mut dyn redis::ConnectionLike) -> Result<Fate, ApplyError<Refused>> {
        let said = self.request()?.send_blocking(&self.sink.ways, connection);
        self.fate_of(said)
    }

    /// It as one command, for a pipeline or for `MULTI`; [`fate_of`](Self::fate_of) reads its answer. The server must have
    /// the library, which the sink's creation and every first [`send`](Self::send) load.
    ///
    /// # Errors
    /// [`SinkError`]: it is too long.
    pub fn to_command(&self) -> Result<Cmd, SinkError> {
        Ok(self.request()?.command())
    }

    /// What the answer to its command means. It must be this command's own: without `ignore_errors`, a pipeline gives the error
    /// of any of its commands as the answer to all, and this one may have been carried out.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn fate_of(&self, said: RedisResult<Value>) -> Result<Fate, ApplyError<Refused>> {
        answer::fate(said, &self.sink.place, &self.token).map_err(|error| match error {
            ApplyError::Sink(error) => ApplyError::Sink(answer::with_rule(error, self.sink.rule)),
            effect @ ApplyError::Effect(_) => effect,
        })
    }

    fn request(&self) -> Result<Request, SinkError> {
        let parts = self.keys.len() + self.args.len();
        if parts > PARTS_MAX {
            return Err(SinkError::Failed {
                place: self.sink.place.clone(),
                doing: "putting a write together",
                why: format!("it has {parts} keys and arguments, and a script takes {PARTS_MAX}: make several of it"),
            });
        }
        let mut args = Vec::with_capacity(7 + self.args.len());
        args.extend(shown(&self.token, self.sink.rule));
        match &self.operation {
            Some(Operation { id, digest, outcome }) => {
                args.extend([id.as_str().into(), hex(digest).into_bytes(), outcome.as_str().into()]);
            }
            None => args.extend([Vec::new(), Vec::new(), Vec::new()]),
        }
        args.extend(self.args.iter().cloned());
        let keys = std::iter::once(self.sink.key.clone().into()).chain(self.keys.iter().cloned()).collect();
        Ok(Request { program: Arc::clone(&self.program), keys, args })
    }
}

impl<T> Question<T> {
    /// Sends it on any connection of `redis`.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out. Repeating it is safe.
    pub async fn send(
        &self,
        connection: &mut impl redis::aio::ConnectionLike,
    ) -> Result<Result<T, Verdict>, SinkError> {
        let said = self.request.send(&self.sink.ways, connection).await;
        self.read(said)
    }

    /// The same on the caller's thread.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_blocking(&self, connection: &mut dyn redis::ConnectionLike) -> Result<Result<T, Verdict>, SinkError> {
        let said = self.request.send_blocking(&self.sink.ways, connection);
        self.read(said)
    }

    fn read(&self, said: RedisResult<Value>) -> Result<Result<T, Verdict>, SinkError> {
        (self.read)(said, &self.sink.place, &self.token).map_err(|error| answer::with_rule(error, self.sink.rule))
    }
}
