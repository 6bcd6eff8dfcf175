//! What the authority in the same file says of a token, under the rule `held`. It offers a view, which is all that is known of it
//! here.

use super::clock;
use super::failure::{place_of, sink_error};
use crate::SinkError;
use rusqlite::{Connection, OptionalExtension};
use std::fmt::Display;
use tenure_core::fence::{HeldRow, Hold, Rule, still_held};
use tenure_core::{AuthorityClock, Ending, Epoch, GrantId, Instant, Over, OwnerName, Token};

/// The meaning of the view's columns that is known here.
const VERSION: i64 = 1;

/// The columns in the order of [`Said`]. The `+` keeps the planner from looking at the parameter's value.
pub(super) const HELD: &str = "
SELECT version, epoch, grant_id, owner, since_ns, deadline_ns, ending, ended_ns, origin
FROM tenure_held WHERE resource = +?1";

/// What is said of a database without the view.
pub(super) const NO_AUTHORITY: &str = "no authority is in this file (there is no view tenure_held in it). Give the file of \
                                       an authority, and keep your own tables there, or take the rule `sealed`";

/// Whether there is what the rule needs.
pub(super) fn expect(connection: &Connection, rule: Rule) -> Result<(), SinkError> {
    if rule != Rule::Held {
        return Ok(());
    }
    let view = "SELECT count(*) FROM main.sqlite_schema WHERE type = 'view' AND name = 'tenure_held'";
    let fail = |error| sink_error(connection, "looking for the authority", error);
    let views: i64 = connection.query_row(view, [], |row| row.get(0)).map_err(fail)?;
    if views == 0 {
        return Err(SinkError::NoAuthority { place: place_of(connection), why: NO_AUTHORITY.to_owned() });
    }
    Ok(())
}

/// Judges a token that the fence has admitted, by what the authority says in the caller's transaction.
pub(super) fn judge(connection: &Connection, token: &Token) -> Result<Result<(), Over>, SinkError> {
    let fail = |error| sink_error(connection, "reading the authority", error);
    let mut statement = connection.prepare_cached(HELD).map_err(fail)?;
    let said = statement.query_row([token.resource.as_str()], |row| {
        Ok(Said {
            version: row.get(0)?,
            epoch: row.get(1)?,
            grant: row.get(2)?,
            owner: row.get(3)?,
            since: row.get(4)?,
            deadline: row.get(5)?,
            ending: row.get(6)?,
            ended: row.get(7)?,
            origin: row.get(8)?,
        })
    });
    Said::judge(said.optional().map_err(fail)?, &place_of(connection), token)
}

/// A row of the view, as it was read.
pub(super) struct Said {
    pub(super) version: i64,
    pub(super) epoch: i64,
    pub(super) grant: String,
    pub(super) owner: String,
    pub(super) since: i64,
    pub(super) deadline: Option<i64>,
    pub(super) ending: Option<String>,
    pub(super) ended: Option<i64>,
    pub(super) origin: String,
}

impl Said {
    /// The clock is read last: what it shows is not before the beginning of the check.
    pub(super) fn judge(said: Option<Self>, place: &str, token: &Token) -> Result<Result<(), Over>, SinkError> {
        let Some(said) = said else { return Ok(still_held(None, token, Instant::from_nanos(0))) };
        if said.version != VERSION {
            return Err(SinkError::schema(&format!("the authority in {place}"), said.version, VERSION));
        }
        let row = said.row().map_err(|what| SinkError::corrupt(place, what))?;
        let now = clock::now(place, &said.origin)?;
        Ok(still_held(Some(&row), token, now))
    }

    fn row(&self) -> Result<HeldRow, String> {
        let wrong = |error: &dyn Display| format!("its authority: {error}");
        let at = |nanos: i64| u64::try_from(nanos).map(Instant::<AuthorityClock>::from_nanos).map_err(|e| wrong(&e));
        let hold = match (&self.ending, self.deadline) {
            (Some(name), _) => Hold::Over {
                why: Ending::from_name(name).ok_or_else(|| wrong(&format_args!("{name:?} is no ending")))?,
                at: self.ended.map(at).transpose()?,
            },
            (None, Some(deadline)) => Hold::Until(at(deadline)?),
            (None, None) => return Err(wrong(&"a grant that stands has no deadline")),
        };
        Ok(HeldRow {
            epoch: Epoch::try_from(self.epoch).map_err(|error| wrong(&error))?,
            grant: self.grant.parse::<GrantId>().map_err(|error| wrong(&error))?,
            owner: OwnerName::new(&self.owner).map_err(|error| wrong(&error))?,
            since: at(self.since)?,
            hold,
        })
    }
}
