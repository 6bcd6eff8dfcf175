//! The connections to the server.

use super::direct::is_direct;
use super::fault::{Fault, fault, unconnected};
use super::place::Place;
use super::schema;
use super::time::Time;
use crate::store::home::Home;
use crate::{BootClock, StoreError};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell, oneshot};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Connection, Error, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The other end of a [`Client`].
pub(super) type Wire = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// A parameter of a statement.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// What a connection is for. What may take long, or wait for a lock, keeps nothing else waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Read,
    Renew,
    Step,
    List,
    /// For renewals that wait for somebody else's lock.
    Held,
}

/// One server, and this process's connections to it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) home: Home,
    pub(super) place: Place,
    pub(super) time: Time,
    /// Whether the schema was looked at.
    looked: OnceCell<()>,
    lanes: [Mutex<Slot>; 5],
}

/// A connection, made when it is needed.
#[derive(Debug, Default)]
struct Slot {
    link: Option<Arc<Link>>,
    refused: Option<Refused>,
}

/// The last try to connect failed, and nobody tries again for a moment.
#[derive(Debug)]
struct Refused {
    error: StoreError,
    again_at: u64,
    pause: Duration,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Link {
    client: Client,
    /// The statements that the session keeps. `None`: behind a pooler it keeps nothing.
    kept: Option<Kept>,
    /// Ends the connection at once. Otherwise it ends in order with the client.
    stop: std::sync::Mutex<Option<oneshot::Sender<()>>>,
}

/// How long an answer may take: longer than any wait for a lock.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// How long connecting may take in all, also to a server that takes the connection and says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long looking at the schema may take, or making it: a pooler takes connections also when the server is gone.
const LOOK_TIMEOUT: Duration = Duration::from_secs(15);

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

impl Server {
    pub(super) fn new(url: &str, home: Home) -> Result<Self, StoreError> {
        Ok(Self {
            home,
            place: Place::parse(url)?,
            time: Time::default(),
            looked: OnceCell::new(),
            lanes: Default::default(),
        })
    }

    /// Runs one statement, in a transaction of its own, and waits for its commit.
    pub(super) async fn ask(&self, lane: Lane, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Fault> {
        let link = self.link(lane).await.map_err(Fault::Certain)?;
        link.ask(&self.place, sql, parameters).await
    }

    /// The connection for this, which is made if there is none.
    pub(super) async fn link(&self, lane: Lane) -> Result<Arc<Link>, StoreError> {
        let mut slot = self.lanes[lane as usize].lock().await;
        if let Some(link) = slot.link.as_ref().filter(|link| !link.client.is_closed()) {
            return Ok(Arc::clone(link));
        }
        slot.link = None;
        let now = BootClock.now_nanos();
        if let Some(refused) = slot.refused.as_ref().filter(|refused| now < refused.again_at) {
            return Err(refused.error.clone());
        }
        match self.connected().await {
            Ok(link) => {
                let link = Arc::new(link);
                *slot = Slot { link: Some(Arc::clone(&link)), refused: None };
                Ok(link)
            }
            Err(error) => {
                if error.is_transient() {
                    let pause = slot.refused.as_ref().map_or(PAUSE_MIN, |last| (last.pause * 2).min(PAUSE_MAX));
                    let again_at = BootClock.now_nanos() + u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX / 2);
                    slot.refused = Some(Refused { error: error.clone(), again_at, pause });
                }
                Err(error)
            }
        }
    }

    async fn connected(&self) -> Result<Link, StoreError> {
        let (mut link, connection) = connect(&self.place).await?;
        link.attend(&self.home, connection);
        let looking = self.looked.get_or_try_init(|| schema::settle(&mut link, &self.place));
        match tokio::time::timeout(LOOK_TIMEOUT, looking).await {
            Ok(looked) => {
                looked?;
                link.keep_statements().await;
                Ok(link)
            }
            Err(_) => {
                link.end();
                Err(silent(&self.place, LOOK_TIMEOUT))
            }
        }
    }
}

/// What a server is that has not answered for so long.
pub(super) fn silent(place: &Place, span: Duration) -> StoreError {
    StoreError::Unavailable(format!("{} has not answered for {span:?}", place.shown))
}

/// Opens a connection. Nothing is sent before somebody attends to it.
pub(super) async fn connect(place: &Place) -> Result<(Link, Wire), StoreError> {
    let connecting = place.config.connect(place.tls.clone());
    let (client, connection) = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
        .await
        .map_err(|_| StoreError::Unavailable(format!("{} does not answer", place.shown)))?
        .map_err(|error| unconnected(place, &error))?;
    Ok((Link { client, kept: None, stop: std::sync::Mutex::default() }, connection))
}

impl Link {
    /// Lets the connection do its work.
    pub(super) fn attend(&mut self, home: &Home, connection: Wire) {
        let (stop, stopped) = oneshot::channel();
        self.stop = std::sync::Mutex::new(Some(stop));
        home.spawn(until(stopped, async {
            // Whoever waits for an answer is told as well.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the store has ended");
            }
        }));
    }

    /// For what takes a transaction of several statements.
    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    pub(super) async fn ask(&self, place: &Place, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Fault> {
        if self.client.is_closed() {
            return Err(Fault::Certain(StoreError::Unavailable(format!("{} has closed the connection", place.shown))));
        }
        let statement = match &self.kept {
            // Nothing was asked for yet.
            Some(kept) => match self.statement(place, kept, sql, parameters).await {
                Ok(statement) => Some(statement),
                Err(fault) => return Err(Fault::Certain(fault.into_error())),
            },
            None => None,
        };
        let asking = async {
            match &statement {
                Some(statement) => {
                    let values: Vec<_> = parameters.iter().map(|(value, _)| *value).collect();
                    self.client.query(statement, &values).await
                }
                None => self.client.query_typed(sql, parameters).await,
            }
        };
        let answer = self.within(place, asking).await;
        if let (Err(_), Some(kept)) = (&answer, &self.kept) {
            // It may be for functions that a migration has replaced.
            known(kept).remove(sql);
        }
        answer
    }

    /// The statement that the session keeps, which is made at its first use.
    async fn statement(
        &self,
        place: &Place,
        kept: &Kept,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Statement, Fault> {
        let found = known(kept).get(sql).cloned();
        if let Some(statement) = found {
            return Ok(statement);
        }
        let types: Vec<_> = parameters.iter().map(|(_, of)| of.clone()).collect();
        let statement = self.within(place, self.client.prepare_typed(sql, &types)).await?;
        known(kept).insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Waits for an answer of the server's, so long as one may take.
    async fn within<T>(&self, place: &Place, asking: impl Future<Output = Result<T, Error>>) -> Result<T, Fault> {
        match tokio::time::timeout(ANSWER_TIMEOUT, asking).await {
            Ok(answer) => answer.map_err(|error| fault(place, &error)),
            Err(_) => {
                self.end();
                Err(Fault::Lost(format!("{} has not answered for {ANSWER_TIMEOUT:?}", place.shown)))
            }
        }
    }

    /// Lets the session keep its statements where nobody else uses it: parsing and planning one costs as much as it does.
    async fn keep_statements(&mut self) {
        let direct = tokio::time::timeout(CONNECT_TIMEOUT, is_direct(&self.client)).await;
        self.kept = direct.unwrap_or(false).then(Default::default);
    }

    /// Ends the connection, whatever is under way.
    pub(super) fn end(&self) {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(stop) = stop {
            // An error means that it has ended already.
            let _ = stop.send(());
        }
    }
}

type Kept = std::sync::Mutex<HashMap<String, Statement>>;

fn known(kept: &Kept) -> MutexGuard<'_, HashMap<String, Statement>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the work until it ends or is stopped. When nobody can stop it any more, it goes on.
pub(super) async fn until(stopped: oneshot::Receiver<()>, work: impl Future<Output = ()>) {
    let (mut stopped, mut work) = (pin!(stopped), pin!(work));
    let mut may_stop = true;
    poll_fn(|context| {
        if may_stop {
            match stopped.as_mut().poll(context) {
                Poll::Ready(Ok(())) => return Poll::Ready(()),
                Poll::Ready(Err(_)) => may_stop = false,
                Poll::Pending => {}
            }
        }
        work.as_mut().poll(context)
    })
    .await;
}
