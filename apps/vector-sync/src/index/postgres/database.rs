//! The database of an index: how it comes to be, and this process's connections to it.

use super::place::Place;
use super::stop::{Stop, explained};
use super::vectors;
use crate::index::catalog::postgres::{CREATE, Records, VERSION};
use crate::index::catalog::{belongs, no_sink, sink_id};
use crate::index::{IndexError, WriteError};
use crate::tenant::Tenant;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tenure::Token;
use tenure::core::fence::Rule;
use tenure::sink::{PostgresFence, PostgresSink, Sink};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::{Client, IsolationLevel, Transaction};

/// How many calls of one index are under way at once.
const TURNS: usize = 8;

/// How many connections are kept when nobody calls.
const IDLE_MAX: usize = 4;

/// How long a call may take until its commit, or its whole reading; and how long the commit may.
const WORK_TIMEOUT: Duration = Duration::from_secs(40);
const COMMIT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long an index of vectors may take to be made.
const INDEX_TIMEOUT: Duration = Duration::from_secs(600);

/// The same, by the server. It ends a transaction that its program has left, and what waits for one.
const BOUNDS: &str = "SET LOCAL statement_timeout = '30s'; SET LOCAL lock_timeout = '5s'; \
                      SET LOCAL idle_in_transaction_session_timeout = '30s'";

/// The database of an index. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::index) struct Database(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    place: Place,
    /// Reads and writes, and makes nothing.
    door: PostgresSink,
    fence: PostgresFence,
    /// Whether it holds vectors beside the records.
    vectors: bool,
    turns: Arc<Semaphore>,
    idle: Mutex<Vec<Client>>,
    /// The path on which tables and the type of vectors are found, once it was looked up.
    path: OnceLock<String>,
}

/// A connection that is this call's own. It is closed when it is dropped before [`keep`](Self::keep): the server rolls back
/// whatever was under way.
struct Session {
    client: Client,
    database: Arc<Shared>,
    _turn: OwnedSemaphorePermit,
}

impl Database {
    /// The database at an address; nothing is asked yet.
    pub(in crate::index) fn new(url: &str, vectors: bool) -> Result<Self, IndexError> {
        let place = Place::parse(url)?;
        // Nobody seals by this name.
        let door = PostgresSink::open(&place.url, no_sink(), Rule::Sealed)?;
        let fence = door.fence()?;
        let turns = Arc::new(Semaphore::new(TURNS));
        Ok(Self(Arc::new(Shared { place, door, fence, vectors, turns, idle: Mutex::default(), path: OnceLock::new() })))
    }

    pub(in crate::index) fn place(&self) -> &Place {
        &self.0.place
    }

    pub(in crate::index) fn fence(&self) -> &PostgresFence {
        &self.0.fence
    }

    /// Makes what is missing, and returns the sink of a tenant.
    pub(in crate::index) async fn make(&self, tenant: &Tenant) -> Result<Arc<dyn Sink>, IndexError> {
        const DOING: &str = "making the index";
        let place = &self.0.place;
        let maker = PostgresSink::create(&place.url, sink_id(tenant), Rule::Sealed)?;
        self.bounded(WORK_TIMEOUT, DOING, async {
            maker.ready().await?;
            let mut session = self.session().await?;
            if !session.is_made().await? {
                let tx = session.client.transaction().await?;
                make(&tx, place, self.0.vectors).await?;
                tx.commit().await?;
            }
            session.keep();
            Ok(())
        })
        .await
        .map_err(|stop| stop.read(place, DOING))?;
        Ok(Arc::new(maker))
    }

    /// A connection, as soon as it is this call's turn.
    async fn session(&self) -> Result<Session, Stop> {
        let database = Arc::clone(&self.0);
        let turn = Arc::clone(&self.0.turns).acquire_owned().await;
        let _turn = turn.map_err(|_| self.unreachable("this program is ending".to_owned()))?;
        loop {
            let kept = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let client = match kept {
                Some(client) if client.is_closed() => continue,
                Some(client) => client,
                None => self.0.door.client().await?,
            };
            return Ok(Session { client, database, _turn });
        }
    }

    /// Ends the work when it takes too long.
    async fn bounded<T>(
        &self,
        bound: Duration,
        doing: &'static str,
        work: impl Future<Output = Result<T, Stop>>,
    ) -> Result<T, Stop> {
        let late = |_| self.unreachable(format!("{doing} took longer than {bound:?}, and was given up"));
        timeout(bound, work).await.map_err(late)?
    }

    fn unreachable(&self, why: String) -> IndexError {
        IndexError::Unreachable { place: self.0.place.name.clone(), why }
    }
}

impl Database {
    /// Reads as of one moment; `None` where there is nothing to read yet. Never makes anything.
    pub(in crate::index) async fn read<T>(
        &self,
        tenant: &Tenant,
        doing: &'static str,
        work: impl AsyncFnOnce(Records<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>, IndexError> {
        self.look(doing, async |client| work(self.records(client, tenant)).await).await
    }

    /// The same for what is no single tenant's.
    pub(super) async fn look<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&Client) -> Result<T, Stop>,
    ) -> Result<Option<T>, IndexError> {
        let read = self.bounded(WORK_TIMEOUT, doing, async {
            let session = self.session().await?;
            let path = session.path().await?;
            let begin =
                format!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {BOUNDS}; SET LOCAL search_path = {path}");
            session.client.batch_execute(&begin).await?;
            let done = work(&session.client).await?;
            session.client.batch_execute("COMMIT").await?;
            session.keep();
            Ok(done)
        });
        match read.await {
            Ok(done) => Ok(Some(done)),
            Err(stop) if stop.is_missing() => Ok(None),
            Err(stop) => Err(stop.read(&self.0.place, doing)),
        }
    }

    /// Changes something in one transaction, in which the token is checked first.
    pub(in crate::index) async fn change<T>(
        &self,
        tenant: &Tenant,
        token: &Token,
        doing: &'static str,
        work: impl AsyncFnOnce(Records<'_>) -> Result<T, Stop>,
    ) -> Result<T, WriteError> {
        belongs(&self.0.place.name, tenant, token)?;
        let admitted = async |tx: &mut Transaction<'_>| match self.0.fence.admit(tx, token).await? {
            Ok(_admitted) => work(self.records(tx.client(), tenant)).await,
            Err(verdict) => Err(WriteError::Refused(verdict).into()),
        };
        self.transact(doing, admitted).await
    }

    /// Runs a transaction that writes. It is rolled back when the work fails.
    pub(in crate::index) async fn transact<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut Transaction<'_>) -> Result<T, Stop>,
    ) -> Result<T, WriteError> {
        self.transact_within(WORK_TIMEOUT, doing, work).await
    }

    async fn transact_within<T>(
        &self,
        bound: Duration,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut Transaction<'_>) -> Result<T, Stop>,
    ) -> Result<T, WriteError> {
        let place = &self.0.place;
        let session = self.bounded(bound, doing, self.session()).await;
        let mut session = session.map_err(|stop| stop.write(place, doing))?;
        let begun = self.bounded(bound, doing, async {
            let path = session.path().await?;
            let begin = session.client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
            let mut tx = begin.start().await?;
            tx.batch_execute(&format!("{BOUNDS}; SET LOCAL search_path = {path}")).await?;
            let done = work(&mut tx).await?;
            Ok((tx, done))
        });
        let (tx, done) = begun.await.map_err(|stop| stop.write(place, doing))?;
        self.commit(tx, doing).await?;
        session.keep();
        Ok(done)
    }

    /// Makes the index of the vectors that are here: in a transaction of its own, in which no token is checked. One that was checked
    /// would keep a takeover waiting for minutes, and nobody reads what a stale builder adds to its own generation.
    pub(super) async fn make_index(&self, tenant: &Tenant, here: i64) -> Result<(), WriteError> {
        const DOING: &str = "making an index of vectors";
        let patience = format!("{}s", INDEX_TIMEOUT.as_secs());
        let make = async |tx: &mut Transaction<'_>| {
            vectors::make_index(&self.records(tx.client(), tenant), here, &patience).await
        };
        self.transact_within(INDEX_TIMEOUT, DOING, make).await
    }

    /// The records of a tenant, in the transaction that is open on this connection.
    pub(in crate::index) fn records<'t>(&'t self, client: &'t Client, tenant: &'t Tenant) -> Records<'t> {
        Records { client, tenant, place: &self.0.place }
    }

    /// Lets the transaction stand.
    ///
    /// # Errors
    /// [`WriteError::Unknown`] when no answer came: it stands, or it does not.
    async fn commit(&self, tx: Transaction<'_>, doing: &'static str) -> Result<(), WriteError> {
        let place = &self.0.place;
        let error = match timeout(COMMIT_TIMEOUT, tx.commit()).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error,
            Err(_) => {
                let why = format!("{}: the commit was not answered within {COMMIT_TIMEOUT:?}", place.name);
                return Err(WriteError::Unknown(why));
            }
        };
        let explained = explained(place, doing, &error);
        // Only what the server says of this transaction itself proves that nothing stands.
        match error.code().map(|code| code.code()) {
            Some(code) if !["08", "57", "XX"].iter().any(|class| code.starts_with(class)) => Err(explained.into()),
            _ => Err(WriteError::Unknown(explained.to_string())),
        }
    }
}

impl Session {
    /// The path on which the tables and the type of vectors are found. What is not there is an error that says so.
    async fn path(&self) -> Result<String, Stop> {
        if let Some(path) = self.database.path.get() {
            return Ok(path.clone());
        }
        let Place { name, schema, .. } = &self.database.place;
        let sql = format!(
            "SELECT max(version), (SELECT quote_ident(n.nspname) FROM pg_extension AS e
                                   JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector')
             FROM {schema}.index_version"
        );
        let row = self.client.query_typed_one(&sql, &[]).await?;
        let (found, vectors): (Option<i32>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
        let found = found.unwrap_or_default();
        if found != VERSION {
            let why = format!(
                "its tables have the version {found}, this program knows {VERSION}: use the program that made them, or sync \
                 into another schema (schema=NAME)"
            );
            return Err(IndexError::Failed { place: name.clone(), doing: "opening", why }.into());
        }
        let path = match vectors.filter(|_| self.database.vectors) {
            Some(vectors) => format!("{schema}, {vectors}"),
            None => schema.clone(),
        };
        Ok(self.database.path.get_or_init(|| path).clone())
    }

    async fn is_made(&self) -> Result<bool, Stop> {
        let sql = format!("SELECT to_regclass('{}.index_version') IS NOT NULL", self.database.place.schema);
        Ok(self.client.query_typed_one(&sql, &[]).await?.try_get(0)?)
    }

    /// The connection is as it was, and may serve another call.
    fn keep(self) {
        let Self { client, database, .. } = self;
        let mut idle = database.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !client.is_closed() && idle.len() < IDLE_MAX {
            idle.push(client);
        }
    }
}

/// Makes the tables, and adds the type of vectors to the database.
async fn make(tx: &Transaction<'_>, place: &Place, vectors: bool) -> Result<(), Stop> {
    let schema = &place.schema;
    // One after the other; whoever comes later finds it done.
    tx.batch_execute(&format!(
        "{BOUNDS}; SET LOCAL search_path = {schema}, public; SELECT pg_advisory_xact_lock(hashtext('vector-sync'), hashtext('{schema}'))"
    ))
    .await?;
    if vectors {
        extend(tx, place).await?;
    }
    let made = format!("SELECT to_regclass('{schema}.index_version') IS NOT NULL");
    if tx.query_typed_one(&made, &[]).await?.try_get(0)? {
        return Ok(());
    }
    tx.batch_execute(CREATE).await?;
    tx.batch_execute(&format!("INSERT INTO index_version VALUES ({VERSION})")).await?;
    Ok(())
}

async fn extend(tx: &Transaction<'_>, place: &Place) -> Result<(), Stop> {
    let there = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector')";
    if tx.query_typed_one(there, &[]).await?.try_get(0)? {
        return Ok(());
    }
    let failed = |why: String| IndexError::Failed { place: place.name.clone(), doing: "adding pgvector", why };
    let known = "SELECT current_setting('server_version_num')::int / 10000,
                        EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')";
    let row = tx.query_typed_one(known, &[]).await?;
    let (version, is_installed): (i32, bool) = (row.try_get(0)?, row.try_get(1)?);
    if !is_installed {
        let why = format!(
            "the server does not have the extension `vector`: install pgvector for PostgreSQL {version} on its machine (the \
             package postgresql-{version}-pgvector, or from source), or use a server that has it"
        );
        return Err(failed(why).into());
    }
    tx.batch_execute("CREATE EXTENSION IF NOT EXISTS vector").await.map_err(|error| match error.code() {
        Some(code) if code.code() == "42501" => {
            failed("this user may not add it: let the database's owner run CREATE EXTENSION vector".to_owned()).into()
        }
        _ => Stop::from(error),
    })
}
