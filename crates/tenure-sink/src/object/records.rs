//! Operations that are too old for the manifest. Each has an object of its own, which says what the manifest said.

use super::bucket::Bucket;
use super::manifest::{Manifest, Recorded, SCHEMA, WireOperation, check_schema};
use super::patience::all_of;
use crate::{Answer, Found, SinkError};
use serde::{Deserialize, Serialize};
use tenure_core::{OperationId, ResourceName};

#[derive(Serialize, Deserialize)]
struct Record {
    schema: i64,
    resource: String,
    #[serde(flatten)]
    operation: WireOperation,
}

/// Makes room in a manifest that is about to be put. Whoever has put a record and then loses the race has said nothing
/// wrong: the operation stands.
pub(super) async fn spill(bucket: &Bucket, next: &mut Manifest) -> Result<(), SinkError> {
    let spilled = next.spill();
    let resource = &next.resource;
    let puts = spilled.iter().map(|recorded| Box::pin(put(bucket, resource, recorded)) as Answer<'_, _>).collect();
    all_of(puts).await.map(drop)
}

async fn put(bucket: &Bucket, resource: &ResourceName, recorded: &Recorded) -> Result<(), SinkError> {
    let key = bucket.operation(resource, &recorded.id);
    let record = Record { schema: SCHEMA, resource: resource.to_string(), operation: WireOperation::from(recorded) };
    let body = serde_json::to_vec(&record).map_err(|error| SinkError::corrupt(&bucket.called(&key), error))?;
    bucket.put(&key, body).await
}

pub(super) async fn find(
    bucket: &Bucket,
    resource: &ResourceName,
    id: &OperationId,
) -> Result<Option<Found>, SinkError> {
    let key = bucket.operation(resource, id);
    let Some(read) = bucket.get(&key).await? else { return Ok(None) };
    let place = bucket.called(&key);
    check_schema(&place, &read.body)?;
    let record: Record = serde_json::from_slice(&read.body).map_err(|error| SinkError::corrupt(&place, error))?;
    let recorded = record.operation.checked().map_err(|what| SinkError::corrupt(&place, what))?;
    if recorded.id != *id || record.resource != resource.as_str() {
        return Err(SinkError::corrupt(
            &place,
            format_args!("it is of {:?} of {:?}", recorded.id.as_str(), record.resource),
        ));
    }
    Ok(Some(recorded.found))
}
