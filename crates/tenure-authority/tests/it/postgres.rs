//! The store in PostgreSQL, on real servers.

mod batches;
mod contract;
mod locks;
mod losses;
mod making;
mod refusals;
mod statements;
mod tls;
mod waking;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tenure_authority::conformance::block_on;
use tenure_authority::{BootClock, Clock, Read, RecallOutcome, Recalled, Store, StoreError, Version, connect};
use tenure_core::decide::{Change, Keys, Swap};
use tenure_core::record::{Event, SessionRecord, Transition};
use tenure_core::{ResourceName, SessionId};
use tokio::runtime::Runtime;
use tokio_postgres::{AsyncMessage, Client, NoTls};

/// A store at this address.
fn store(url: &str) -> Arc<dyn Store> {
    connect(url, Clock::Boot(BootClock)).expect("an address")
}

/// A store at this address, which is made if it is not there.
fn made(database: &str) -> Arc<dyn Store> {
    let store = store(&format!("{database}?create=true"));
    looked(&store).expect("a new store");
    store
}

/// The least that a store can be asked.
fn looked(store: &Arc<dyn Store>) -> Result<Read, StoreError> {
    block_on(store.read(&Keys::default()))
}

/// What the address is answered with at its first use.
fn error(url: &str) -> StoreError {
    match connect(url, Clock::Boot(BootClock)) {
        Ok(store) => looked(&store).expect_err("it cannot be used"),
        Err(error) => error,
    }
}

/// Lets real time pass.
fn pass(span: Duration) {
    let end = BootClock.now_nanos() + u64::try_from(span.as_nanos()).expect("within 584 years");
    while let Some(left) = end.checked_sub(BootClock.now_nanos()).filter(|left| *left > 0) {
        std::thread::park_timeout(Duration::from_nanos(left));
    }
}

/// The renewal of a session as it was read, in one round trip.
fn renewal(session: &SessionRecord, read: &Read) -> Recalled {
    let renewed = SessionRecord { renew_seq: session.renew_seq + 1, ..session.clone() };
    let transition = Transition {
        at: read.now,
        event: Event::Renewed,
        resource: None,
        session: Some(session.id),
        epoch: None,
        grant: None,
        actor: None,
        why: None,
    };
    Recalled {
        swap: Swap { change: Change::Session(renewed), relies_on: Some(session.id), transition },
        expected: read.versions.caller,
        authority: read.versions.authority.unwrap_or(Version(0)),
        valid_before: Some(session.deadline),
    }
}

fn recalled(store: &Arc<dyn Store>, recalled: Recalled) -> Result<RecallOutcome, StoreError> {
    block_on(store.swap_recalled(recalled).expect("this store can"))
}

fn session(store: &Arc<dyn Store>, id: SessionId) -> Read {
    block_on(store.read(&Keys { session: Some(id), ..Keys::default() })).expect("a read")
}

fn lease(store: &Arc<dyn Store>, name: &ResourceName) -> Read {
    block_on(store.read(&Keys { resource: Some(name.clone()), ..Keys::default() })).expect("a read")
}

/// Somebody else who uses the server.
struct Other {
    runtime: Runtime,
    client: Client,
    notifications: Arc<AtomicUsize>,
}

impl Other {
    fn at(url: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (client, mut connection) = runtime.block_on(tokio_postgres::connect(url, NoTls)).expect("a connection");
        let notifications = Arc::new(AtomicUsize::new(0));
        let heard = Arc::clone(&notifications);
        runtime.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    heard.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { runtime, client, notifications }
    }

    /// How many notifications it has heard.
    fn heard(&self) -> usize {
        self.notifications.load(Ordering::Relaxed)
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).expect("SQL");
    }

    fn number(&self, sql: &str) -> i64 {
        self.runtime.block_on(self.client.query_one(sql, &[])).expect("SQL").get(0)
    }
}
