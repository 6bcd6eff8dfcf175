//! Finding the store, or making it.

use super::document::{self, Charter};
use super::identity::named;
use super::keys::{self, Keyspace};
use super::message::{Compare, Op, Range, Txn};
use super::shared::Shared;
use crate::StoreError;
use tenure_core::record::AuthorityRecord;

/// The part in which a new store stands.
pub(super) const FIRST_PART: &str = "0";

/// Runs once per opening, at its first use.
pub(super) async fn set_up(shared: &Shared) -> Result<(), StoreError> {
    let settings = shared.client.settings();
    let charter_key = shared.charter_key();
    // A second round finds what another process has made in between.
    for _ in 0..2 {
        let any = Range { keys_only: true, ..Range::under(&keys::all(&settings.name), 1) };
        let txn = Txn::reading([Range::one(&charter_key), any]);
        let answered = shared.read(&txn).await.map_err(|fault| shared.error(fault))?;
        let [charter, any] = answered.read.as_slice() else {
            return Err(StoreError::Corrupt("an answer lacks a part".to_owned()));
        };
        if let Some(entry) = charter.first() {
            return found(shared, &Charter::of(&entry.value)?);
        }
        if !any.is_empty() {
            return Err(StoreError::Foreign(format!("what stands under {:?} in {}", settings.name, settings.shown)));
        }
        if !settings.create {
            return Err(shared.missing());
        }
        if create(shared, answered.cluster).await? {
            return Ok(());
        }
    }
    Err(StoreError::Unavailable("the store is being made and removed by others".to_owned()))
}

fn found(shared: &Shared, charter: &Charter) -> Result<(), StoreError> {
    let settings = shared.client.settings();
    let own = charter.record.max_ttl;
    if let Some(asked) = settings.max_ttl.filter(|asked| *asked != own) {
        return Err(StoreError::Address {
            url: settings.shown.clone(),
            why: format!(
                "max_ttl was fixed at {:?} when the store was made, and is not {:?}: leave it out",
                own.get(),
                asked.get()
            ),
        });
    }
    shared.stands_in(charter);
    Ok(())
}

/// `false`: somebody else was faster, or nobody can tell.
async fn create(shared: &Shared, cluster: u64) -> Result<bool, StoreError> {
    let settings = shared.client.settings();
    let identity = named(cluster, None).ok_or_else(|| StoreError::Corrupt("the cluster has no id".to_owned()))?;
    let record = AuthorityRecord::new(identity, settings.new_max_ttl());
    let charter =
        Charter { part: FIRST_PART.to_owned(), record, quarantine: None, quarantine_end_ms: None, is_marked: false };
    let key = shared.charter_key();
    let put = |key, value| Op::Put { key, value, lease: None };
    let txn = Txn {
        compare: vec![Compare::Changed(key.clone(), 0)],
        success: vec![
            put(key, charter.to_text()?),
            put(Keyspace::new(&settings.name, FIRST_PART).head(), document::head(0)?),
        ],
        failure: Vec::new(),
    };
    match shared.write(&txn).await {
        Ok(answered) if answered.succeeded => {
            shared.stands_in(&charter);
            Ok(true)
        }
        Ok(_) => Ok(false),
        Err(fault) if fault.is_certain() => Err(shared.error(fault)),
        Err(_) => Ok(false),
    }
}
