//! The alias, moved once.

use crate::index::{Switch, Switched, Why, WriteError};
use crate::manifest::Manifest;
use crate::patience::pause;
use crate::point::Point;
use crate::turn::{Stop, Turn, With};
use std::time::Duration;
use tenure::OperationId;

/// A sink that could not be sealed again is left alone for so long.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// Publishes the generation of this turn. Returns the version.
pub(super) async fn switch(turn: &Turn<'_>, from: u64, manifest: &Manifest) -> Result<u64, Stop> {
    let operation = operation("publish", turn)?;
    make(turn, Switch { operation, from, to: turn.epoch(), why: Why::Sync, manifest: Some(manifest.clone()) }).await
}

/// What a move is called: one of a kind in each turn.
pub(crate) fn operation(what: &str, turn: &Turn<'_>) -> Result<OperationId, Stop> {
    OperationId::new(format!("{what}:{}", turn.epoch())).map_err(|error| Stop::Failed(error.to_string()))
}

/// Makes a move. When its answer is lost it is looked for, and made again only once it is certain that it was not made.
pub(crate) async fn make(turn: &Turn<'_>, switch: Switch) -> Result<u64, Stop> {
    let With { tenant, index, .. } = *turn.with();
    loop {
        turn.checkpoint().await?;
        turn.pass(Point::BeforeSwitch);
        // What is sent is waited for, also when the lease goes meanwhile: the index has the last word, and says so. Once at a
        // time: `insist` would repeat what may have been made.
        let lost = match index.switch(tenant, turn.token(), &switch).await {
            Ok(Switched::To(version)) => return Ok(version),
            Ok(Switched::NotFrom { live }) => {
                return Err(Stop::Failed(format!(
                    "the alias has moved to version {live} meanwhile, from version {}, under this very lease: somebody writes \
                     to {} without one",
                    switch.from,
                    index.place()
                )));
            }
            Ok(Switched::Gone) => {
                return Err(Stop::Failed(format!(
                    "there is no generation {} to be read in {}",
                    switch.to,
                    index.place()
                )));
            }
            Err(WriteError::Unknown(why)) => why,
            Err(WriteError::Refused(verdict)) => {
                if let Some(why) = turn.heed(&verdict).await? {
                    turn.warn(format!("{why}; it is tried again"));
                    turn.guard(pause(AFTER_REFUSAL)).await?;
                }
                continue;
            }
            // Certainly not made: `insist` waits or gives up, and the move is tried again.
            Err(error) => {
                let error = std::cell::Cell::new(Some(error));
                turn.insist(async || error.take().map_or(Ok(()), Err)).await?;
                continue;
            }
        };
        turn.warn(format!("the answer to the switch was lost ({lost}); what became of it is looked up"));
        let found = turn.insist(async || index.switched(tenant, turn.token(), &switch.operation).await).await;
        match found {
            Ok(Some(version)) => return Ok(version),
            Ok(None) => turn.warn("the switch was not made; it is made now".into()),
            Err(Stop::Failed(why)) => return Err(Stop::Unknown(why)),
            Err(stop) => return Err(stop),
        }
    }
}
