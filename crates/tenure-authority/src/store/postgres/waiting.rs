//! Who waits for which resource.

use super::link::Server;
use crate::store::{Wake, Wakes};
use std::sync::Arc;
use tenure_core::ResourceName;

#[derive(Debug)]
pub(super) struct Waiting {
    wakes: Wakes,
}

impl Waiting {
    pub(super) fn new(_server: &Arc<Server>) -> Arc<Self> {
        Arc::new(Self { wakes: Wakes::default() })
    }

    pub(super) fn watch(self: &Arc<Self>, resource: &ResourceName) -> Wake {
        self.wakes.watch(resource)
    }
}
