use crate::exit::Exit;
use crate::problem::Problem;
use crate::screen::Out;
use tenure::core::fence::Rule;
use tenure::sink::postgres::script;

/// Print the SQL that makes a receiver in a database.
///
/// One script in one transaction, for whoever wants to read it, or may make tables where the workers' role may not. An
/// authority's tables may stand in the same schema. A receiver's address with create=true makes the same by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The database.
    kind: Kind,
    /// The schema that the tables and functions are made in.
    #[arg(long, value_name = "NAME", default_value = "tenure")]
    schema: String,
    /// What it accepts, for its whole life.
    #[arg(long, value_name = "RULE", default_value = "sealed")]
    rule: Accepts,
}

const AFTER_HELP: &str = "\
Examples:
  tenure sql postgres | psql -v ON_ERROR_STOP=1 -d shop
  tenure sql postgres --schema fences --rule high-water > receiver.sql

Afterwards, in SQL:
  SELECT tenure.allow('app', 'write');      a role that writes under a token
  SELECT tenure.allow('holder', 'seal');    the role of the workers' own library, which seals
  SELECT tenure.protect('public.documents', resource => 'tenant_id');
  BEGIN; SELECT tenure.admit('tenant-7', 3, GRANT); UPDATE public.documents …; COMMIT;

Under the rule held the authority's tables must stand in that schema. If another role made them, let it run before:
  GRANT USAGE, CREATE ON SCHEMA tenure TO ROLE; GRANT SELECT ON tenure.held TO ROLE;

Exit status:
  0   printed
  64  the name of the schema would need quotes";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// PostgreSQL 13 or newer
    Postgres,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Accepts {
    /// The registered token alone
    Sealed,
    /// Any epoch at or above the highest seen
    HighWater,
    /// The registered token, while the authority in this schema says that it stands
    Held,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let Kind::Postgres = self.kind;
        let rule = match self.rule {
            Accepts::Sealed => Rule::Sealed,
            Accepts::HighWater => Rule::HighWater,
            Accepts::Held => Rule::Held,
        };
        Out::new().write(&script(&self.schema, rule)?)?;
        Ok(Exit::Success)
    }
}
