//! The records of rounds, and what dead epochs have left.

use super::outcome_of;
use crate::index::{Live, Round as Record};
use crate::stage::Stage;
use crate::turn::{Stop, Turn, With};

/// Records how a round ended.
pub(crate) async fn record(turn: &Turn<'_>, record: Record) -> Result<(), Stop> {
    let With { tenant, index, .. } = *turn.with();
    turn.insist(async || index.record(tenant, turn.token(), &record).await).await
}

/// The round that made the live version may have ended between the switch and its record: then this one writes it. The
/// switch itself is not made again.
pub(crate) async fn record_what_is_missing(turn: &Turn<'_>, live: Option<&Live>) -> Result<(), Stop> {
    let With { tenant, index, .. } = *turn.with();
    let Some(live) = live.filter(|live| !live.recorded) else { return Ok(()) };
    let moves = turn.read(async || index.switches(tenant).await).await?;
    let Some(moved) = moves.iter().rfind(|moved| moved.version == live.version) else { return Ok(()) };
    let note = format!("the record was missing, and was written under epoch {}", turn.epoch());
    turn.warn(format!(
        "version {} went live without a record, under epoch {}; it is recorded now",
        live.version, moved.by
    ));
    record(
        turn,
        Record {
            epoch: moved.by,
            recorded_by: turn.epoch(),
            outcome: outcome_of(moved.why).into(),
            version: Some(live.version),
            note,
            at_ms: 0,
        },
    )
    .await
}

/// Records a failure, if that works at once: the outcome tells of it in any case.
pub(super) async fn record_failure(turn: &Turn<'_>, note: String) {
    let With { tenant, index, .. } = *turn.with();
    let epoch = turn.epoch();
    let record = Record { epoch, recorded_by: epoch, outcome: "failed".into(), version: None, note, at_ms: 0 };
    match turn.guard(index.record(tenant, turn.token(), &record)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => turn.warn(format!("the failure could not be recorded: {error}")),
        Err(stop) => turn.warn(format!("the failure could not be recorded: {}", why(stop))),
    }
}

/// Removes what dead epochs have left. First it is condemned, under the fence: from then on nobody can publish it again,
/// whenever this turn goes on to remove it. Returns how many generations were removed.
///
/// # Errors
/// [`Stop`]: some may be removed.
pub async fn clear(turn: &mut Turn<'_>, keep: usize) -> Result<u64, Stop> {
    let With { tenant, index, .. } = *turn.with();
    turn.enter(Stage::Clearing).await?;
    let condemned = turn.insist(async || index.condemn(tenant, turn.token(), keep).await).await?;
    let total = condemned.len() as u64;
    for (number, epoch) in condemned.into_iter().enumerate() {
        turn.checkpoint().await?;
        turn.insist(async || index.remove(tenant, turn.token(), epoch).await).await?;
        turn.tell(number as u64 + 1, Some(total));
    }
    Ok(total)
}

/// Why a part of the work was not done, in words.
pub(super) fn why(stop: Stop) -> String {
    match stop {
        Stop::Lost(lost) => lost.to_string(),
        Stop::Unknown(why) | Stop::Failed(why) => why,
        Stop::Ended(outcome) => outcome.to_string(),
    }
}
