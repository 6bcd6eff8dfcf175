//! Reading what the functions answer. Every value that is read back is checked.

use super::schema::VERSION;
use crate::{Description, Found, Rows, SinkError};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;
use tenure_core::fence::{FenceRow, Forgetting, Rule, Sealing};
use tenure_core::{
    Digest, Ending, Epoch, Generation, GrantId, Outcome, Over, OwnerName, ResourceName, SinkId, Verdict,
};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

/// A row, with the place that explains what is wrong with it.
pub(super) struct Read<'a> {
    pub(super) row: &'a Row,
    pub(super) place: &'a str,
}

/// The columns of a description, in the order in which they are read.
pub(super) const DESCRIPTION: &str = "version, rule, generation, floor, resource, epoch, replace(grant_id::text, '-', ''), \
                                      sealed_generation, seal_no, enrolled";

impl<'a> Read<'a> {
    fn wrong(&self, what: impl Display) -> SinkError {
        SinkError::corrupt(self.place, what)
    }

    fn get<T: FromSql<'a>>(&self, at: usize) -> Result<T, SinkError> {
        self.row.try_get(at).map_err(|error| self.wrong(error))
    }

    fn epoch(&self, at: usize) -> Result<Option<Epoch>, SinkError> {
        let number: Option<i64> = self.get(at)?;
        number.map(Epoch::try_from).transpose().map_err(|error| self.wrong(error))
    }

    fn some_epoch(&self, at: usize) -> Result<Epoch, SinkError> {
        self.epoch(at)?.ok_or_else(|| self.wrong("an epoch is missing"))
    }

    fn grant(&self, at: usize) -> Result<GrantId, SinkError> {
        self.get::<&str>(at)?.parse().map_err(|error| self.wrong(error))
    }

    fn generation(&self, at: usize) -> Result<Generation, SinkError> {
        // NULL on a standby.
        match self.get::<Option<&str>>(at)? {
            Some(text) => Generation::new(text).map_err(|error| self.wrong(error)),
            None => Err(SinkError::Unreachable {
                place: self.place.to_owned(),
                why: "it is a standby, which takes no writes".to_owned(),
            }),
        }
    }

    /// The rest of a fence's row, from its epoch on.
    fn fence(&self, epoch: Epoch, at: usize) -> Result<FenceRow, SinkError> {
        let enrolled: Vec<&str> = self.get(at + 4)?;
        let enrolled = enrolled.into_iter().map(SinkId::new).collect::<Result<BTreeSet<_>, _>>();
        Ok(FenceRow {
            epoch,
            grant: self.grant(at + 1)?,
            generation: self.generation(at + 2)?,
            seal_no: u64::try_from(self.get::<i64>(at + 3)?).map_err(|error| self.wrong(error))?,
            enrolled: enrolled.map_err(|error| self.wrong(error))?,
        })
    }

    /// A row of `describe` or `rows`: the resource that it is about, if there is a fence, and how the sink stands to it.
    fn described(&self, rule: Rule) -> Result<(Option<&'a str>, Description), SinkError> {
        let version: Option<i32> = self.get(0)?;
        if version != Some(VERSION) {
            return Err(SinkError::schema(self.place, version.unwrap_or_default().into(), VERSION.into()));
        }
        SinkError::unless_rule(self.place, self.get(1)?, rule)?;
        let row = self.epoch(5)?.map(|epoch| self.fence(epoch, 5)).transpose()?;
        Ok((self.get(4)?, Description { generation: self.generation(2)?, row, floor: self.epoch(3)? }))
    }

    pub(super) fn sealing(&self) -> Result<Sealing, SinkError> {
        Ok(match self.get(0)? {
            "sealed" => Sealing::Seal(self.fence(self.some_epoch(1)?, 1)?),
            "wrong-generation" => Sealing::WrongGeneration { current: self.generation(3)? },
            "stale" => Sealing::Stale { epoch: self.some_epoch(1)?, grant: self.grant(2)? },
            "conflict" => Sealing::Conflict { epoch: self.some_epoch(1)?, grant: self.grant(2)? },
            "below-floor" => Sealing::BelowFloor { floor: self.some_epoch(6)? },
            other => return Err(self.wrong(format_args!("`seal` has answered {other:?}"))),
        })
    }

    pub(super) fn forgetting(&self) -> Result<Forgetting, SinkError> {
        Ok(match self.get(0)? {
            "forgotten" => Forgetting::Forget { floor: self.some_epoch(1)? },
            "above" => Forgetting::Above { epoch: self.some_epoch(2)?, grant: self.grant(3)? },
            other => return Err(self.wrong(format_args!("`forget` has answered {other:?}"))),
        })
    }

    pub(super) fn reopened(&self) -> Result<Generation, SinkError> {
        self.generation(0)
    }

    pub(super) fn answer(&self) -> Result<Answered, SinkError> {
        let found = match self.get::<&str>(0)? {
            "found" => Some((self.get(3)?, self.get::<&[u8]>(4)?, self.get(5)?)),
            _ => None,
        };
        Answered::new(self.place, self.get(0)?, self.get(1)?, self.get(2)?, found, self.ending(6)?)
    }

    /// Why the grant is over, where it is.
    fn ending(&self, at: usize) -> Result<Option<Ended<'a>>, SinkError> {
        let Some(why) = self.get(at)? else { return Ok(None) };
        Ok(Some(Ended { why, holder: self.get(at + 1)?, ago_ms: self.get(at + 2)? }))
    }

    /// What `admit` has answered: nothing where the token is refused.
    pub(super) fn seal_no(&self) -> Result<Option<u64>, SinkError> {
        let seal_no: Option<i64> = self.get(0)?;
        seal_no.map(u64::try_from).transpose().map_err(|error| self.wrong(error))
    }

    pub(super) fn judgement(&self) -> Result<Answered, SinkError> {
        Answered::new(self.place, self.get(0)?, self.get(1)?, self.get(2)?, None, self.ending(3)?)
    }
}

/// What `judge` or `judge_operation` has answered.
#[derive(Debug)]
pub(super) enum Answered {
    /// The token is admitted, and the operation, if one was asked for, is not there.
    Admitted {
        seal_no: u64,
    },
    /// The token is admitted, and the operation was applied before.
    Found(Found),
    /// The token is refused.
    Stale(Epoch),
    Conflict(Epoch),
    Unsealed,
    Over {
        current: Option<Epoch>,
        why: Ending,
        holder: Option<OwnerName>,
        ago: Option<Duration>,
    },
}

/// What the authority in the database says of a grant that is over, as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended<'a> {
    pub(super) why: &'a str,
    pub(super) holder: Option<&'a str>,
    pub(super) ago_ms: Option<i64>,
}

impl Answered {
    pub(super) fn new(
        place: &str,
        verdict: &str,
        current: Option<i64>,
        seal_no: Option<i64>,
        found: Option<(i64, &[u8], &str)>,
        ended: Option<Ended<'_>>,
    ) -> Result<Self, SinkError> {
        let wrong = |what: &dyn Display| SinkError::corrupt(place, what);
        if let ("over", Some(Ended { why, holder, ago_ms })) = (verdict, ended) {
            let none = || wrong(&format_args!("{why:?} is no ending"));
            return Ok(Self::Over {
                current: current.map(Epoch::try_from).transpose().map_err(|error| wrong(&error))?,
                why: Ending::from_name(why).ok_or_else(none)?,
                holder: holder.map(OwnerName::new).transpose().map_err(|error| wrong(&error))?,
                ago: ago_ms.and_then(|ago| ago.try_into().ok()).map(Duration::from_millis),
            });
        }
        let current = || {
            let current = current.ok_or_else(|| wrong(&"an epoch is missing"))?;
            Epoch::try_from(current).map_err(|error| wrong(&error))
        };
        Ok(match (verdict, found) {
            ("admitted", None) => {
                Self::Admitted { seal_no: seal_no.and_then(|number| number.try_into().ok()).unwrap_or_default() }
            }
            ("found", Some((epoch, digest, outcome))) => Self::Found(Found {
                epoch: Epoch::try_from(epoch).map_err(|error| wrong(&error))?,
                digest: Digest(digest.try_into().map_err(|error| wrong(&error))?),
                outcome: Outcome::new(outcome).map_err(|error| wrong(&error))?,
            }),
            ("stale", None) => Self::Stale(current()?),
            ("conflict", None) => Self::Conflict(current()?),
            ("unsealed", None) => Self::Unsealed,
            _ => return Err(wrong(&format_args!("`judge` has answered {verdict:?}"))),
        })
    }

    /// Parts what was admitted from the verdict that refuses it.
    pub(super) fn admitted(self, presented: Epoch) -> Result<Standing, Verdict> {
        match self {
            Self::Admitted { seal_no } => Ok(Standing { seal_no, found: None }),
            Self::Found(found) => Ok(Standing { seal_no: 0, found: Some(found) }),
            Self::Stale(current) => Err(Verdict::Stale { presented, current }),
            Self::Conflict(current) => Err(Verdict::Conflict { current }),
            Self::Unsealed => Err(Verdict::Unsealed),
            Self::Over { current, why, holder, ago } => {
                Err(Verdict::Over(Over { presented, current, why, holder, ago }))
            }
        }
    }
}

/// How things stand for an admitted token.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) seal_no: u64,
    pub(super) found: Option<Found>,
}

/// The one row that a description comes in.
pub(super) fn description(rows: &[Row], place: &str, rule: Rule) -> Result<Description, SinkError> {
    Ok(Read { row: first(rows, place)?, place }.described(rule)?.1)
}

/// A piece of all fences.
pub(super) fn list(rows: &[Row], place: &str, rule: Rule, limit: usize) -> Result<Rows, SinkError> {
    let mut list = Rows { rows: Vec::new(), floor: None };
    // The namespace's row comes also without a fence beside it.
    first(rows, place)?;
    for row in rows {
        let read = Read { row, place };
        let (resource, described) = read.described(rule)?;
        list.floor = described.floor;
        if let (Some(resource), Some(fence)) = (resource, described.row) {
            list.rows.push((ResourceName::new(resource).map_err(|error| read.wrong(error))?, fence));
        }
    }
    list.rows.truncate(limit);
    Ok(list)
}

/// What was asked for comes in one row.
pub(super) fn first<'a>(rows: &'a [Row], place: &str) -> Result<&'a Row, SinkError> {
    rows.first().ok_or_else(|| SinkError::corrupt(place, "its namespace has no row"))
}
