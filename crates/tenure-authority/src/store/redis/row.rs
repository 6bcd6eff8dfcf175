//! Records as they stand in Redis, and changes as the script is given them.

use crate::WallTime;
use crate::store::json::{
    JsonError, authority_to, lease_from, lease_to, session_from, session_to, transition_from, transition_to,
};
use crate::store::{Recalled, Recorded, Version};
use tenure_core::decide::{Change, Swap};
use tenure_core::record::{Event, Holdings, LeaseRecord, SessionRecord, SessionState, Transition};
use tenure_core::{GrantId, Instant, ResourceName, SessionId};

/// A change as `lua/swap.lua` is given it.
#[derive(Debug)]
pub(super) struct Asked {
    /// The fields that it stands on.
    pub(super) fields: Vec<String>,
    pub(super) args: Vec<String>,
    /// Whether it has a row of the history.
    pub(super) is_told: bool,
}

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

/// One change.
pub(super) fn change(swap: &Swap, conditions: &Conditions) -> Result<Asked, JsonError> {
    let none = String::new;
    let version = |version: Option<Version>| version.map_or_else(none, |version| version.0.to_string());
    let (kind, own, fields, rest) = match &swap.change {
        Change::Authority(after) => {
            let rest = vec![authority_to(after)?, after.incarnation.to_string(), after.identity.to_string()];
            ("A", none(), vec![], rest)
        }
        Change::Session(after) => {
            let is_renewal = conditions.is_recalled && swap.transition.event == Event::Renewed;
            let fields = if is_renewal { vec![print_field(after.id)] } else { vec![] };
            ("S", session_field(after.id), fields, session_args(after, is_renewal)?)
        }
        Change::DropSession(id) => ("s", session_field(*id), vec![print_field(*id)], vec![]),
        Change::Lease(after) => {
            let fields = vec![print_field(after.session), session_field(after.session)];
            ("L", lease_field(&after.resource), fields, vec![lease_to(after)?, mark(after), after.session.to_string()])
        }
        Change::DropLease(resource) => ("l", lease_field(resource), vec![], vec![]),
    };
    let before = [conditions.valid_before, swap.made_before()].into_iter().flatten().min();
    // A renewal hands nothing over; without a row of the history it stays small, however often it comes.
    let is_told = swap.transition.event != Event::Renewed;
    let relies_on = swap.relies_on.map_or_else(none, session_field);
    let args = [
        kind.to_owned(),
        own.clone(),
        version(conditions.expected),
        relies_on.clone(),
        version(conditions.authority),
        before.map_or_else(none, |before| above(before.as_nanos()).to_string()),
        if is_told { row(WallTime::now(), &swap.transition)? } else { none() },
        swap.transition.grant.filter(|_| is_told).map_or_else(none, grant_field),
    ];
    let fields = fields.into_iter().chain([own, relies_on]).filter(|field| !field.is_empty());
    Ok(Asked { fields: fields.collect(), args: args.into_iter().chain(rest).collect(), is_told })
}

fn session_args(after: &SessionRecord, is_renewal: bool) -> Result<Vec<String>, JsonError> {
    let (state, when, score) = match after.state {
        SessionState::Live => (after.incarnation.to_string(), after.deadline, above(after.deadline.as_nanos())),
        SessionState::Ended { at, .. } => ("-".to_owned(), at, at.as_nanos() / 1_000),
    };
    let ttl = after.ttl.get().as_nanos();
    let (ttl, rest) =
        if is_renewal { ((ttl / 1_000).to_string(), format!("{:03}", ttl % 1_000)) } else { Default::default() };
    Ok(vec![session_to(after)?, state, when.as_nanos().to_string(), score.to_string(), ttl, rest])
}

fn session_field(id: SessionId) -> String {
    format!("s:{id}")
}

/// Of the fingerprint of what stands on a session.
fn print_field(id: SessionId) -> String {
    format!("f:{id}")
}

fn lease_field(resource: &ResourceName) -> String {
    format!("l:{resource}")
}

pub(super) fn grant_field(id: GrantId) -> String {
    format!("g:{id}")
}

/// Microseconds; a reading has reached the instant when it has reached them.
fn above(nanos: u64) -> u64 {
    nanos.div_ceil(1_000)
}

/// What the fingerprint of its session is toggled by: nothing but zeros when no grant stands.
fn mark(lease: &LeaseRecord) -> String {
    let mark: Holdings = lease.holding().map(|(_, grant)| grant).into_iter().collect();
    print_to(mark)
}

/// A fingerprint takes part in what the script reckons, and in what is text: seven bits in each of its bytes.
const PRINT: usize = 20;

fn print_to(print: Holdings) -> String {
    let mut left = print.bits();
    let mut bytes = [0; PRINT];
    for byte in bytes.iter_mut().rev() {
        *byte = left.to_le_bytes()[0] & 0x7f;
        left >>= 7;
    }
    bytes.into_iter().map(char::from).collect()
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
    let (_, rest) = word(value)?;
    let rest = rest.get(PRINT..).ok_or_else(|| Damage(format!("{value:?} ends too early")))?;
    let (version, record) = word(rest)?;
    Ok((lease_from(record)?, Version(number(version)?)))
}

/// The fingerprint of what stands on a session; empty for nothing.
pub(super) fn holdings(value: &str) -> Result<Holdings, Damage> {
    if !(value.is_empty() || value.len() == PRINT && value.is_ascii()) {
        return Err(Damage(format!("{value:?} is no fingerprint")));
    }
    Ok(Holdings::from_bits(value.bytes().fold(0, |bits, byte| bits << 7 | u128::from(byte))))
}

pub(super) fn recorded(number: u64, value: &str) -> Result<Recorded, Damage> {
    let (wall, transition) = word(value)?;
    let wall = WallTime::from_millis(self::number(wall)?);
    Ok(Recorded { number, wall, transition: transition_from(transition)? })
}

/// The fields that a reading is of; the empty text where nothing is asked for.
pub(super) fn keys(keys: &tenure_core::decide::Keys) -> [String; 5] {
    [
        "record".to_owned(),
        keys.session.map_or_else(String::new, session_field),
        keys.session.map_or_else(String::new, print_field),
        keys.resource.as_ref().map_or_else(String::new, lease_field),
        keys.grant.map_or_else(String::new, grant_field),
    ]
}
