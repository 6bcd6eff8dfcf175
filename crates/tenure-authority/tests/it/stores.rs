use crate::world::Place;
use std::path::Path;
use std::sync::Arc;
use tenure_authority::conformance::{Subject, run_all};
use tenure_authority::store::memory::MemoryStore;
use tenure_authority::store::sqlite::{Options, SqliteStore};
use tenure_authority::{Clock, Store};
use tenure_core::Ttl;

#[test]
fn the_memory_store_keeps_the_contract() {
    run_all(&|| Subject::manual(|clock, max_ttl| Arc::new(MemoryStore::new(clock, max_ttl).expect("a store"))));
}

#[test]
fn the_sqlite_store_keeps_the_contract() {
    let place = Place::new();
    let number = std::cell::Cell::new(0);
    run_all(&|| {
        number.set(number.get() + 1);
        let path = place.folder.path().join(format!("{}.db", number.get()));
        Subject::manual(|clock, max_ttl| made(&path, clock, max_ttl))
    });
}

/// Reads go to one opening of the file and swaps to another, as from two processes.
#[test]
fn two_openings_of_one_sqlite_file_keep_the_contract_together() {
    let place = Place::new();
    let number = std::cell::Cell::new(0);
    run_all(&|| {
        number.set(number.get() + 1);
        let path = place.folder.path().join(format!("{}.db", number.get()));
        Subject::manual(|clock, max_ttl| {
            let writes = made(&path, clock.clone(), max_ttl);
            Arc::new(Pair { reads: made(&path, clock, max_ttl), writes })
        })
    });
}

fn made(path: &Path, clock: Clock, max_ttl: Ttl) -> Arc<dyn Store> {
    let options = Options { create: true, max_ttl: Some(max_ttl), ..Options::new(clock) };
    Arc::new(SqliteStore::open(path, &options).expect("a store"))
}

pub(crate) use pair::Pair;

mod pair {
    use std::sync::Arc;
    use tenure_authority::store::Answer;
    use tenure_authority::{
        Capabilities, HistoryQuery, Import, Listed, Page, Read, RecallOutcome, Recalled, Recorded, Store, StoreError,
        SwapOutcome, Version, Wake,
    };
    use tenure_core::decide::{Keys, Swap};
    use tenure_core::record::LeaseRecord;
    use tenure_core::{AuthorityClock, Instant, ResourceName, SessionId};

    #[derive(Debug)]
    pub(crate) struct Pair {
        pub(crate) reads: Arc<dyn Store>,
        pub(crate) writes: Arc<dyn Store>,
    }

    impl Store for Pair {
        fn read<'a>(&'a self, keys: &'a Keys) -> Answer<'a, Result<Read, StoreError>> {
            self.reads.read(keys)
        }

        fn swap(&self, swap: Swap, expected: Option<Version>) -> Answer<'_, Result<SwapOutcome, StoreError>> {
            self.writes.swap(swap, expected)
        }

        fn swap_recalled(&self, recalled: Recalled) -> Option<Answer<'_, Result<RecallOutcome, StoreError>>> {
            self.writes.swap_recalled(recalled)
        }

        fn grants(&self, session: SessionId) -> Answer<'_, Result<Vec<LeaseRecord>, StoreError>> {
            self.reads.grants(session)
        }

        fn leases(&self, page: Page<ResourceName>) -> Answer<'_, Result<Vec<Listed>, StoreError>> {
            self.reads.leases(page)
        }

        fn history(&self, query: HistoryQuery) -> Answer<'_, Result<Vec<Recorded>, StoreError>> {
            self.reads.history(query)
        }

        fn idle_sessions(&self, limit: usize) -> Answer<'_, Result<Vec<SessionId>, StoreError>> {
            self.reads.idle_sessions(limit)
        }

        fn import(&self, content: Import) -> Answer<'_, Result<SwapOutcome, StoreError>> {
            self.writes.import(content)
        }

        fn capabilities(&self) -> Capabilities {
            self.writes.capabilities()
        }

        fn now(&self) -> Option<Instant<AuthorityClock>> {
            self.reads.now()
        }

        // So that what one opening does is heard at the other.
        fn watch(&self, resource: &ResourceName) -> Option<Wake> {
            self.reads.watch(resource)
        }
    }
}
