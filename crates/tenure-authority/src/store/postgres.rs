//! A store in PostgreSQL.
//!
//! # How it works
//!
//! * **Tables** as a person would make them, and **functions** beside them (`first.sql`): a call is one statement and one
//!   round trip, and the server keeps the plans of what is inside. The session keeps the statement as well, which takes a
//!   third off the server's work for a lone call; but not behind a pooler that gives a connection to each transaction anew,
//!   and not where TLS is required and a pooler could not be told: there nothing is left behind in a session.
//! * **Batches.** Reads, renewals and other changes wait in a queue each. Whatever waits when the last batch was answered
//!   goes into the next one: one call, one transaction, one flush of the log. A batch is set-based: its statements do not
//!   grow in number with what it holds. A renewal or a change of a resource that waits alone has a function of its own,
//!   without joins, which takes half the time.
//! * **Steps**, the changes that write a row of the history, come one after the other, by a lock that ends with their
//!   transaction. So the history's numbers leave no gap, and everything that only steps change stands still while one is
//!   judged: no other lock is needed, and none can be waited for in a circle.
//! * **Renewals** write no history and need not wait for steps: they lock the rows of their sessions alone. The
//!   fingerprints of what is held have a table of their own, so that a grant touches no session.
//! * **Time** is the server's `clock_timestamp()`, read in a statement that begins when all locks are held. A condition
//!   on the clock in the statement that waits for a lock is judged before the wait, and is not judged again.
//! * **Identity** is the system identifier, the numbers of the database and of the store's own table, and the timeline, read in
//!   the same statement as the records, or after the locks of a change. They cost some microseconds, so none is remembered.
//! * **The history has no index but its numbers**: its rows of one resource, and a grant that a sink has shown, are found
//!   by going through it, from the newest row. Both are rare; an index would cost each swap.
//!
//! # What it does not promise
//!
//! * With `synchronous_commit=off`, or when a standby is promoted that had not received everything, changes that were
//!   answered are gone: the timeline then tells, and the store quarantines. Whoever promotes a standby has to fence the old
//!   primary first: as long as it takes writes, it grants to those who still reach it. Two standbys that were promoted apart, a
//!   volume that was put back, and rows that were put back into tables that stayed (a dump of the data alone) look like the same
//!   store: only callers who have seen a later history notice, and receivers. Say `tenure restore` then.
//! * A session that is idle in a transaction and holds rows of the store delays every change of them; after three
//!   seconds the change is given up, and the message names that session. Changes of other rows go on.
//! * Each process that connects has up to four connections, one more while it waits for a resource, and one more once a
//!   renewal had to wait for somebody else's lock. Put a pooler between for many.

mod change;
mod desk;
mod direct;
mod fault;
mod import;
mod line;
mod link;
mod place;
mod reader;
mod row;
mod schema;
mod time;
mod tls;
mod waiting;
mod warnings;

use super::home::Home;
use super::{
    Answer, Capabilities, Durability, HistoryQuery, Import, Listed, Page, Read, RecallOutcome, Recalled, Recorded,
    Scope, Store, StoreError, SwapOutcome, TimeSource, Version, Wake,
};
use change::Job;
use desk::Desk;
use line::{ChangeLine, ReadLine};
use link::Server;
use std::sync::Arc;
use tenure_core::decide::{Keys, Swap};
use tenure_core::record::LeaseRecord;
use tenure_core::{ResourceName, SessionId};
use tokio::sync::oneshot;
use waiting::Waiting;

pub use schema::{Migrated, migrate, migrations};

/// Takes the address; connects at the first use.
pub(super) fn open(url: &str, home: Home) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(PostgresStore::new(url, home)?))
}

/// A store in PostgreSQL 13 or newer. Made by [`connect`](crate::connect).
#[derive(Debug)]
struct PostgresStore {
    server: Arc<Server>,
    reads: Arc<Desk<ReadLine>>,
    renewals: Arc<Desk<ChangeLine>>,
    steps: Arc<Desk<ChangeLine>>,
    waiting: Arc<Waiting>,
}

impl PostgresStore {
    fn new(url: &str, home: Home) -> Result<Self, StoreError> {
        let server = Arc::new(Server::new(url, home)?);
        Ok(Self {
            reads: Desk::new(ReadLine::new(&server)),
            renewals: Desk::new(ChangeLine::renewals(&server)),
            steps: Desk::new(ChangeLine::steps(&server)),
            waiting: Waiting::new(&server),
            server,
        })
    }

    async fn change(&self, swap: Swap, expected: Option<Version>, recalled: change::Conditions) -> change::Made {
        let (answer, answered) = oneshot::channel();
        let desk = if change::is_renewal(&swap, expected) { &self.renewals } else { &self.steps };
        desk.put(&self.server.home, Job { swap, expected, recalled, answer });
        // Without an answer, whoever asked the server is gone: the runtime has ended.
        answered.await.unwrap_or(Ok(RecallOutcome::Unknown))
    }

    /// Runs what asks the server to its end, wherever it was called.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.server.home.run(work).await?
    }
}

impl Store for PostgresStore {
    fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.reads.put(&self.server.home, line::Asked { keys: keys.clone(), answer });
            answered.await.map_err(|_| super::home::HomeGone)?
        })
    }

    fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        Box::pin(async move {
            Ok(match self.change(swap, expected, change::Conditions::default()).await? {
                RecallOutcome::Done(_) => SwapOutcome::Done,
                RecallOutcome::Changed => SwapOutcome::Changed,
                RecallOutcome::Unknown => SwapOutcome::Unknown,
            })
        })
    }

    fn swap_recalled(&self, recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
        let conditions =
            change::Conditions { authority: Some(recalled.authority), valid_before: recalled.valid_before };
        Some(Box::pin(self.change(recalled.swap, recalled.expected, conditions)))
    }

    fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
        Box::pin(self.ask(reader::grants(Arc::clone(&self.server), session)))
    }

    fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
        Box::pin(self.ask(reader::leases(Arc::clone(&self.server), page)))
    }

    fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
        Box::pin(self.ask(reader::history(Arc::clone(&self.server), query)))
    }

    fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
        Box::pin(self.ask(reader::idle_sessions(Arc::clone(&self.server), limit)))
    }

    fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
        let importing = self.server.home.run(import::import(Arc::clone(&self.server), content));
        // The runtime may have ended while the server committed.
        Box::pin(async { importing.await.unwrap_or(Ok(SwapOutcome::Unknown)) })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scope: Scope::Network,
            // As it comes; `warnings` says which settings of the server weaken it.
            durability: Durability::Durable,
            clock: TimeSource::Server,
            wakes: true,
        }
    }

    fn warnings(&self) -> Answer<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.ask(warnings::warnings(Arc::clone(&self.server))))
    }

    fn watch(&self, resource: &ResourceName) -> Option<Wake> {
        Some(self.waiting.watch(resource))
    }
}
