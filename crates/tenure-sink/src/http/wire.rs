//! What is said on the routes by which a sink is sealed.

use crate::{Description, Rows};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tenure_core::fence::{FenceRow, Forgetting, Sealing};
use tenure_core::{Epoch, Generation, GrantId, SinkId};

/// Raised when a program of before would not understand what is said.
pub(super) const VERSION: u64 = 1;

/// The most rows of one answer. The other end may have a smaller number: that there are more is said.
pub(super) const ROWS_MAX: usize = 1_000;

/// Which sink it is.
#[derive(Serialize, Deserialize)]
pub(super) struct About {
    pub(super) tenure_sink: u64,
    pub(super) id: String,
    pub(super) rule: String,
    pub(super) signed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Describe {
    pub(super) resource: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    pub(super) token: String,
    pub(super) generation: String,
    pub(super) enrolled: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forget {
    pub(super) resource: String,
    pub(super) cut: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    pub(super) after: Option<String>,
    pub(super) limit: usize,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Row {
    epoch: u64,
    grant: String,
    generation: String,
    seal_no: u64,
    enrolled: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Described {
    generation: String,
    row: Option<Row>,
    floor: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "sealing", rename_all = "kebab-case")]
pub(super) enum SealAnswer {
    Sealed { row: Row },
    WrongGeneration { current: String },
    Stale { epoch: u64, grant: String },
    Conflict { epoch: u64, grant: String },
    BelowFloor { floor: u64 },
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "forgetting", rename_all = "kebab-case")]
pub(super) enum ForgetAnswer {
    Forgotten { floor: u64 },
    Above { epoch: u64, grant: String },
}

#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    rows: Vec<ListedRow>,
    floor: Option<u64>,
    /// Whether there may be more after these. A program of before does not say so; then a page that is not full is the last.
    #[serde(default)]
    more: Option<bool>,
}

/// A piece of a list, as it was read.
#[cfg(feature = "http-client")]
pub(super) struct Page {
    pub(super) listed: Rows,
    pub(super) more: Option<bool>,
}

#[derive(Serialize, Deserialize)]
struct ListedRow {
    resource: String,
    #[serde(flatten)]
    row: Row,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Reopened {
    pub(super) generation: String,
}

/// A text that should have been a name, an id or a number of ours: what is wrong with it.
pub(super) type Wrong = String;

pub(super) fn sinks(names: &[String]) -> Result<BTreeSet<SinkId>, Wrong> {
    names.iter().map(SinkId::new).collect::<Result<_, _>>().map_err(|error| error.to_string())
}

pub(super) fn written<'a>(sinks: impl IntoIterator<Item = &'a SinkId>) -> Vec<String> {
    sinks.into_iter().map(ToString::to_string).collect()
}

pub(super) fn epoch(number: u64) -> Result<Epoch, Wrong> {
    Epoch::new(number).map_err(|error| error.to_string())
}

fn floor(number: Option<u64>) -> Result<Option<Epoch>, Wrong> {
    number.map(epoch).transpose()
}

fn grant(text: &str) -> Result<GrantId, Wrong> {
    text.parse().map_err(|error: tenure_core::IdError| error.to_string())
}

pub(super) fn generation(text: &str) -> Result<Generation, Wrong> {
    Generation::new(text).map_err(|error| error.to_string())
}

impl From<&FenceRow> for Row {
    fn from(row: &FenceRow) -> Self {
        Self {
            epoch: row.epoch.get(),
            grant: row.grant.to_string(),
            generation: row.generation.to_string(),
            seal_no: row.seal_no,
            enrolled: written(&row.enrolled),
        }
    }
}

impl TryFrom<Row> for FenceRow {
    type Error = Wrong;
    fn try_from(row: Row) -> Result<Self, Wrong> {
        Ok(Self {
            epoch: epoch(row.epoch)?,
            grant: grant(&row.grant)?,
            generation: generation(&row.generation)?,
            seal_no: row.seal_no,
            enrolled: sinks(&row.enrolled)?,
        })
    }
}

impl From<&Description> for Described {
    fn from(there: &Description) -> Self {
        Self {
            generation: there.generation.to_string(),
            row: there.row.as_ref().map(Row::from),
            floor: there.floor.map(Epoch::get),
        }
    }
}

impl TryFrom<Described> for Description {
    type Error = Wrong;
    fn try_from(described: Described) -> Result<Self, Wrong> {
        Ok(Self {
            generation: generation(&described.generation)?,
            row: described.row.map(FenceRow::try_from).transpose()?,
            floor: floor(described.floor)?,
        })
    }
}

impl From<&Sealing> for SealAnswer {
    fn from(sealing: &Sealing) -> Self {
        match sealing {
            Sealing::Seal(row) => Self::Sealed { row: row.into() },
            Sealing::WrongGeneration { current } => Self::WrongGeneration { current: current.to_string() },
            Sealing::Stale { epoch, grant } => Self::Stale { epoch: epoch.get(), grant: grant.to_string() },
            Sealing::Conflict { epoch, grant } => Self::Conflict { epoch: epoch.get(), grant: grant.to_string() },
            Sealing::BelowFloor { floor } => Self::BelowFloor { floor: floor.get() },
        }
    }
}

impl TryFrom<SealAnswer> for Sealing {
    type Error = Wrong;
    fn try_from(sealed: SealAnswer) -> Result<Self, Wrong> {
        Ok(match sealed {
            SealAnswer::Sealed { row } => Self::Seal(row.try_into()?),
            SealAnswer::WrongGeneration { current } => Self::WrongGeneration { current: generation(&current)? },
            SealAnswer::Stale { epoch: number, grant: id } => Self::Stale { epoch: epoch(number)?, grant: grant(&id)? },
            SealAnswer::Conflict { epoch: number, grant: id } => {
                Self::Conflict { epoch: epoch(number)?, grant: grant(&id)? }
            }
            SealAnswer::BelowFloor { floor } => Self::BelowFloor { floor: epoch(floor)? },
        })
    }
}

impl From<&Forgetting> for ForgetAnswer {
    fn from(forgetting: &Forgetting) -> Self {
        match forgetting {
            Forgetting::Forget { floor } => Self::Forgotten { floor: floor.get() },
            Forgetting::Above { epoch, grant } => Self::Above { epoch: epoch.get(), grant: grant.to_string() },
        }
    }
}

impl TryFrom<ForgetAnswer> for Forgetting {
    type Error = Wrong;
    fn try_from(forgotten: ForgetAnswer) -> Result<Self, Wrong> {
        Ok(match forgotten {
            ForgetAnswer::Forgotten { floor } => Self::Forget { floor: epoch(floor)? },
            ForgetAnswer::Above { epoch: number, grant: id } => {
                Self::Above { epoch: epoch(number)?, grant: grant(&id)? }
            }
        })
    }
}

#[cfg(feature = "http")]
impl Listed {
    /// What the sink gave when it was asked for so many: fewer come only when there are no more.
    pub(super) fn page(listed: &Rows, limit: usize) -> Self {
        let rows = listed.rows.iter();
        Self {
            rows: rows.map(|(resource, row)| ListedRow { resource: resource.to_string(), row: row.into() }).collect(),
            floor: listed.floor.map(Epoch::get),
            more: Some(listed.rows.len() >= limit),
        }
    }
}

#[cfg(feature = "http-client")]
impl TryFrom<Listed> for Page {
    type Error = Wrong;
    fn try_from(listed: Listed) -> Result<Self, Wrong> {
        let named = |listed: ListedRow| {
            let resource = tenure_core::ResourceName::new(listed.resource).map_err(|error| error.to_string())?;
            Ok((resource, listed.row.try_into()?))
        };
        let rows: Vec<_> = listed.rows.into_iter().map(named).collect::<Result<_, Wrong>>()?;
        if rows.is_empty() && listed.more == Some(true) {
            return Err("it says that there are more rows, and gives none".to_owned());
        }
        Ok(Self { listed: Rows { rows, floor: floor(listed.floor)? }, more: listed.more })
    }
}
