//! Records as they stand in Redis, and changes as the script is given them.

use crate::WallTime;
use crate::store::json::{
    JsonError, authority_to, lease_from, lease_to, session_from, session_to, transition_from, transition_to,
};
use crate::store::{Hint, Recalled, Recorded, Version};
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{Event, Grant, Holdings, LeaseRecord, SessionRecord, SessionState, Transition};
use tenure_core::{GrantId, Instant, ResourceName, SessionId};

/// So many arguments describe a change: see `lua/swap.lua`.
const CHANGE: usize = 15;

/// Under which conditions a change is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Conditions {
    pub(super) expected: Option<Version>,
    pub(super) authority: Option<Version>,
    pub(super) valid_before: Option<Instant<tenure_core::AuthorityClock>>,
    /// Whether a renewal's deadline is a ttl after the script's own reading of the clock.
    pub(super) is_recalled: bool,
}

impl Conditions {
    pub(super) fn of(recalled: &Recalled) -> Self {
        Self {
            expected: recalled.expected,
            authority: Some(recalled.authority),
            valid_before: recalled.valid_before,
            is_recalled: true,
        }
    }
}

/// The arguments for one change.
pub(super) fn change(swap: &Swap, conditions: &Conditions) -> Result<[String; CHANGE], JsonError> {
    let none = String::new;
    let version = |version: Option<Version>| version.map_or_else(none, |version| version.0.to_string());
    let mut renewal = (none(), none());
    let (kind, id, record, state, when, score) = match &swap.change {
        Change::Authority(after) => {
            ("A", none(), authority_to(after)?, after.incarnation.to_string(), after.identity.to_string(), none())
        }
        Change::Session(after) => {
            let (state, when, score) = match after.state {
                SessionState::Live => (after.incarnation.to_string(), after.deadline, above(after.deadline.as_nanos())),
                SessionState::Ended { at, .. } => ("-".to_owned(), at, at.as_nanos() / 1_000),
            };
            if conditions.is_recalled && swap.transition.event == Event::Renewed {
                let ttl = after.ttl.get().as_nanos();
                renewal = ((ttl / 1_000).to_string(), format!("{:03}", ttl % 1_000));
            }
            ("S", after.id.to_string(), session_to(after)?, state, when.as_nanos().to_string(), score.to_string())
        }
        Change::DropSession(id) => ("s", id.to_string(), none(), none(), none(), none()),
        Change::Lease(after) => {
            let mixed = after.holding().map_or_else(|| "-".to_owned(), |(_, grant)| mixed(grant));
            ("L", after.resource.to_string(), lease_to(after)?, mixed, after.session.to_string(), none())
        }
        Change::DropLease(resource) => ("l", resource.to_string(), none(), none(), none(), none()),
    };
    let before = [conditions.valid_before, swap.made_before()].into_iter().flatten().min();
    // A renewal hands nothing over; without a row of the history it stays small, however often it comes.
    let is_told = swap.transition.event != Event::Renewed;
    let told = match (&swap.change, &swap.transition.resource) {
        (Change::Authority(_), _) => "*".to_owned(),
        (change, Some(resource)) if is_told => format!("{}{resource}", Hint::of(change).code()),
        _ => none(),
    };
    Ok([
        kind.to_owned(),
        id,
        version(conditions.expected),
        swap.relies_on.map_or_else(none, |id| id.to_string()),
        version(conditions.authority),
        before.map_or_else(none, |before| above(before.as_nanos()).to_string()),
        record,
        state,
        when,
        score,
        renewal.0,
        renewal.1,
        if is_told { row(WallTime::now(), &swap.transition)? } else { none() },
        swap.transition.grant.filter(|_| is_told).map_or_else(none, |grant| grant.to_string()),
        told,
    ])
}

/// Microseconds; a reading has reached the instant when it has reached them.
fn above(nanos: u64) -> u64 {
    nanos.div_ceil(1_000)
}

/// What the fingerprint of a session is toggled by.
fn mixed(grant: Grant) -> String {
    format!("{:032x}", Holdings::default().toggled(grant).bits())
}

/// A row of the history.
pub(super) fn row(wall: WallTime, transition: &Transition) -> Result<String, JsonError> {
    Ok(format!("{} {}", wall.as_millis(), transition_to(transition)?))
}

/// A resource for an import: its name, the session of its newest grant, the record. No grant stands.
pub(super) fn imported(lease: &LeaseRecord) -> Result<[String; 3], JsonError> {
    Ok([lease.resource.to_string(), lease.session.to_string(), lease_to(lease)?])
}

/// Why something that was read makes no sense.
#[derive(Debug)]
pub(super) struct Damage(pub(super) String);

impl From<JsonError> for Damage {
    fn from(error: JsonError) -> Self {
        Self(error.to_string())
    }
}

/// The next word, and what follows it.
fn word(text: &str) -> Result<(&str, &str), Damage> {
    text.split_once(' ').ok_or_else(|| Damage(format!("{text:?} ends too early")))
}

pub(super) fn number(text: &str) -> Result<u64, Damage> {
    text.parse().map_err(|_| Damage(format!("{text:?} is no number")))
}

pub(super) fn session(value: &str) -> Result<(SessionRecord, Version), Damage> {
    let (version, rest) = word(value)?;
    let (_, rest) = word(rest)?;
    let (deadline, record) = word(rest)?;
    let mut session = session_from(record)?;
    if session.state == SessionState::Live {
        // The script has the last word on it.
        session.deadline = Instant::from_nanos(number(deadline)?);
    }
    Ok((session, Version(number(version)?)))
}

pub(super) fn lease(value: &str) -> Result<(LeaseRecord, Version), Damage> {
    let (version, rest) = word(value)?;
    let (_, rest) = word(rest)?;
    let (_, record) = word(rest)?;
    Ok((lease_from(record)?, Version(number(version)?)))
}

pub(super) fn holdings(value: &str) -> Result<Holdings, Damage> {
    if value.is_empty() {
        return Ok(Holdings::default());
    }
    let bits = u128::from_str_radix(value, 16).map_err(|_| Damage(format!("{value:?} is no fingerprint")))?;
    Ok(Holdings::from_bits(bits))
}

pub(super) fn recorded(number: u64, value: &str) -> Result<Recorded, Damage> {
    let (wall, transition) = word(value)?;
    let wall = WallTime::from_millis(self::number(wall)?);
    Ok(Recorded { number, wall, transition: transition_from(transition)? })
}

/// What a script is asked for, where nothing is the empty text.
pub(super) fn keys(keys: &tenure_core::decide::Keys) -> [String; 3] {
    let session = keys.session.map(|id: SessionId| id.to_string());
    let resource = keys.resource.as_ref().map(ResourceName::to_string);
    let grant = keys.grant.map(|id: GrantId| id.to_string());
    [session, resource, grant].map(Option::unwrap_or_default)
}
