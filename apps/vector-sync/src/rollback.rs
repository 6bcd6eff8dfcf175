//! Back to an earlier version, as a version of its own.

use crate::index::{Round as Record, State, Switch, Why};
use crate::outcome::Outcome;
use crate::round::{clear, make, operation, record, record_what_is_missing};
use crate::stage::Stage;
use crate::turn::{Stop, Turn, With};
use tenure::Tenure;

/// Makes the content of version `to` live again. What is live now is not published again by itself afterwards: only when its
/// documents change, or on request.
pub async fn rollback(with: With<'_>, tenure: &Tenure, to: u64) -> Outcome {
    let mut turn = match Turn::take(with, tenure).await {
        Ok(turn) => turn,
        Err(outcome) => return outcome,
    };
    let result = under(&mut turn, to).await;
    turn.end(result).await
}

async fn under(turn: &mut Turn<'_>, to: u64) -> Result<Outcome, Stop> {
    let With { tenant, index, .. } = *turn.with();
    let live = turn.read(async || index.live(tenant).await).await?;
    record_what_is_missing(turn, live.as_ref()).await?;
    turn.enter(Stage::Switching).await?;
    let live =
        live.ok_or_else(|| Stop::Failed(format!("{tenant} has no version yet, so there is none to go back to")))?;
    let moves = turn.read(async || index.switches(tenant).await).await?;
    let generations = turn.read(async || index.generations(tenant).await).await?;
    let readable = |epoch: u64| generations.iter().any(|it| it.epoch == epoch && it.state == State::Published);
    let wanted = moves.iter().find(|moved| moved.version == to);
    let epoch = match wanted {
        Some(moved) if moved.to == live.epoch => {
            let why = format!("version {} has what version {to} had already: it is live", live.version);
            return Err(Stop::Failed(why));
        }
        Some(moved) if readable(moved.to) => moved.to,
        _ => {
            let kept = moves.iter().filter(|moved| readable(moved.to) && moved.to != live.epoch);
            let kept: Vec<String> = kept.map(|moved| moved.version.to_string()).collect();
            let what = if wanted.is_some() { "is not kept any more" } else { "was never live" };
            let choice = if kept.is_empty() {
                "no earlier version is kept".into()
            } else {
                format!("kept: {}", kept.join(", "))
            };
            return Err(Stop::Failed(format!("version {to} of {tenant} {what}; {choice}")));
        }
    };
    let operation = operation("rollback", turn)?;
    let version =
        make(turn, Switch { operation, from: live.version, to: epoch, why: Why::Rollback, manifest: None }).await?;
    turn.enter(Stage::Recording).await?;
    let by = turn.epoch();
    let note = format!("to version {to}, epoch {epoch}");
    record(
        turn,
        Record { epoch: by, recorded_by: by, outcome: "rolled-back".into(), version: Some(version), note, at_ms: 0 },
    )
    .await?;
    Ok(Outcome::RolledBack { version, as_of: to, epoch })
}

/// Removes what dead epochs have left.
pub async fn gc(with: With<'_>, tenure: &Tenure) -> Outcome {
    let mut turn = match Turn::take(with, tenure).await {
        Ok(turn) => turn,
        Err(outcome) => return outcome,
    };
    let result = clear(&mut turn, with.settings.keep).await.map(|removed| Outcome::Cleared { removed });
    turn.end(result).await
}
