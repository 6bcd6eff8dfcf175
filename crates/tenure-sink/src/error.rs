//! Why a sink could not answer. A refusal is a verdict, never one of these.

use std::time::Duration;

/// The sink could not do it. The message says what was wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// Another transaction holds the sink, and the bounded wait ended.
    #[error(
        "{place} is held by another transaction and did not come free within {} ms; nothing was changed. Repeat the \
         call. If it stays so, a stopped or hanging process holds it: let it go on, or end it", waited.as_millis()
    )]
    Busy {
        /// The database or folder.
        place: String,
        /// How long this call waited.
        waited: Duration,
    },
    /// Other transactions hold the sink, and the bounded wait ended. It says which.
    #[error(
        "{place} is held by another transaction and did not come free within {} ms; nothing was changed. {by}",
        waited.as_millis()
    )]
    HeldBy {
        /// The sink.
        place: String,
        /// How long this call waited.
        waited: Duration,
        /// Who holds it, since when, and what to do about it.
        by: String,
    },
    /// Another transaction was committed in between, which this one cannot see.
    #[error("the transaction on {place} cannot go on ({why}); nothing of it stands. Roll it back and repeat it")]
    Repeat {
        /// The sink.
        place: String,
        /// What the server said.
        why: String,
    },
    /// The server does not answer, or takes no writes now.
    #[error("{place} cannot be reached or used now: {why}. Whether the call was carried out is not known; repeat it")]
    Unreachable {
        /// The sink.
        place: String,
        /// What happened.
        why: String,
    },
    /// The caller's deferred transaction had read before another one wrote, so that it may no longer write.
    #[error(
        "the transaction on {place} began with a read, and another transaction has written since; nothing was changed. \
         Roll it back and repeat it, and begin it with BEGIN IMMEDIATE"
    )]
    Snapshot {
        /// The database.
        place: String,
    },
    /// It is not there. It is never created by use.
    #[error("{place} is not there, and is not created by opening it: correct the path, or create the sink first")]
    Missing {
        /// The database or folder.
        place: String,
    },
    /// It is there, but no sink was ever created in it.
    #[error("{place} has no fence: create the sink there first (install, or create)")]
    NotInstalled {
        /// The database or folder.
        place: String,
    },
    /// The sink is there, but it keeps no ledger of calls.
    #[error(
        "{place} has no ledger of calls: install one beside its fence (`install` of SqliteLedger or PostgresLedger), or name \
         another sink"
    )]
    NoLedger {
        /// The database or folder.
        place: String,
    },
    /// A commit may be taken back by a power failure, which a mark must not be.
    #[error(
        "{place}: this connection commits without waiting for the disk, so that a power failure could take the mark of a \
         call that was made. Nothing was marked; set PRAGMA synchronous to FULL or EXTRA on it"
    )]
    NotDurable {
        /// The database.
        place: String,
    },
    /// It is something else.
    #[error("{place} is not a sink: {why}. Correct the path; the file was left as it is")]
    Foreign {
        /// The database or folder.
        place: String,
        /// What was found.
        why: String,
    },
    /// It was written by another version.
    #[error("{place} has the schema version {found}, this program knows {known}: {advice}")]
    Schema {
        /// The database or folder.
        place: String,
        /// The version found.
        found: i64,
        /// The version known.
        known: i64,
        /// What to do.
        advice: &'static str,
    },
    /// It was created under another rule. A sink has one rule for its whole life, or a seal would mean nothing.
    #[error(
        "{place} was created under the rule `{found}`, but the rule `{wanted}` was asked for: ask for `{found}`, or create \
         another sink"
    )]
    Rule {
        /// The database or folder.
        place: String,
        /// Its rule.
        found: String,
        /// The rule asked for.
        wanted: &'static str,
    },
    /// The rule `held` reads the authority in the sink's own database, and cannot.
    #[error("{place} cannot be under the rule `held`: {why}")]
    NoAuthority {
        /// The database or folder.
        place: String,
        /// What is missing, and what to do.
        why: String,
    },
    /// What is there cannot do what a sink rests on.
    #[error("{place} cannot be a sink: {why}")]
    Unfit {
        /// The place.
        place: String,
        /// What it lacks, and what to use instead.
        why: String,
    },
    /// A sink under the high-water rule is not sealed.
    #[error("{place} is under the rule `high-water`, which is never sealed: do not enrol it")]
    NeverSealed {
        /// The database or folder.
        place: String,
    },
    /// It may only be read.
    #[error(
        "{place} cannot be written ({why}): give this process the right to write there, for a file in its folder too"
    )]
    NotWritable {
        /// The database or folder.
        place: String,
        /// What the system said.
        why: String,
    },
    /// There is no room left.
    #[error("{place} is full ({why}); the change was not made. Make room, then repeat it")]
    Full {
        /// The database or folder.
        place: String,
        /// What the system said.
        why: String,
    },
    /// What was read cannot have been written by a sink.
    #[error(
        "{place} is damaged: {what}. Stop the workers, restore it from a backup, and reopen the sink before they start"
    )]
    Corrupt {
        /// The database or folder.
        place: String,
        /// What is wrong.
        what: String,
    },
    /// The address cannot be understood.
    #[error("{url:?} is no address of a sink: {why}")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// The name of a target cannot be used.
    #[error("{name:?} cannot be the name of a target: {why}")]
    BadName {
        /// The name.
        name: String,
        /// What to change.
        why: &'static str,
    },
    /// The caller's transaction is not open any more.
    #[error(
        "the transaction on {place} is not open: it was rolled back or committed by a statement inside it. Nothing of it \
         stands; begin a new one and repeat it"
    )]
    NoTransaction {
        /// The database.
        place: String,
    },
    /// It seals signed grants alone, and was shown none that is good.
    #[error("{place} has sealed nothing: {why}")]
    Unverified {
        /// The sink.
        place: String,
        /// What is wrong with what was shown, and what to do.
        why: String,
    },
    /// The system refused something else.
    #[error("{doing} on {place} failed: {why}. Repeat the call once the cause is removed")]
    Failed {
        /// The database or folder.
        place: String,
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        why: String,
    },
}

impl SinkError {
    /// Whether the same call may succeed by being repeated, without anybody doing anything.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::HeldBy { .. }
                | Self::Repeat { .. }
                | Self::Snapshot { .. }
                | Self::Unreachable { .. }
        )
    }

    #[cfg(any(
        feature = "sqlite",
        feature = "file",
        feature = "object-store",
        feature = "postgres",
        feature = "redis"
    ))]
    pub(crate) fn schema(place: &str, found: i64, known: i64) -> Self {
        let advice = if found > known {
            "use a newer version of this program"
        } else {
            "it was written by an older program; open it with that one, or create a new sink"
        };
        Self::Schema { place: place.into(), found, known, advice }
    }

    #[cfg(any(
        feature = "sqlite",
        feature = "file",
        feature = "object-store",
        feature = "postgres",
        feature = "redis"
    ))]
    pub(crate) fn corrupt(place: &str, what: impl std::fmt::Display) -> Self {
        Self::Corrupt { place: place.into(), what: what.to_string() }
    }

    /// Refuses a rule other than the one a sink was created under.
    #[cfg(any(feature = "sqlite", feature = "file", feature = "object-store", feature = "postgres"))]
    pub(crate) fn unless_rule(place: &str, found: &str, wanted: tenure_core::fence::Rule) -> Result<(), Self> {
        if found == wanted.name() {
            return Ok(());
        }
        Err(Self::Rule { place: place.into(), found: found.into(), wanted: wanted.name() })
    }
}

/// Why an operation was not applied. The caller's transaction is still open and holds nothing of the operation.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError<E> {
    /// The sink could not do it.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The effect failed. The fence, the effect and the record were rolled back together.
    #[error("the effect failed, and nothing of it stands: {0}")]
    Effect(#[source] E),
}
