use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::{Out, clean, say};
use serde_json::json;
use std::fmt;
use tenure::authority::{Clock, StoreError, store};
use tenure::blocking::wait_for;
use tenure::core::address::Address;
use tenure::core::decide::Keys;

/// Bring a store to the schema that this program knows.
///
/// Only PostgreSQL has a schema, of numbered steps; they run in one transaction, and running them again changes nothing. A
/// store that is not there is made when its address says create=true, which every other verb does as well. Update every
/// worker's program first: a program that is older than the store refuses to work with it.
///
/// With --dry-run, the SQL of what is missing is printed, for whoever wants to read it or to run it in another way.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Print what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure migrate --dry-run --authority 'postgres://owner@db1/jobs?create=true' > tenure.sql
  tenure migrate --json | jq .to

Exit status:
  0   the schema is the one that this program knows, or with --dry-run: it could be
  64  the address makes no sense
  69  the store cannot be reached or changed, is not there, or is newer than this program";

/// One step.
#[derive(Clone, Debug)]
struct Step {
    /// The version that it leads to.
    number: i64,
    name: &'static str,
    sql: String,
}

/// How a store's schema stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Stores of this kind have none.
    None(String),
    /// It is the one that this program knows.
    Present(i64),
    /// It is older; 0 is no store yet.
    Older { found: i64, known: i64 },
}

impl Standing {
    /// Whether nothing is to be done.
    pub(crate) const fn is_present(&self) -> bool {
        !matches!(self, Self::Older { .. })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None(scheme) => write!(f, "stores of this kind ({scheme}) have no schema of steps"),
            Self::Present(version) => write!(f, "version {version}, which is this program's"),
            Self::Older { found: 0, known } => write!(f, "there is none yet; this program knows version {known}"),
            Self::Older { found, known } => write!(f, "version {found}, and this program knows version {known}"),
        }
    }
}

/// Looks at a store's schema, and changes nothing.
pub(crate) fn standing(url: &str) -> Result<Standing, Problem> {
    let known = steps(url).last().map(|step| step.number);
    let store = store::connect(&store::shared(url), Clock::from_env()?)?;
    let is_to_be_made = store::shared(url) != url && url.contains("create=true");
    match (wait_for(store.read(&Keys::default())), known) {
        (Ok(_), Some(known)) => Ok(Standing::Present(known)),
        (Ok(_), None) => Ok(Standing::None(url.split(':').next().unwrap_or_default().to_owned())),
        (Err(StoreError::Schema { found, known, .. }), Some(_)) if found < known => {
            Ok(Standing::Older { found, known })
        }
        (Err(StoreError::Missing(_)), Some(known)) if is_to_be_made => Ok(Standing::Older { found: 0, known }),
        (Err(error), _) => Err(error.into()),
    }
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let (url, shown) = (setup.url.as_str(), setup.shown_url());
        let before = standing(url)?;
        let (from, to) = match &before {
            Standing::Older { found, known } => (Some(*found), Some(*known)),
            Standing::Present(version) => (Some(*version), Some(*version)),
            Standing::None(_) => (None, None),
        };
        let missing: Vec<Step> = match before {
            Standing::Older { found, .. } => steps(url).into_iter().filter(|step| step.number > found).collect(),
            _ => Vec::new(),
        };
        if !self.dry_run && !before.is_present() {
            apply(url)?;
        }
        if self.json {
            let step = |step: &Step| json!({ "number": step.number, "name": step.name, "sql": step.sql });
            let steps: Vec<_> = missing.iter().map(step).collect();
            let answer = json!({
                "authority": shown,
                "from": from,
                "to": to,
                "migrated": !self.dry_run && !missing.is_empty(),
                "steps": steps,
                "dry_run": self.dry_run,
            });
            Out::new().json(&answer)?;
            return Ok(Exit::Success);
        }
        match (&before, self.dry_run) {
            (Standing::Older { found, known }, true) => {
                for Step { number, name, sql } in &missing {
                    Out::new().line(&format!("-- {number}: {name}\n{}", sql.trim_end()))?;
                }
                say("migrate", format_args!("would bring {shown} from version {found} to {known}"));
            }
            (Standing::Older { found: 0, known }, false) => {
                Out::new().line(&clean(&format!("Made: {shown}, with version {known} of the schema.")))?;
            }
            (Standing::Older { found, known }, false) => {
                Out::new().line(&clean(&format!("Migrated: {shown}, from version {found} to {known}.")))?;
            }
            (present, _) => Out::new().line(&clean(&format!("Nothing is to be done at {shown}: {present}.")))?,
        }
        Ok(Exit::Success)
    }
}

/// All steps that stores of this kind have, oldest first.
fn steps(url: &str) -> Vec<Step> {
    let schema = Address::parse(url).ok().and_then(|address| {
        let named = address.parameters().iter().find(|(name, _)| *name == "schema").map(|(_, value)| *value);
        matches!(address.scheme(), "postgres" | "postgresql").then(|| named.unwrap_or("tenure").to_owned())
    });
    schema.map(|schema| postgres::steps(&schema)).unwrap_or_default()
}

fn apply(url: &str) -> Result<(), Problem> {
    postgres::apply(url)
}

#[cfg(feature = "postgres")]
mod postgres {
    use super::{Problem, Step, wait_for};
    use tenure::authority::store::postgres::{migrate, migrations};

    pub(super) fn steps(schema: &str) -> Vec<Step> {
        let steps = migrations(schema).into_iter();
        steps.map(|step| Step { number: step.number.into(), name: step.name, sql: step.sql }).collect()
    }

    pub(super) fn apply(url: &str) -> Result<(), Problem> {
        wait_for(migrate(url))?;
        Ok(())
    }
}

/// A program without it refuses such an address.
#[cfg(not(feature = "postgres"))]
mod postgres {
    use super::{Problem, Step};

    pub(super) fn steps(_schema: &str) -> Vec<Step> {
        Vec::new()
    }

    pub(super) fn apply(_url: &str) -> Result<(), Problem> {
        Ok(())
    }
}
