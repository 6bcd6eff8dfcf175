//! The connections to the server, and the thread on which this process talks with it.

use super::failure::{failed, unconnected};
use super::place::Place;
use super::schema;
use crate::SinkError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, IsolationLevel, Row};

/// A parameter of a statement.
pub(super) type Parameter = (Box<dyn ToSql + Sync + Send>, Type);

/// One server, and this process's connections to it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) place: Place,
    idle: Mutex<Vec<Link>>,
    turns: Semaphore,
    /// Whether the schema was looked at.
    looked: AtomicBool,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: Client,
    task: AbortHandle,
}

impl Link {
    /// What carries its bytes.
    pub(super) fn task(&self) -> AbortHandle {
        self.task.clone()
    }
}

/// How many calls of one sink are under way at once.
const TURNS: usize = 8;

/// How many connections are kept when nobody calls.
const IDLE_MAX: usize = 4;

/// How much longer than the wait for others an answer may take.
const ANSWER_GRACE: Duration = Duration::from_secs(5);

/// How long connecting may take in all, also to a server that takes the connection and says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long looking at the schema may take, or making it.
const LOOK_TIMEOUT: Duration = Duration::from_secs(15);

impl Server {
    pub(super) fn new(place: Place) -> Self {
        Self { place, idle: Mutex::default(), turns: Semaphore::new(TURNS), looked: AtomicBool::new(false) }
    }

    /// Runs one statement, in a transaction of its own, and waits for its commit. The statement is unnamed, and nothing is
    /// left behind in a session: so it works through a pooler that gives a connection to each transaction anew. Where no
    /// level is asked for, it is the server's default, and a round trip is all that it takes.
    pub(super) async fn ask(
        &self,
        doing: &'static str,
        sql: &str,
        parameters: &[Parameter],
        level: Option<IsolationLevel>,
    ) -> Result<Vec<Row>, SinkError> {
        let _turn = self.turn().await?;
        let mut link = self.link().await?;
        let parameters: Vec<(&(dyn ToSql + Sync), Type)> =
            parameters.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect();
        let task = link.task();
        let client = &mut link.client;
        let answer = async {
            let Some(level) = level else { return client.query_typed(sql, &parameters).await };
            let tx = client.build_transaction().isolation_level(level).start().await?;
            let rows = tx.query_typed(sql, &parameters).await?;
            tx.commit().await?;
            Ok(rows)
        };
        let answer = self.in_time(self.bound(), &task, answer).await?;
        self.put_back(link);
        answer.map_err(|error| failed(&self.place, doing, &error))
    }

    /// How long an answer may take.
    pub(super) fn bound(&self) -> Duration {
        self.place.wait + ANSWER_GRACE
    }

    /// A turn among the calls of this sink.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, SinkError> {
        match timeout(self.bound(), self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(self.silent(format!("{TURNS} calls before this one are not answered yet"))),
        }
    }

    /// Waits for what is done on a connection. One that has not answered by then is given up.
    pub(super) async fn in_time<T>(
        &self,
        bound: Duration,
        task: &AbortHandle,
        work: impl Future<Output = T>,
    ) -> Result<T, SinkError> {
        timeout(bound, work).await.map_err(|_| {
            task.abort();
            self.silent(format!("it has not answered for {bound:?}"))
        })
    }

    /// Connects, if nothing is connected, and looks at what is there.
    pub(super) async fn ready(&self) -> Result<(), SinkError> {
        let link = self.link().await?;
        self.put_back(link);
        Ok(())
    }

    pub(super) async fn link(&self) -> Result<Link, SinkError> {
        while let Some(link) = self.kept().pop() {
            if !link.client.is_closed() {
                return Ok(link);
            }
        }
        let place = &self.place;
        let (client, connection) = timeout(CONNECT_TIMEOUT, place.config.connect(place.tls.clone()))
            .await
            .map_err(|_| self.silent("it does not answer".to_owned()))?
            .map_err(|error| unconnected(place, &error))?;
        // How it ends is told to whoever waits for an answer.
        let task = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        let link = Link { client, task };
        if !self.looked.load(Ordering::Acquire) {
            self.in_time(LOOK_TIMEOUT, &link.task(), schema::settle(&link, place)).await??;
            self.looked.store(true, Ordering::Release);
        }
        Ok(link)
    }

    pub(super) fn put_back(&self, link: Link) {
        let mut kept = self.kept();
        if !link.client.is_closed() && kept.len() < IDLE_MAX {
            kept.push(link);
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn silent(&self, why: String) -> SinkError {
        SinkError::Unreachable { place: self.place.to_string(), why }
    }
}

/// Runs the work to its end on the one thread that this process has for its sinks in PostgreSQL, also when the returned
/// future is dropped after its first poll. Whoever awaits it needs no runtime.
pub(super) async fn at_home<T: Send + 'static>(
    server: &Arc<Server>,
    work: impl Future<Output = Result<T, SinkError>> + Send + 'static,
) -> Result<T, SinkError> {
    let gone = |why: String| SinkError::Unreachable { place: server.place.to_string(), why };
    let home = home().map_err(|error| gone(format!("no thread can be started: {error}")))?;
    home.spawn(work).await.unwrap_or_else(|error| Err(gone(format!("the call came to no end: {error}"))))
}

fn home() -> std::io::Result<Handle> {
    static HOME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
    let mut home = HOME.lock().unwrap_or_else(PoisonError::into_inner);
    // A forked process does not have the thread.
    let process = std::process::id();
    if let Some((_, handle)) = home.as_ref().filter(|(owner, _)| *owner == process) {
        return Ok(handle.clone());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let run = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("tenure-postgres".to_owned()).spawn(run)?;
    *home = Some((process, handle.clone()));
    Ok(handle)
}
