//! A database with a sink and a table of effects, and the Rust door to both.

use crate::authority::InPostgres;
use crate::id;
use sha2::{Digest as _, Sha256};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::fence::Rule;
use tenure_core::{Digest, OperationId, Outcome, ResourceName, Token, Verdict};
use tenure_servers::{PgBouncer, Postgres};
use tenure_sink::conformance::{Capabilities, Held, SetAuthority, SinkUnderTest, answered};
use tenure_sink::{ApplyError, Lookup, PostgresFence, PostgresSink, Sink, SinkError};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, NoTls, Transaction};

/// How long its sinks wait: long enough for an end that was ordered, short enough for a test.
pub(super) const WAIT: Duration = Duration::from_millis(900);

/// One handle: a sealing side, and a connection of its own.
pub(super) struct Database {
    pub(super) url: String,
    pub(super) sink: PostgresSink,
    pub(super) runtime: Arc<Runtime>,
    client: Mutex<Option<Client>>,
    authority: Option<InPostgres>,
}

impl Database {
    /// A new one of the shared server.
    pub(super) fn create(rule: Rule) -> Self {
        Self::at(Postgres::shared().database(), rule)
    }

    /// The same, reached through a pooler that gives a connection to each transaction anew.
    pub(super) fn pooled(bouncer: &PgBouncer, rule: Rule) -> Self {
        Self::at(bouncer.url_of(&Postgres::shared().database()), rule)
    }

    pub(super) fn at(url: String, rule: Rule) -> Self {
        if rule == Rule::Held {
            InPostgres::create(&url);
        }
        let sink = PostgresSink::create(&url, id(), rule).unwrap().with_wait(WAIT);
        answered(sink.ready()).unwrap();
        let database = Self::open(url, sink);
        database.run("CREATE TABLE IF NOT EXISTS shop (resource text PRIMARY KEY, value text)");
        database
    }

    /// One that is there already, and may take no writes yet.
    pub(super) fn at_standby(url: String) -> Self {
        let sink = PostgresSink::open(&url, id(), Rule::Sealed).unwrap().with_wait(WAIT);
        Self::open(url, sink)
    }

    fn open(url: String, sink: PostgresSink) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let authority = (sink.rule() == Rule::Held).then(|| InPostgres::at(&url));
        Self { url, sink, runtime: Arc::new(runtime), client: Mutex::default(), authority }
    }

    /// Another handle, with nothing shared in memory.
    pub(super) fn anew(&self) -> Self {
        Self::open(self.url.clone(), PostgresSink::open(&self.url, id(), self.sink.rule()).unwrap().with_wait(WAIT))
    }

    /// A connection of its own.
    pub(super) fn connect(&self) -> Client {
        self.runtime.block_on(connect(&self.url))
    }

    /// Runs statements that have to succeed.
    pub(super) fn run(&self, sql: &str) {
        self.transaction(async |client| {
            client.batch_execute(sql).await.unwrap_or_else(|error| panic!("`{sql}`: {error:?}"));
        });
    }

    /// Works on this handle's connection, which is made anew when it is gone.
    pub(super) fn transaction<T>(&self, work: impl AsyncFnOnce(&mut Client) -> T) -> T {
        let mut kept = self.client.lock().unwrap();
        let client = match kept.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => self.connect(),
        };
        self.runtime.block_on(work(kept.insert(client)))
    }
}

pub(super) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// Sets the one value of a resource.
pub(super) async fn set(tx: &Transaction<'_>, resource: &ResourceName, value: &str) -> Result<Outcome, Error> {
    let put = "INSERT INTO shop VALUES ($1, $2) ON CONFLICT (resource) DO UPDATE SET value = excluded.value";
    // Unnamed: a pooler may give the next transaction another connection.
    tx.execute_typed(put, &[(&resource.as_str(), Type::TEXT), (&value, Type::TEXT)]).await?;
    Ok(Outcome::new(format!("wrote {value}")).unwrap())
}

pub(super) fn digest(value: &str) -> Digest {
    Digest(Sha256::digest(value).into())
}

/// A statement of the caller's own that failed, for the suite, which repeats what may be repeated.
fn repeated(error: &Error) -> SinkError {
    match error.code() {
        Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED) => {
            SinkError::Repeat { place: "the test's transaction".into(), why: error.to_string() }
        }
        _ => panic!("{error:?}"),
    }
}

async fn write(
    client: &mut Client,
    fence: &PostgresFence,
    token: &Token,
    operation: Option<&OperationId>,
    value: &str,
) -> Result<Verdict, SinkError> {
    let mut tx = client.transaction().await.unwrap();
    let verdict = match operation {
        None => match fence.admit(&tx, token).await? {
            Err(verdict) => verdict,
            Ok(admitted) => {
                assert_eq!(admitted.epoch(), token.epoch);
                set(&tx, &token.resource, value).await.map_err(|error| repeated(&error))?;
                Verdict::Written
            }
        },
        Some(operation) => {
            let effect = async |tx: &Transaction<'_>| set(tx, &token.resource, value).await;
            let applied = fence.apply(&mut tx, token, operation, &digest(value), effect).await;
            applied.map_err(|error| match error {
                ApplyError::Sink(error) => error,
                ApplyError::Effect(error) => repeated(&error),
            })?
        }
    };
    tx.commit().await.map_err(|error| repeated(&error))?;
    Ok(verdict)
}

impl SinkUnderTest for Database {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { seals_past_a_stopped_writer: true }
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        Box::new(self.anew())
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        let url = format!("{}?schema=missing", self.url);
        let sink = PostgresSink::open(&url, id(), self.sink.rule()).unwrap();
        let error = answered(sink.ready()).err();
        let there = self.transaction(async |client| {
            let sql = "SELECT FROM pg_namespace WHERE nspname = 'missing'";
            client.query_typed(sql, &[]).await.unwrap().len()
        });
        (error, there > 0)
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        let fence = self.sink.fence().unwrap();
        self.transaction(async |client| write(client, &fence, token, operation, value).await)
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        let fence = self.sink.fence().unwrap();
        self.transaction(async |client| {
            let mut tx = client.transaction().await.unwrap();
            let Some(operation) = operation else {
                let admitted = fence.admit(&tx, token).await.unwrap().unwrap();
                assert_eq!(admitted.epoch(), token.epoch);
                set(&tx, &token.resource, "half").await.unwrap();
                return tx.rollback().await.unwrap();
            };
            let effect = async |tx: &Transaction<'_>| {
                set(tx, &token.resource, "half").await.unwrap();
                Err::<Outcome, _>("the effect's own reason")
            };
            let failed = fence.apply(&mut tx, token, operation, &Digest([0; 32]), effect).await;
            assert!(matches!(failed, Err(ApplyError::Effect("the effect's own reason"))), "{failed:?}");
            // Committing shows that nothing of it was left in the transaction.
            tx.commit().await.unwrap();
        });
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        let fence = self.sink.fence().unwrap();
        self.transaction(async |client| {
            let tx = client.transaction().await.unwrap();
            let found = fence.lookup(&tx, token, operation).await?;
            tx.commit().await.map_err(|error| repeated(&error))?;
            Ok(found)
        })
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        self.transaction(async |client| {
            let get = "SELECT value FROM shop WHERE resource = $1";
            let row = client.query_typed_opt(get, &[(&resource.as_str(), Type::TEXT)]).await;
            row.unwrap().map(|row| row.get(0))
        })
    }

    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        Box::new(Open::begin(self, token))
    }

    fn authority(&self) -> Option<&dyn SetAuthority> {
        self.authority.as_ref().map(|authority| authority as &dyn SetAuthority)
    }
}

/// A transaction that is open on a connection of its own.
pub(super) struct Open {
    runtime: Arc<Runtime>,
    go_on: oneshot::Sender<String>,
    ended: oneshot::Receiver<Result<Verdict, String>>,
}

impl Open {
    pub(super) fn begin(database: &Database, token: &Token) -> Self {
        let (go_on, value) = oneshot::channel::<String>();
        let (end, ended) = oneshot::channel();
        let (admitted, is_admitted) = oneshot::channel();
        let (url, token, fence) = (database.url.clone(), token.clone(), database.sink.fence().unwrap());
        database.runtime.spawn(async move {
            let mut client = connect(&url).await;
            let tx = client.transaction().await.unwrap();
            let epoch = fence.admit(&tx, &token).await.unwrap().unwrap().epoch();
            admitted.send(epoch).unwrap();
            // Without a word it was dropped with its test.
            let Ok(value) = value.await else { return };
            let finished = async {
                set(&tx, &token.resource, &value).await?;
                tx.commit().await?;
                Ok::<_, Error>(Verdict::Written)
            };
            drop(end.send(finished.await.map_err(|error| error.to_string())));
        });
        let runtime = Arc::clone(&database.runtime);
        runtime.block_on(is_admitted).unwrap();
        Self { runtime, go_on, ended }
    }
}

impl Held for Open {
    fn finish(self: Box<Self>, value: &str) -> Result<Verdict, String> {
        self.go_on.send(value.to_owned()).unwrap();
        self.runtime.block_on(self.ended).unwrap()
    }
}
