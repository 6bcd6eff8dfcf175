//! Who waits for which resource: waking by LISTEN and NOTIFY.
//!
//! A notification takes a lock that all who notify in the cluster share until they have committed, so only changes of
//! resources that somebody waits for send one: whoever waits says so in a table, for a while. It says so after all steps
//! that are under way, and looks then: a step that begins later finds it.
//!
//! Listening needs a connection that is one session for good. Behind a pooler that gives one to each transaction it is not
//! to be had, which a notification to itself tells. Then whoever waits is told each second that it may have missed something.

use super::fault::Fault;
use super::link::{Lane, Server, Wire, connect};
use crate::StoreError;
use crate::store::{Hint, Wake, Wakes};
use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tenure_core::ResourceName;
use tokio::sync::Notify;
use tokio_postgres::AsyncMessage;
use tokio_postgres::types::Type;

/// The waiters of this process, and the one connection that listens for them while there are any.
#[derive(Debug)]
pub(super) struct Waiting {
    server: Arc<Server>,
    wakes: Wakes,
    state: Mutex<State>,
    /// There is something new for the listening task to do.
    poke: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// What the server was told that somebody waits for, as long as somebody does.
    told: HashSet<ResourceName>,
    /// What it was not told yet.
    new: HashSet<ResourceName>,
    /// Whether a task listens, or tries to.
    is_served: bool,
    /// What the connection has heard from itself.
    echo: Option<String>,
    /// Whether the connection has ended.
    is_lost: bool,
}

/// How long the server remembers that somebody waits.
const TOLD_FOR: Duration = Duration::from_secs(90);

/// How often it is told again.
const AGAIN: Duration = Duration::from_secs(20);

/// How long a notification to itself may take.
const ECHO: Duration = Duration::from_secs(3);

/// How often those who wait are told, where there is no listening, that they may have missed something.
const DEAF: Duration = Duration::from_secs(1);

/// After how many times listening is tried again there.
const DEAF_TIMES: usize = 60;

/// How long nobody tries again after the connection broke.
const BROKEN: Duration = Duration::from_millis(500);

impl Waiting {
    pub(super) fn new(server: &Arc<Server>) -> Arc<Self> {
        let server = Arc::clone(server);
        Arc::new(Self { server, wakes: Wakes::default(), state: Mutex::default(), poke: Notify::new() })
    }

    pub(super) fn watch(self: &Arc<Self>, resource: &ResourceName) -> Wake {
        let wake = self.wakes.watch(resource);
        let mut state = self.state();
        if !state.told.contains(resource) {
            state.new.insert(resource.clone());
            self.poke.notify_one();
        }
        if !std::mem::replace(&mut state.is_served, true) {
            drop(state);
            self.server.home.spawn(serve(Ear(Arc::clone(self))));
        }
        wake
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the notifications of this store.
    fn channel(&self) -> String {
        format!("tenure_{}", self.server.place.schema)
    }

    /// What a notification says: a letter (what is known of the resource now) and the resource, or one for all, or one to
    /// itself.
    fn heard(&self, said: &str) {
        if let Some(echo) = said.strip_prefix('?') {
            self.state().echo = Some(echo.to_owned());
            self.poke.notify_one();
        } else if said == "*" {
            self.wakes.tell_all();
        } else if let Some((hint, Ok(resource))) = said.split_at_checked(1).map(|(hint, name)| (hint, name.parse())) {
            self.wakes.tell(&resource, Hint::from_code(hint));
        }
    }

    /// Whether the connection has heard what was said to it; `None`: nothing came yet.
    fn has_heard(&self, word: &str) -> Option<bool> {
        let state = self.state();
        if state.is_lost { Some(false) } else { (state.echo.as_deref() == Some(word)).then_some(true) }
    }

    /// Forgets those for whom nobody waits any more, and gives the others if `all` are asked for, and then the new ones.
    /// `None`: nobody waits.
    fn watched(&self, all: bool) -> Option<(Vec<ResourceName>, Vec<ResourceName>)> {
        let mut state = self.state();
        let state = &mut *state;
        let new: Vec<_> = state.new.drain().filter(|name| self.wakes.is_watched(name)).collect();
        state.told.retain(|name| self.wakes.is_watched(name));
        let known = if all { state.told.iter().cloned().collect() } else { Vec::new() };
        state.told.extend(new.iter().cloned());
        if state.told.is_empty() {
            state.is_served = false;
            return None;
        }
        Some((known, new))
    }

    /// Tells the server who waits, after everything that is under way there.
    async fn register(&self, resources: &[ResourceName]) -> Result<(), Fault> {
        let names: Vec<_> = resources.iter().map(ResourceName::as_str).collect();
        let sql = format!("SELECT {}.wait_for($1, $2)", self.server.place.schema);
        let span = super::row::nanos_of(TOLD_FOR);
        self.server.ask(Lane::List, &sql, &[(&names, Type::TEXT_ARRAY), (&span, Type::INT8)]).await?;
        Ok(())
    }
}

/// Whoever listens. When the runtime ends under it, a later one may begin.
struct Ear(Arc<Waiting>);

impl Drop for Ear {
    fn drop(&mut self) {
        // Whoever has come in the meantime has a listener of its own.
        if self.0.state().told.is_empty() {
            return;
        }
        self.0.state().is_served = false;
        self.0.wakes.tell_all();
    }
}

/// Listens as long as anybody waits.
async fn serve(ear: Ear) {
    let waiting = &ear.0;
    while waiting.watched(false).is_some() {
        let (pause, times) = match listen(waiting).await {
            Ok(()) => continue,
            Err(Ended::Deaf) => {
                tracing::info!(store = %waiting.server.place, "no notifications come through: waiters look again instead");
                (DEAF, DEAF_TIMES)
            }
            Err(Ended::Broken(error)) => {
                tracing::debug!(%error, "listening for changes has ended");
                (BROKEN, 1)
            }
        };
        for _ in 0..times {
            waiting.wakes.tell_all();
            let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
        }
    }
}

/// Why listening ended.
enum Ended {
    /// The connection is none for it.
    Deaf,
    Broken(StoreError),
}

impl From<StoreError> for Ended {
    fn from(error: StoreError) -> Self {
        Self::Broken(error)
    }
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Broken(fault.into_error())
    }
}

/// Listens on a connection until nobody waits.
async fn listen(waiting: &Arc<Waiting>) -> Result<(), Ended> {
    let server = &waiting.server;
    // Whether the store may be used at all.
    drop(server.link(Lane::List).await?);
    let (link, connection) = connect(&server.place).await?;
    {
        let mut state = waiting.state();
        (state.echo, state.is_lost) = (None, false);
    }
    server.home.spawn(hear(Arc::clone(waiting), connection));
    let channel = waiting.channel();
    link.ask(&server.place, &format!("LISTEN {channel}"), &[]).await?;
    hears(waiting, &channel).await?;
    let (mut is_first, mut all) = (true, true);
    while let Some((mut names, new)) = waiting.watched(all) {
        if waiting.state().is_lost {
            return Err(Ended::Broken(StoreError::Unavailable("the connection has ended".to_owned())));
        }
        names.extend(new.iter().cloned());
        if !names.is_empty() {
            waiting.register(&names).await?;
        }
        // What happened before the server knew of them.
        if std::mem::replace(&mut is_first, false) {
            waiting.wakes.tell_all();
        } else {
            new.iter().for_each(|name| waiting.wakes.tell(name, Hint::Unknown));
        }
        all = tokio::time::timeout(AGAIN, waiting.poke.notified()).await.is_err();
    }
    Ok(())
}

/// Whether what is said on another connection is heard on this one.
async fn hears(waiting: &Waiting, channel: &str) -> Result<(), Ended> {
    let word = format!("{:032x}", crate::random_bits().map_err(StoreError::from)?);
    let said = format!("?{word}");
    waiting.server.ask(Lane::List, "SELECT pg_notify($1, $2)", &[(&channel, Type::TEXT), (&said, Type::TEXT)]).await?;
    let heard = async {
        loop {
            if let Some(heard) = waiting.has_heard(&word) {
                return heard;
            }
            waiting.poke.notified().await;
        }
    };
    match tokio::time::timeout(ECHO, heard).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Ended::Broken(StoreError::Unavailable("the connection has ended".to_owned()))),
        Err(_) => Err(Ended::Deaf),
    }
}

/// Hands on what comes, as long as the connection lives.
async fn hear(waiting: Arc<Waiting>, mut connection: Wire) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message {
            waiting.heard(notification.payload());
        }
    }
    waiting.state().is_lost = true;
    waiting.wakes.tell_all();
    waiting.poke.notify_one();
}
