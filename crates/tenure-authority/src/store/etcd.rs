//! A store in etcd.

use super::home::Home;
use super::{Store, StoreError};
use std::sync::Arc;

/// Takes the address; connects at the first use.
pub(super) fn open(url: &str, _clock: crate::Clock, _home: Home) -> Result<Arc<dyn Store>, StoreError> {
    Err(StoreError::Address { url: super::shown(url), why: "not yet".to_owned() })
}
