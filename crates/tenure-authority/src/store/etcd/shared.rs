//! What the parts of one store share.

use super::client::Client;
use super::document::Charter;
use super::fault::Fault;
use super::identity::Identity;
use super::keys::{self, Keyspace};
use super::known::Known;
use super::message::{Answered, Compare, Entry, Range, Txn};
use super::observed::Observed;
use super::reader::Reads;
use super::revokes;
use super::setup;
use super::writer::Writes;
use crate::StoreError;
use crate::store::Wakes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::OnceCell;

/// One opening of a store.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) observed: Observed,
    pub(super) identity: Identity,
    pub(super) known: Known,
    pub(super) reads: Reads,
    pub(super) writes: Writes,
    pub(super) wakes: Wakes,
    /// The part in which the store stands, as far as this process knows.
    space: Mutex<Keyspace>,
    is_set_up: OnceCell<()>,
    /// Why the keys of sessions say nothing, if they do not; found once per opening, before the first read.
    doubt: OnceLock<Option<String>>,
}

/// Keys as they stood at one moment.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) cluster: u64,
    pub(super) revision: u64,
    entries: HashMap<String, Entry>,
}

impl Facts {
    /// What was read otherwise.
    pub(super) fn of(revision: u64, entries: impl IntoIterator<Item = Option<Entry>>) -> Self {
        let entries = entries.into_iter().flatten().map(|entry| (entry.key.clone(), entry)).collect();
        Self { cluster: 0, revision, entries }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }
}

impl Shared {
    pub(super) fn new(client: Client, observed: Observed) -> Self {
        let space = Keyspace::new(&client.settings().name, setup::FIRST_PART);
        Self {
            client,
            observed,
            identity: Identity::default(),
            known: Known::default(),
            reads: Reads::default(),
            writes: Writes::default(),
            wakes: Wakes::default(),
            space: Mutex::new(space),
            is_set_up: OnceCell::new(),
            doubt: OnceLock::new(),
        }
    }

    /// The part in which the store stands. The first call finds the store, or makes it.
    pub(super) async fn space(&self) -> Result<Keyspace, StoreError> {
        let set_up = async {
            setup::set_up(self).await?;
            if self.observed.is_real() {
                let doubt = revokes::doubt(&self.client).await;
                if let Some(doubt) = &doubt {
                    tracing::debug!(doubt, "the keys of sessions are not looked at");
                }
                let _ = self.doubt.set(doubt);
            }
            Ok::<_, StoreError>(())
        };
        self.is_set_up.get_or_try_init(|| set_up).await?;
        Ok(self.space.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Whether a session whose key etcd has removed is overdue for whoever has not watched it.
    pub(super) fn trusts_keys(&self) -> bool {
        matches!(self.doubt.get(), Some(None))
    }

    /// Why not, where it could be otherwise.
    pub(super) fn doubt(&self) -> Option<&str> {
        self.doubt.get()?.as_deref()
    }

    /// The store stands in this part.
    pub(super) fn stands_in(&self, charter: &Charter) -> Keyspace {
        let space = Keyspace::new(&self.client.settings().name, &charter.part);
        self.space.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&space);
        space
    }

    pub(super) fn charter_key(&self) -> String {
        keys::charter(&self.client.settings().name)
    }

    /// Reads keys, all at one moment.
    pub(super) async fn look(&self, keys: impl IntoIterator<Item = String>) -> Result<Arc<Facts>, StoreError> {
        let keys: Vec<String> = keys.into_iter().collect();
        let txn = Txn::reading(keys.iter().map(|key| Range::one(key)));
        let answered = self.read(&txn).await.map_err(|fault| self.error(fault))?;
        Ok(Arc::new(self.learn(&keys, answered)))
    }

    /// Reads whatever is asked for, and looks at which store has answered.
    pub(super) async fn read(&self, txn: &Txn) -> Result<Answered, Fault> {
        let before = self.identity.highest();
        let answered = self.client.read(txn).await?;
        self.check(&answered, before);
        Ok(answered)
    }

    /// Writes, under at least one comparison that the write itself makes untrue. A fault that is certain is.
    pub(super) async fn write(&self, txn: &Txn) -> Result<Answered, Fault> {
        match self.client.write(txn).await {
            Err(fault) if fault.is_full() && !self.still_holds(&txn.compare).await => {
                Err(Fault::Lost("it is full, and what was to be changed has changed".to_owned()))
            }
            answer => answer,
        }
    }

    /// Whether all of this holds; `false` also when nobody can tell.
    async fn still_holds(&self, compare: &[Compare]) -> bool {
        let before = self.identity.highest();
        let txn = Txn::reading(compare.iter().map(|compare| Range::one(compare.key())));
        let Ok(answered) = self.client.read(&txn).await else { return false };
        let holds = |(compare, read): (&Compare, &Vec<Entry>)| match compare {
            Compare::Changed(_, revision) => read.first().map_or(0, |entry| entry.changed) == *revision,
            Compare::Value(_, value) => read.first().is_some_and(|entry| entry.value == *value),
        };
        let all = compare.iter().zip(&answered.read).all(holds);
        self.check(&answered, before) && all
    }

    /// `false`: it is of another life or cluster than the answers before, and what was known of those is forgotten.
    pub(super) fn check(&self, answered: &Answered, before: u64) -> bool {
        let is_same = self.identity.saw(answered, before);
        if !is_same {
            self.known.forget();
            self.observed.forget();
        }
        is_same
    }

    /// Takes down what stood at the keys, which were read one by one.
    pub(super) fn learn(&self, keys: &[String], answered: Answered) -> Facts {
        let mut entries = HashMap::with_capacity(keys.len());
        for (key, read) in keys.iter().zip(answered.read) {
            let entry = read.into_iter().next();
            self.known.saw(answered.revision, key, entry.clone());
            if let Some(entry) = entry {
                entries.insert(key.clone(), entry);
            }
        }
        Facts { cluster: answered.cluster, revision: answered.revision, entries }
    }

    pub(super) fn error(&self, fault: Fault) -> StoreError {
        fault.into_error(&self.client.settings().shown)
    }

    /// The store's record is gone.
    pub(super) fn missing(&self) -> StoreError {
        StoreError::Missing(self.client.settings().shown.clone())
    }
}
