use super::{AttemptKey, AttemptRecord, Ledger, Probe, Refused, Settled, Which};
use crate::SinkError;
use tenure_core::Token;
use tenure_core::operation::Attempt;

/// So many attempts are read at once.
const PAGE: usize = 256;

/// What became of the attempts that nobody knew about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// What the takeover itself has settled.
    pub settled: Settled,
    /// These took effect.
    pub applied: Vec<AttemptKey>,
    /// These did not, and may run again.
    pub not_applied: Vec<AttemptKey>,
    /// These stay unknown, for the reason beside each: they wait for a person, or for another look.
    pub unknown: Vec<(AttemptKey, String)>,
}

/// What a new holder does before it begins: settles what older epochs of its resource have left, and asks the outside
/// systems about what is unknown. It makes no call again, and may be repeated at any time.
///
/// The inner `Err` is the refusal of the token: it is not registered here, or not any more.
///
/// # Errors
/// [`SinkError`]: the ledger could not be read or written. What was written stands, and repeating it is safe.
pub async fn reconcile(
    ledger: &dyn Ledger,
    token: &Token,
    probes: &[&dyn Probe],
) -> Result<Result<Reconciled, Refused>, SinkError> {
    let settled = match ledger.settle(token).await? {
        Ok(settled) => settled,
        Err(refused) => return Ok(Err(refused)),
    };
    let mut reconciled = Reconciled { settled, ..Reconciled::default() };
    for attempt in unknown_of(ledger, token).await? {
        match look(ledger, token, probes, &attempt).await? {
            Ok(Attempt::Applied) => reconciled.applied.push(attempt.key),
            Ok(Attempt::NotApplied) => reconciled.not_applied.push(attempt.key),
            Ok(_) => reconciled.unknown.push((attempt.key, NOT_SEEN.to_owned())),
            Err(Stays::Because(why)) => reconciled.unknown.push((attempt.key, why)),
            Err(Stays::Lost(refused)) => return Ok(Err(refused)),
        }
    }
    Ok(Ok(reconciled))
}

const NOT_SEEN: &str = "it was not seen there; the system checks no token, so that it may still arrive";

/// The unknown attempts of the token's resource. An attempt of the present epoch may be among them.
async fn unknown_of(ledger: &dyn Ledger, token: &Token) -> Result<Vec<AttemptRecord>, SinkError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = ledger.list(Which::Unknown, Some(&token.resource), after.as_ref(), PAGE).await?;
        let is_last = page.len() < PAGE;
        after = page.last().map(|last| last.key.clone());
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

/// Why an attempt stays unknown.
enum Stays {
    Because(String),
    /// The token is refused: nothing more can be settled under it.
    Lost(Refused),
}

async fn look(
    ledger: &dyn Ledger,
    token: &Token,
    probes: &[&dyn Probe],
    attempt: &AttemptRecord,
) -> Result<Result<Attempt, Stays>, SinkError> {
    let Some(probe) = probes.iter().find(|probe| *probe.system() == attempt.system) else {
        return Ok(Err(Stays::Because(format!("there is no probe for {}", attempt.system))));
    };
    let looked = match probe.look(token, attempt).await {
        Ok(looked) => looked,
        Err(error) => return Ok(Err(Stays::Because(error.to_string()))),
    };
    Ok(match ledger.found(token, &attempt.key, &looked).await? {
        Ok(state) => Ok(state),
        Err(refused @ Refused::Token(_)) => Err(Stays::Lost(refused)),
        Err(refused) => Err(Stays::Because(refused.to_string())),
    })
}
