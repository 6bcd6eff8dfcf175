//! How a round ended.

use crate::manifest::Manifest;
use crate::stage::Stage;
use serde::Serialize;
use tenure::Loss;

/// How a round ended: never as a partial success. A lost lease is neither a success nor a failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// A new version is live.
    Published(Box<Published>),
    /// The live version is of these very documents already.
    Unchanged {
        /// Which.
        version: u64,
        /// Its documents.
        documents: u64,
        /// Generations of dead epochs that were removed all the same.
        removed: u64,
    },
    /// An earlier version is live again.
    RolledBack {
        /// The version that this made.
        version: u64,
        /// The version whose content it has.
        as_of: u64,
        /// The generation.
        epoch: u64,
    },
    /// What dead epochs had left is gone.
    Cleared {
        /// Generations that were removed.
        removed: u64,
    },
    /// These very documents were rolled back from; they are published again only on request.
    Rejected {
        /// The version that is live instead.
        version: u64,
    },
    /// Somebody else has the tenant, and this round never began.
    Held {
        /// Who, since when, for how long still, and what to do.
        who: String,
    },
    /// The lease was lost and somebody else has it: nothing of this round is, or will be, read.
    Superseded {
        /// Where it was noticed.
        stage: Stage,
        /// The round's epoch.
        epoch: u64,
        /// The epoch that came after.
        by: u64,
        /// Whose that is.
        who: Option<String>,
        /// The version that it had published before, if any.
        version: Option<u64>,
    },
    /// The lease was lost, and nobody has taken over yet: nothing of this round is, or will be, read.
    Lost {
        /// Where it was noticed.
        stage: Stage,
        /// The round's epoch.
        epoch: u64,
        /// Why.
        #[serde(serialize_with = "by_name")]
        loss: Loss,
        /// The version that it had published before, if any.
        version: Option<u64>,
    },
    /// An answer was lost, and it could not be found out what became of the step. The next round finds out.
    Unknown {
        /// Of which step.
        stage: Stage,
        /// The round's epoch.
        epoch: u64,
        /// What is known.
        why: String,
    },
    /// It could not be done. What was live before is live.
    Failed {
        /// Where.
        stage: Stage,
        /// The round's epoch; `None` when it never had the lease.
        epoch: Option<u64>,
        /// What was wrong, and what to do.
        why: String,
    },
}

/// A version that was published.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Published {
    /// The version.
    pub version: u64,
    /// Its generation.
    pub epoch: u64,
    /// What it was made of.
    pub manifest: Manifest,
    /// Chunks that the model was asked about.
    pub embedded: u64,
    /// Chunks whose vectors were there already.
    pub reused: u64,
    /// Generations of dead epochs that were removed.
    pub removed: u64,
    /// What did not work after the version was live, if anything: the next round does it.
    pub left: Option<String>,
    /// How long each stage took, in milliseconds.
    pub took: Vec<(Stage, u64)>,
    /// How long the right to write has cost in all of that, in milliseconds: to acquire it, to seal, and all checkpoints.
    pub rights_ms: f64,
}

fn by_name<S: serde::Serializer>(loss: &Loss, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(loss.name())
}

impl Outcome {
    /// Its name in JSON and in counters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Published(_) => "published",
            Self::Unchanged { .. } => "unchanged",
            Self::RolledBack { .. } => "rolled-back",
            Self::Cleared { .. } => "cleared",
            Self::Rejected { .. } => "rejected",
            Self::Held { .. } => "held",
            Self::Superseded { .. } => "superseded",
            Self::Lost { .. } => "lost",
            Self::Unknown { .. } => "unknown",
            Self::Failed { .. } => "failed",
        }
    }

    /// The exit status, the same numbers as those of `tenure`.
    #[must_use]
    pub const fn status(&self) -> u8 {
        match self {
            Self::Published(_) | Self::Unchanged { .. } | Self::RolledBack { .. } | Self::Cleared { .. } => 0,
            Self::Rejected { .. } => 65,
            Self::Held { .. } => 75,
            Self::Superseded { .. } | Self::Lost { .. } => 76,
            Self::Unknown { .. } => 69,
            Self::Failed { .. } => 70,
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Published(published) => {
                let Published { version, epoch, manifest, embedded, reused, removed, left, .. } = &**published;
                let (documents, chunks) = (manifest.documents, manifest.chunks);
                write!(
                    out,
                    "version {version} is live: epoch {epoch}, {documents} documents, {chunks} chunks, {embedded} embedded, \
                     {reused} reused"
                )?;
                if *removed > 0 {
                    write!(out, ", {} removed", dead(*removed))?;
                }
                left.iter().try_for_each(|left| write!(out, "; left for the next round: {left}"))
            }
            Self::Unchanged { version, documents, removed } => {
                write!(out, "nothing has changed: version {version} is of these {documents} documents")?;
                if *removed > 0 { write!(out, "; {} removed", dead(*removed)) } else { Ok(()) }
            }
            Self::RolledBack { version, as_of, epoch } => {
                write!(out, "version {version} is live, and has what version {as_of} had: epoch {epoch}")
            }
            Self::Cleared { removed } => write!(out, "{} removed", dead(*removed)),
            Self::Rejected { version } => write!(
                out,
                "nothing was published: version {version} was rolled back to, away from these very documents; change them, or \
                 publish them all the same with --again"
            ),
            Self::Held { who } => write!(out, "not begun: {who}"),
            Self::Superseded { stage, epoch, by, who, version } => {
                write!(out, "superseded while {stage}: epoch {epoch} was followed by epoch {by}")?;
                who.iter().try_for_each(|who| write!(out, " of {who}"))?;
                fate(*version, out)
            }
            Self::Lost { stage, epoch, loss, version } => write!(
                out,
                "lost while {stage}: the lease of epoch {epoch} is gone ({loss}), and nobody has taken over yet"
            )
            .and_then(|()| fate(*version, out)),
            Self::Unknown { stage, epoch, why } => write!(
                out,
                "unknown: what became of {stage} under epoch {epoch} could not be found out ({why}); the next round finds out, \
                 and does nothing twice"
            ),
            Self::Failed { stage, why, .. } => write!(out, "failed while {stage}: {why}"),
        }
    }
}

/// What is left of a round that ended without its lease.
fn fate(version: Option<u64>, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    match version {
        Some(version) => write!(out, "; version {version} had gone live before"),
        None => out.write_str("; nothing of it was published, or will be"),
    }
}

/// `1 dead generation`, `2 dead generations`.
fn dead(count: u64) -> String {
    format!("{count} dead generation{}", if count == 1 { "" } else { "s" })
}
