//! What stands, as a token is judged by it.

use super::Place;
use super::manifest::{Manifest, Opening};
use super::namespace::Namespace;
use super::records;
use super::swap::Held;
use crate::{Found, SinkError};
use tenure_core::fence::{Admission, FenceRow, admit};
use tenure_core::{Epoch, OperationId, Token, Verdict};

/// What a token may do, and what is known of an operation.
pub(super) enum Judged {
    /// Nothing.
    Refused(Verdict),
    /// It is admitted. `raised` is what must become of the row in the same change.
    Admitted { raised: Option<Raised>, found: Option<Found>, seal_no: u64 },
}

/// A row that is raised, and the opening in which.
pub(super) struct Raised {
    row: FenceRow,
    opening: Opening,
}

impl Raised {
    pub(super) fn register(self, next: &mut Manifest) {
        (next.row, next.opening) = (Some(self.row), Some(self.opening));
    }
}

/// Judges a token: before everything else, also before it is looked whether it is a replay.
pub(super) async fn judge(
    place: &Place,
    held: Option<&Held>,
    token: &Token,
    operation: Option<&OperationId>,
) -> Result<Judged, SinkError> {
    let manifest = held.map(|held| &*held.manifest);
    let row = manifest.and_then(|manifest| manifest.row.as_ref());
    let (opening, floor) = match manifest {
        // A reopening touches every manifest, so that one that has a row tells the generation by itself.
        Some(Manifest { row: Some(_), opening: Some(opening), floor, .. }) => (opening.clone(), *floor),
        _ => {
            let record = Namespace::load(&place.bucket, place.rule).await?;
            (record.opening(&place.bucket)?, floor_of(manifest, record.floor(&place.bucket)?))
        }
    };
    let raised = match admit(place.rule, row, floor, &opening.generation, token) {
        Admission::Refuse(verdict) => return Ok(Judged::Refused(verdict)),
        Admission::Admit => None,
        Admission::Raise(row) => Some(Raised { row, opening }),
    };
    let found = match (manifest, operation) {
        (Some(manifest), Some(id)) => match manifest.operation(id) {
            Some(found) => Some(found.clone()),
            None if manifest.spilled > 0 => records::find(&place.bucket, &manifest.resource, id).await?,
            None => None,
        },
        _ => None,
    };
    let seal_no = raised.as_ref().map(|raised| raised.row.seal_no).or(row.map(|row| row.seal_no)).unwrap_or(0);
    Ok(Judged::Admitted { raised, found, seal_no })
}

/// The floor of a resource: the sink's, or its own from when it was forgotten.
pub(super) fn floor_of(manifest: Option<&Manifest>, sink: Option<Epoch>) -> Option<Epoch> {
    manifest.and_then(|manifest| manifest.floor).max(sink)
}
