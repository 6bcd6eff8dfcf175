//! Effects in Redis.
//!
//! # What is not guaranteed
//!
//! * **A failover may lose the newest writes**, and the newest seal with them: replication is asynchronous. The sink notices it
//!   and refuses everything until it is sealed again, so that two writers are never accepted one after the other in what
//!   survives. What was lost is lost. Without `appendfsync always` the same holds for a crash of the machine.
//! * **A former primary that goes on living** (it was stopped, or is cut off with a worker) accepts the token that was sealed
//!   there for as long as nobody tells it. Its writes are lost when it is told. `min-replicas-to-write 1` bounds that.
//! * **A script of the caller's is not undone** when it breaks off in its middle: see [`RedisScript`].
//! * A machine that is put back to a snapshot *with its memory* has the same replication id as before: call [`Sink::reopen`]
//!   then, before any worker starts.
//! * Effects outside of the one script, such as other commands of the same `MULTI`, are not covered by the check.
//! * A node of a Redis Cluster is refused.
//!
//! # How it works
//!
//! Each verb is one script, and so one moment of the server: it reads the fence, judges, applies the effect, and records the
//! operation. The verbs are functions of a library (`tenure2`), which is loaded at its first use; where there are no functions,
//! or the user may not call them, the same text runs as scripts. A seal waits for no writer, since none is ever in
//! the middle: V4 holds, and I10 of itself.
//!
//! **The generation** is the server's replication id and a number, which is the time of the sink's making, in microseconds, and
//! one more for each reopening: a sink that is made again in the place of a lost one is of another generation. Whatever may
//! have lost a seal gives a server another replication id: a restart, a promotion, a change of its primary. Each script reads it by `INFO replication`,
//! which costs two microseconds of the server's time. Nothing cheaper would do. What a library remembers between calls
//! outlives a demotion and a partial resynchronisation, after which the newest seal may be missing; a mark in a key
//! travels with the keys; and the rest of what a script may see does not change with the role. The first
//! replica of a server, and the end of its backlog (`repl-backlog-ttl`) after the last one, also change the id, though nothing is
//! lost: the holder seals again.
//!
//! # Keys
//!
//! | key | type | what it holds |
//! |---|---|---|
//! | `{NAME}:fences` | hash | under the empty name the sink's record (`1 RULE REOPENED FLOOR`), under each resource its fence (`EPOCH GRANT REPLID:REOPENED SEALS`, then the enrolled sinks, a line each) |
//! | `{NAME}:names` | sorted set | the resources in order, and a mark of the empty name |
//! | `{NAME}:operations` | hash | under `RESOURCE`, a line end and `OPERATION`: `STATE EPOCH SEALS DIGEST OUTCOME`, and a mark of the empty name |
//!
//! They have one hash tag. None may have a time to live, and none may be evicted ([`RedisSink::warnings`]). One that is gone
//! all the same is noticed by its mark: the sink then refuses everything. Records of operations stay for ever, some
//! 200 bytes each.
//!
//! # How it is used
//!
//! ```no_run
//! # use tenure_core::{Epoch, GrantId, OperationId, Outcome, ResourceName, Token, Verdict, fence::Rule};
//! # use tenure_sink::redis::{Fate, Operation, RedisFence, RedisScript};
//! # use tenure_sink::digest_of;
//! # async fn work() -> Result<(), Box<dyn std::error::Error>> {
//! # let token = Token { resource: ResourceName::new("tenant-7")?, epoch: Epoch::FIRST, grant: GrantId::from_bits(7) };
//! let fence = RedisFence::new("shop", Rule::Sealed)?;
//! let mut connection = redis::Client::open("redis://127.0.0.1")?.get_multiplexed_async_connection().await?;
//!
//! let sold = RedisScript::new("return redis.call('DECRBY', KEYS[1], ARGV[1])");
//! let order = Operation { id: OperationId::new("order-17")?, digest: digest_of(b"2"), outcome: Outcome::new("sold")? };
//! match fence.apply(&token, &sold, ["{shop}:stock"], ["2"]).once(&order).send(&mut connection).await? {
//!     Fate::Judged { verdict: Verdict::Written | Verdict::Replay(_), .. } => println!("it stands"),
//!     Fate::Judged { verdict, .. } => println!("refused: {verdict}"),
//!     Fate::Broken(broken) => println!("it broke off: {}", broken.why),
//!     Fate::Unknown { why } => println!("look it up: {why}"),
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod fate;
mod fault;
mod fence;
mod place;
mod program;
mod request;
mod sentinel;
mod server;
mod warnings;

pub use fate::{Broken, Fate, Mended, Mending, Refused, Trace};
pub use fence::{Operation, Question, RedisFence, RedisScript, Write};

use crate::{Answer, Description, Rows, Sink, SinkError};
use place::Place;
use program::Verb;
use server::Server;
use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, ResourceName, SinkId, Token};

/// So many fences are listed by one script at most: a server does nothing else meanwhile.
const PAGE: usize = 1_000;

/// The sealing side of a sink in Redis, alone or under Sentinel. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RedisSink(Arc<Server>);

impl RedisSink {
    /// Opens the sink at an address, which [`connect`](crate::connect) describes, and makes it when `create=true` is asked for.
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError`] when the address makes no sense, the server cannot be reached, or the sink is not there or is under another
    /// rule.
    pub fn open(url: &str) -> Result<Self, SinkError> {
        let place = Place::parse(url).map_err(|why| SinkError::Address { url: crate::shown(url), why })?;
        let server = Server::new(place);
        server.rights()?;
        if server.place.create {
            server.create()?;
        }
        // Whether it is there, and under this rule.
        server.list(None, 0)?;
        Ok(Self(Arc::new(server)))
    }

    /// The counterpart for writes, on connections of the caller's own.
    #[must_use]
    pub fn fence(&self) -> RedisFence {
        self.0.fence.clone()
    }

    /// A connection of the caller's own to the primary, with the same user and TLS. What it is asked is bounded by the
    /// address's `wait`.
    ///
    /// # Errors
    /// [`SinkError`]: there is no connection; the message says why.
    #[must_use = "nothing happens before it is awaited"]
    pub fn connection(&self) -> Answer<'_, Result<::redis::Connection, SinkError>> {
        self.answer(|server| Ok(server.link()?.connection))
    }

    fn answer<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Server) -> Result<T, SinkError> + Send + 'static,
    ) -> Answer<'a, Result<T, SinkError>> {
        let server = Arc::clone(&self.0);
        Box::pin(blocking::unblock(move || work(&server)))
    }
}

impl Sink for RedisSink {
    fn id(&self) -> &SinkId {
        &self.0.place.id
    }

    fn rule(&self) -> Rule {
        self.0.place.rule
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        let resource = resource.clone();
        self.answer(move |server| server.describe(&resource))
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let (token, generation, enrolled) = (token.clone(), generation.clone(), enrolled.clone());
        self.answer(move |server| server.seal(&token, &generation, &enrolled))
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        let resource = resource.clone();
        self.answer(move |server| server.forget(&resource, cut))
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        let after = after.cloned();
        self.answer(move |server| server.list(after, limit))
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        self.answer(Server::reopen)
    }

    fn may_lose(&self) -> Option<&'static str> {
        Some("a failover may lose the newest writes, and the newest seal with them")
    }

    /// By the name of the setting or the key: eviction, times to live, a server that does not save.
    fn warnings(&self) -> Answer<'_, Result<Vec<String>, SinkError>> {
        self.answer(warnings::warnings)
    }
}

impl Server {
    fn rule(&self) -> Vec<u8> {
        self.place.rule.name().into()
    }

    fn create(&self) -> Result<(), SinkError> {
        self.ask(Verb::Create, vec![self.rule()], |mut answer| match answer.word()?.as_str() {
            "made" | "there" => Ok(()),
            other => Err(answer.wrong(format_args!("{other:?} is no answer to a creation"))),
        })
    }

    fn describe(&self, resource: &ResourceName) -> Result<Description, SinkError> {
        self.ask(Verb::Describe, vec![resource.as_str().into(), self.rule()], |mut answer| {
            answer.expect("ok")?;
            Ok(Description { generation: answer.generation()?, floor: answer.floor()?, row: answer.row()? })
        })
    }

    fn seal(&self, token: &Token, generation: &Generation, enrolled: &BTreeSet<SinkId>) -> Result<Sealing, SinkError> {
        if self.place.rule == Rule::HighWater {
            return Err(SinkError::NeverSealed { place: self.place.shown.clone() });
        }
        let mut args = Vec::from(fence::shown(token, self.place.rule));
        let enrolled: Vec<_> = enrolled.iter().map(SinkId::as_str).collect();
        args.extend([answer::kept(generation).into(), enrolled.join("\n").into()]);
        self.ask(Verb::Seal, args, answer::sealing)
    }

    fn forget(&self, resource: &ResourceName, cut: Epoch) -> Result<Forgetting, SinkError> {
        let args = vec![resource.as_str().into(), cut.to_string().into(), self.rule()];
        self.ask(Verb::Forget, args, answer::forgetting)
    }

    fn reopen(&self) -> Result<Generation, SinkError> {
        self.ask(Verb::Reopen, vec![self.rule()], |mut answer| {
            answer.expect("ok")?;
            answer.generation()
        })
    }

    fn list(&self, mut after: Option<ResourceName>, limit: usize) -> Result<Rows, SinkError> {
        let mut all = Rows { rows: Vec::new(), floor: None };
        loop {
            let piece = (limit - all.rows.len()).min(PAGE);
            let from = after.as_ref().map_or("", ResourceName::as_str);
            let args = vec![self.rule(), from.into(), piece.to_string().into()];
            let before = all.rows.len();
            all.floor = self.ask(Verb::Rows, args, |mut answer| {
                answer.expect("ok")?;
                let floor = answer.floor()?;
                while !answer.is_at_end() {
                    let name = ResourceName::new(answer.text()?).map_err(|error| answer.wrong(error))?;
                    match answer.row()? {
                        Some(row) => all.rows.push((name, row)),
                        None => return Err(answer.wrong(format_args!("{name} has an empty fence"))),
                    }
                }
                Ok(floor)
            })?;
            if all.rows.len() - before < piece || all.rows.len() == limit {
                return Ok(all);
            }
            after = all.rows.last().map(|(name, _)| name.clone());
        }
    }
}
