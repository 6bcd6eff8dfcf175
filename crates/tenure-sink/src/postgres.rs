//! Effects in a PostgreSQL database.
//!
//! # What is not guaranteed
//!
//! * **A writer that never rests is not ended.** A seal waits for every transaction that has checked an older token. It looks
//!   around after a third of its wait, at most a second, and as long before its end, and ends a session that does nothing in
//!   such a transaction (idle in it, or waiting for a client that does not read); one that runs a statement, or sends one after the other, it waits for, and answers
//!   [`SinkError::HeldBy`] with its pid when the wait is over. `statement_timeout` bounds the one, PostgreSQL 17's
//!   `transaction_timeout` the other. It ends nobody when the sink's owner has not the right to (`pg_signal_backend`), and
//!   nobody when the same token is sealed once more.
//! * **A volume that was put back** keeps its system identifier and its timeline, and two standbys that were promoted apart
//!   share theirs: call [`Sink::reopen`] before any worker starts. A promotion, a recovery to an earlier point, a dump
//!   that was put back into a new schema and a copy of the database in its place are noticed; a dump of the data alone is not.
//! * When a standby is promoted that had not received everything, seals that were answered are gone. After a promotion the generation is another one, and nothing is admitted until it is sealed anew. Whoever promotes
//!   has to stop the old primary first: it goes on admitting what it knows.
//! * With `fsync=off` or `full_page_writes=off` a crash of the server's machine may lose them, and nothing notices
//!   ([`Sink::warnings`]). `synchronous_commit=off` loses none: a seal waits for the disk all the same. Effects are as durable as
//!   the caller's own commits.
//! * **Protected tables** refuse statements, not their owners: who may alter a table may drop its trigger. `DROP`, `ALTER` and
//!   `DETACH PARTITION` are not statements about rows. See `docs/postgres-sink.md`.
//! * Effects outside this database are not covered, foreign tables among them.
//!
//! # How it works
//!
//! The check is a function in the database (`first.sql`), with two doors: SQL for every language, and this one. A writer
//! takes a shared advisory lock of the resource, which a seal takes alone, and then looks at the fence's row in a statement of its
//! own: at READ COMMITTED that statement sees every seal that had the lock before. A transaction with a snapshot might believe one
//! that is older than the seal, so there the row is locked as well, `FOR SHARE`, which fails then. Row locks alone would let
//! writers that follow each other closely hold a seal off for ever; and sixteen writers that share the lock of one row write down
//! each time who has it. The row is not written unless the token changes. All locks end with the transaction, so a pooler that gives a
//! connection to each transaction anew is no trouble.
//!
//! A reopening changes all rows, and takes their table alone: it waits for every transaction that has looked at a fence.
//!
//! The generation is the system identifier, the database's and the tables' own numbers, the timeline and the number of
//! reopenings. A check compares it with what the row was sealed in; while the server runs without a break since then, and the
//! table's file is the same, these say it and cost less.
//!
//! # Who may do what
//!
//! Tokens are no passwords, but an Ed25519 signature cannot be verified here: a fence is raised by whoever may call `seal`. Give that
//! right to the role of the holders' library alone (`SELECT tenure.allow('holder', 'seal')`), and to the roles that write
//! `SELECT tenure.allow('app', 'write')`: they can then neither seal, nor see a grant that they were not given.
//!
//! # How it is used
//!
//! ```no_run
//! # use tenure_core::{SinkId, Token, fence::Rule};
//! # use tenure_sink::{PostgresFence, PostgresSink};
//! # async fn work(client: &mut tokio_postgres::Client, token: Token) -> Result<(), Box<dyn std::error::Error>> {
//! // The takeover seals through this one.
//! let sink = PostgresSink::open("postgres://holder@db1/shop", SinkId::new("shop")?, Rule::Sealed)?;
//!
//! // The worker writes in its own transaction.
//! let fence = PostgresFence::default();
//! let tx = client.transaction().await?;
//! match fence.admit(&tx, &token).await? {
//!     Ok(_admitted) => {
//!         tx.execute("UPDATE document SET title = 'new' WHERE id = 7", &[]).await?;
//!         tx.commit().await?;
//!     }
//!     Err(verdict) => println!("refused: {verdict}"), // dropping `tx` rolls it back
//! }
//! # Ok(())
//! # }
//! ```

mod failure;
mod fence;
mod ledger;
mod link;
mod place;
mod rows;
mod schema;
#[cfg(feature = "sqlx")]
pub(crate) mod sqlx;
mod tls;

pub use fence::{Admitted, PostgresFence};
pub use ledger::{PostgresLedger, ledger_script};
pub use schema::{Migration, migrations, script};

use crate::address::WAIT_MAX;
use crate::{Answer, Description, Rows, Sink, SinkError};
use link::{Parameter, Server, at_home};
use place::Place;
use rows::{DESCRIPTION, Read, first};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, ResourceName, SinkId, Token};
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, Row};

/// The sealing side of a PostgreSQL database. Cheap to clone. It connects at its first call, and again whenever a connection
/// is gone: a server that is down is no reason for a worker not to start.
#[derive(Clone, Debug)]
pub struct PostgresSink {
    server: Arc<Server>,
    id: SinkId,
}

impl PostgresSink {
    /// Takes the address of a sink, `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=tenure`. One that is not there is not
    /// made, unless the address says `create=true`. The rule is this one, whatever the address says.
    ///
    /// # Errors
    /// [`SinkError::Address`] when it makes no sense.
    pub fn open(url: &str, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        let (place, _) = Place::parse(url)?;
        Ok(Self { server: Arc::new(Server::new(Place { rule, ..place })), id })
    }

    /// The same, but its first call makes the sink where it is missing.
    ///
    /// # Errors
    /// [`SinkError::Address`] when it makes no sense.
    pub fn create(url: &str, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        let (place, _) = Place::parse(url)?;
        Ok(Self { server: Arc::new(Server::new(Place { rule, create: true, ..place })), id })
    }

    /// The sink at an address, under the id and the rule that it says.
    pub(crate) fn at(url: &str) -> Result<Self, SinkError> {
        let (place, id) = Place::parse(url)?;
        let id = id.map_or_else(|| place.usual_id(), Ok)?;
        Ok(Self { server: Arc::new(Server::new(place)), id })
    }

    /// The same sink with another bound on waiting for other transactions: at most an hour, and 5 seconds unless said
    /// otherwise.
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        let place = Place { wait: wait.min(WAIT_MAX), ..self.server.place.clone() };
        Self { server: Arc::new(Server::new(place)), id: self.id }
    }

    /// The sink's counterpart for the caller's own transactions.
    ///
    /// # Errors
    /// Never for a sink that could be opened.
    pub fn fence(&self) -> Result<PostgresFence, SinkError> {
        PostgresFence::in_schema(&self.server.place.schema)
    }

    /// Connects and looks at the sink, and makes it if that was asked for. Every call does so where it is still to be done.
    ///
    /// # Errors
    /// [`SinkError`]: it cannot be used now; the message says why.
    #[must_use = "nothing happens before it is awaited"]
    pub fn ready(&self) -> Answer<'_, Result<(), SinkError>> {
        let server = Arc::clone(&self.server);
        let work = async move { server.ready().await };
        Box::pin(at_home(&self.server, work))
    }

    /// A session of the caller's own at the same place, with the same user and TLS. This process's thread for sinks in
    /// PostgreSQL drives it: the caller needs no runtime. It ends when it is dropped.
    ///
    /// # Errors
    /// [`SinkError`]: there is no session; the message says why.
    #[must_use = "nothing happens before it is awaited"]
    pub fn client(&self) -> Answer<'_, Result<tokio_postgres::Client, SinkError>> {
        let server = Arc::clone(&self.server);
        let work = async move { Ok(server.link().await?.client) };
        Box::pin(at_home(&self.server, work))
    }

    /// Calls a function of the schema, at the isolation level that the server takes by itself unless another one is said, and
    /// reads its answer.
    fn ask<'a, T: Send + 'static>(
        &'a self,
        doing: &'static str,
        columns: &'static str,
        (function, level): (&'static str, Option<IsolationLevel>),
        parameters: Vec<Parameter>,
        read: impl FnOnce(&[Row], &str, Rule) -> Result<T, SinkError> + Send + 'static,
    ) -> Answer<'a, Result<T, SinkError>> {
        let server = Arc::clone(&self.server);
        let work = async move {
            let sql = format!("SELECT {columns} FROM {}.{function}", server.place.schema);
            let rows = server.ask(doing, &sql, &parameters, level).await?;
            read(&rows, &server.place.to_string(), server.place.rule)
        };
        Box::pin(at_home(&self.server, work))
    }

    fn wait_parameter(&self) -> Parameter {
        (Box::new(i64::try_from(self.server.place.wait.as_millis()).unwrap_or(i64::MAX)), Type::INT8)
    }
}

impl Sink for PostgresSink {
    fn id(&self) -> &SinkId {
        &self.id
    }

    fn rule(&self) -> Rule {
        self.server.place.rule
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        self.ask("describing", DESCRIPTION, ("describe($1)", None), vec![text(resource.as_str())], rows::description)
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        if self.rule() == Rule::HighWater {
            let place = self.server.place.to_string();
            return Box::pin(async { Err(SinkError::NeverSealed { place }) });
        }
        let enrolled: Vec<String> = enrolled.iter().map(ToString::to_string).collect();
        let parameters: Vec<Parameter> = vec![
            text(token.resource.as_str()),
            (Box::new(token.epoch.as_i64()), Type::INT8),
            text(&token.grant.to_string()),
            text(generation.as_str()),
            (Box::new(enrolled), Type::TEXT_ARRAY),
            self.wait_parameter(),
        ];
        self.ask(
            "sealing",
            "sealing, epoch, replace(grant_id::text, '-', ''), generation, seal_no, enrolled, floor",
            ("seal($1, $2, $3::uuid, $4, $5, $6 * interval '1 millisecond')", None),
            parameters,
            |rows, place, _| Read { row: first(rows, place)?, place }.sealing(),
        )
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        let parameters: Vec<Parameter> =
            vec![text(resource.as_str()), (Box::new(cut.as_i64()), Type::INT8), self.wait_parameter()];
        self.ask(
            "forgetting",
            "forgetting, floor, epoch, replace(grant_id::text, '-', '')",
            ("forget($1, $2, $3 * interval '1 millisecond')", Some(IsolationLevel::ReadCommitted)),
            parameters,
            |rows, place, _| Read { row: first(rows, place)?, place }.forgetting(),
        )
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        let most = i32::try_from(limit).unwrap_or(i32::MAX);
        let parameters: Vec<Parameter> =
            vec![text(after.map_or("", ResourceName::as_str)), (Box::new(most), Type::INT4)];
        self.ask("listing", DESCRIPTION, ("rows($1, $2)", None), parameters, move |rows, place, rule| {
            rows::list(rows, place, rule, limit)
        })
    }

    fn warnings(&self) -> Answer<'_, Result<Vec<String>, SinkError>> {
        let server = Arc::clone(&self.server);
        let work = async move {
            // A crash could take back what was answered, in the same generation.
            let sql = "SELECT name || '=off: a crash of the server''s machine may lose a seal that was answered, and nothing \
                       notices; switch it on' FROM pg_settings \
                       WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name";
            let rows = server.ask("looking at the settings", sql, &[], None).await?;
            Ok(rows.iter().filter_map(|row| row.try_get(0).ok()).collect())
        };
        Box::pin(at_home(&self.server, work))
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        let parameters = vec![self.wait_parameter()];
        self.ask(
            "reopening",
            "reopen",
            ("reopen('by a program', $1 * interval '1 millisecond')", Some(IsolationLevel::ReadCommitted)),
            parameters,
            |rows, place, _| Read { row: first(rows, place)?, place }.reopened(),
        )
    }
}

fn text(text: &str) -> Parameter {
    (Box::new(text.to_owned()), Type::TEXT)
}
