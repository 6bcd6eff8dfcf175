//! Where things stand: everything under `NAME/`.
//!
//! Only `NAME/charter` has a fixed place. It names the *part* (`NAME/PART/…`) in which the rest stands, so that an
//! import can fill another part and move the store there in one step.

use tenure_core::{GrantId, ResourceName, SessionId};

/// The keys of one store's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keyspace {
    part: String,
}

/// The key of the store's own record.
pub(super) fn charter(name: &str) -> String {
    format!("{name}/charter")
}

/// What all keys of a store begin with.
pub(super) fn all(name: &str) -> String {
    format!("{name}/")
}

impl Keyspace {
    pub(super) fn new(name: &str, part: &str) -> Self {
        Self { part: format!("{name}/{part}") }
    }

    /// What all keys of the part begin with.
    pub(super) fn all(&self) -> String {
        format!("{}/", self.part)
    }

    /// The length of the history, and a mark that no other state has.
    pub(super) fn head(&self) -> String {
        format!("{}/head", self.part)
    }

    /// There while a quarantine lasts.
    pub(super) fn quarantine(&self) -> String {
        format!("{}/quarantine", self.part)
    }

    pub(super) fn sessions(&self) -> String {
        format!("{}/session/", self.part)
    }

    pub(super) fn session(&self, id: SessionId) -> String {
        format!("{}/session/{id}", self.part)
    }

    /// There while the session is Live; its value is the session's incarnation.
    pub(super) fn live(&self, id: SessionId) -> String {
        format!("{}/live/{id}", self.part)
    }

    pub(super) fn lives(&self) -> String {
        format!("{}/live/", self.part)
    }

    /// There while etcd has heard from the session's holder.
    pub(super) fn alive(&self, id: SessionId) -> String {
        format!("{}/alive/{id}", self.part)
    }

    pub(super) fn alives(&self) -> String {
        format!("{}/alive/", self.part)
    }

    /// The fingerprint of what stands on a session.
    pub(super) fn holdings(&self, id: SessionId) -> String {
        format!("{}/holdings/{id}", self.part)
    }

    pub(super) fn leases(&self) -> String {
        format!("{}/lease/", self.part)
    }

    pub(super) fn lease(&self, resource: &ResourceName) -> String {
        format!("{}/lease/{resource}", self.part)
    }

    /// What stands on a session, by name.
    pub(super) fn helds(&self, id: SessionId) -> String {
        format!("{}/held/{id}/", self.part)
    }

    pub(super) fn held(&self, id: SessionId, resource: &ResourceName) -> String {
        format!("{}/held/{id}/{resource}", self.part)
    }

    /// There for each grant that the history knows.
    pub(super) fn grant(&self, id: GrantId) -> String {
        format!("{}/grant/{id}", self.part)
    }

    pub(super) fn row(&self, number: u64) -> String {
        format!("{}/history/{number:020}", self.part)
    }

    /// The rows about a resource, by number. No name holds the character that ends it here.
    pub(super) fn abouts(&self, resource: &ResourceName) -> String {
        format!("{}/about/{resource}\t", self.part)
    }

    pub(super) fn about(&self, resource: &ResourceName, number: u64) -> String {
        format!("{}/about/{resource}\t{number:020}", self.part)
    }
}

/// What stands behind a prefix.
pub(super) fn rest<'key>(key: &'key str, prefix: &str) -> Option<&'key str> {
    key.strip_prefix(prefix)
}
