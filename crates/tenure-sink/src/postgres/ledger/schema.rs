//! The ledger's tables, beside the sink's. They have a version of their own.

use crate::SinkError;
use crate::postgres::place::{bad_schema, is_plain_name};

/// The version that this program knows.
pub(super) const VERSION: i32 = 1;

/// The steps from nothing to that version, each with its name. A step is never changed after a release.
const STEPS: [(&str, &str); 1] = [("tables", include_str!("first.sql"))];

/// What is asked and written.
#[derive(Debug)]
pub(super) struct Statements {
    pub(super) version: String,
    pub(super) is_there: String,
    pub(super) durable: &'static str,
    pub(super) entries: String,
    pub(super) entry: String,
    pub(super) left: String,
    pub(super) write: String,
    pub(super) change: String,
    pub(super) attempts: String,
    select: String,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let millis = |span: &str| format!("greatest((extract(epoch FROM {span}) * 1000)::bigint, 0)");
        let (intended, changed, age) =
            (millis("intended_at"), millis("changed_at"), millis("(clock_timestamp() - changed_at)"));
        let entry = "epoch, digest, state, outcome";
        let table = format!("{schema}.ledger_attempt");
        let select = format!(
            "SELECT resource, operation, epoch, seal_no, digest, state, outcome, system, owner, {intended}, {changed}, \
             {age}, decided_by, why FROM {table} "
        );
        Self {
            version: format!("SELECT coalesce(max(number), 0) FROM {schema}.ledger_migration"),
            is_there: format!("SELECT to_regclass('{schema}.ledger_migration') IS NOT NULL"),
            // A session that does not wait for its commits waits for this one.
            durable: "SELECT set_config('synchronous_commit', 'on', true) \
                      WHERE current_setting('synchronous_commit') = 'off'",
            entries: format!(
                "SELECT {entry} FROM {table} WHERE resource = $1 AND operation = $2 ORDER BY epoch FOR UPDATE"
            ),
            entry: format!(
                "SELECT {entry} FROM {table} WHERE resource = $1 AND operation = $2 AND epoch = $3 FOR UPDATE"
            ),
            left: format!(
                "SELECT {entry}, operation FROM {table} WHERE resource = $1 AND epoch < $2 AND {OPEN} \
                 ORDER BY operation, epoch FOR UPDATE"
            ),
            // Of two that write the same at once, one finds it written.
            write: format!(
                "INSERT INTO {table} (resource, operation, epoch, seal_no, digest, state, system, owner) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING"
            ),
            change: format!(
                "UPDATE {table} SET state = $4, outcome = coalesce($5, outcome), decided_by = $6, why = $7, \
                 changed_at = clock_timestamp() WHERE resource = $1 AND operation = $2 AND epoch = $3"
            ),
            attempts: format!("{select} WHERE operation = $1 ORDER BY resource, operation, epoch"),
            select,
        }
    }

    /// Lists what satisfies a condition, after a key, of one resource or of all.
    pub(super) fn list(&self, condition: &str) -> String {
        format!(
            "{} WHERE {condition} AND (resource, operation, epoch) > ($1, $2, $3) AND ($5::text IS NULL OR resource = $5) \
             ORDER BY resource, operation, epoch LIMIT $4",
            self.select
        )
    }
}

/// What is not over.
pub(super) const OPEN: &str = "state IN ('intent', 'sent', 'unknown')";

/// The statements that make the ledger's tables in a schema in which a sink is, in one transaction: for those who want to read
/// them or run them themselves.
///
/// # Errors
/// [`SinkError::Address`] when the schema's name would need quotes.
pub fn ledger_script(schema: &str) -> Result<String, SinkError> {
    if !is_plain_name(schema) {
        return Err(SinkError::Address { url: schema.to_owned(), why: bad_schema(schema) });
    }
    Ok(format!("BEGIN;\n{}COMMIT;\n", steps(schema, 0)))
}

/// What leads from a version to this program's.
pub(super) fn steps(schema: &str, from: i32) -> String {
    let mut text = String::new();
    for ((name, sql), number) in STEPS.iter().zip(1_i32..).filter(|(_, number)| *number > from) {
        text += &sql.replace("{schema}", schema);
        text += &format!("INSERT INTO {schema}.ledger_migration (number, name) VALUES ({number}, '{name}');\n");
    }
    text
}
