//! An authority's own tables in a sink's database, whose rows a test sets. This crate may not ask an authority; what is tested
//! here is that its fence reads, judges and locks rightly. With authorities that grant and renew: the tests of `tenure`.

use rusqlite::{Connection, params};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_core::{Ending, ResourceName, Token};
use tenure_servers::postgres::psql;
use tenure_sink::SinkError;
use tenure_sink::conformance::SetAuthority;

const SQLITE: &str = include_str!("../../../tenure-authority/src/store/sqlite/first.sql");
const POSTGRES: &str = include_str!("../../../tenure-authority/src/store/postgres/first.sql");

/// How long a grant lasts here.
const LONG: Duration = Duration::from_mins(10);

/// Nothing is before it: clocks do not begin at zero.
const BEGINNING: u64 = 1_000_000;

fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap()
}

/// In a SQLite file, on a clock that is a file as well.
pub(crate) struct InSqlite {
    path: PathBuf,
    clock: PathBuf,
}

impl InSqlite {
    /// Makes its tables in a file that is not there yet.
    pub(crate) fn create(path: &Path) -> Self {
        let own = Self::at(path);
        own.set_clock(BEGINNING);
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch(SQLITE).unwrap();
        let origin = format!("file:{}", own.clock.display());
        let meta = "INSERT INTO meta VALUES (1, 'sqlite:test', 1, NULL, 0, NULL, 1, 0, ?1, 0)";
        connection.execute(meta, [origin]).unwrap();
        own
    }

    /// The one that is there.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf(), clock: path.with_extension("clock") }
    }

    pub(crate) fn set_clock(&self, millis: u64) {
        let aside = self.clock.with_extension("next");
        std::fs::write(&aside, format!("{millis}\n")).unwrap();
        std::fs::rename(&aside, &self.clock).unwrap();
    }

    pub(crate) fn now(&self) -> u64 {
        std::fs::read_to_string(&self.clock).unwrap().trim().parse().unwrap()
    }

    fn change(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<usize>) -> Result<(), SinkError> {
        let connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(Duration::from_millis(20)).unwrap();
        match work(&connection) {
            Ok(_) => Ok(()),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                Err(SinkError::Busy { place: "the authority".into(), waited: Duration::from_millis(20) })
            }
            Err(error) => panic!("{error}"),
        }
    }
}

impl SetAuthority for InSqlite {
    fn grants(&self, token: &Token) -> Result<(), SinkError> {
        let (id, epoch) = (token.grant.bits().to_be_bytes(), token.epoch.as_i64());
        let deadline = i64::try_from(self.now() * 1_000_000).unwrap() + nanos(LONG);
        self.change(|connection| {
            let tx = connection.unchecked_transaction()?;
            let session = "INSERT INTO session VALUES (?1, 'alice', ?1, 1, ?2, ?3, 0, 1, NULL, NULL, 1, ?1)
                           ON CONFLICT (id) DO NOTHING";
            tx.execute(session, params![id, nanos(LONG), deadline])?;
            let lease = "INSERT INTO lease VALUES (?1, ?2, ?3, ?3, 'alice', ?3, 1, 'held', NULL, NULL, NULL, '{}', 1)
                         ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, grant_id = excluded.grant_id,
                             session_id = excluded.session_id, phase = 'held' WHERE excluded.epoch > epoch";
            let changed = tx.execute(lease, params![token.resource.as_str(), epoch, id])?;
            tx.commit()?;
            Ok(changed)
        })
    }

    fn reaches_the_deadline(&self) {
        let connection = Connection::open(&self.path).unwrap();
        let deadline: i64 = connection.query_row("SELECT max(deadline_ns) FROM session", [], |row| row.get(0)).unwrap();
        self.set_clock(u64::try_from(deadline / 1_000_000).unwrap());
    }

    fn ends(&self, token: &Token, why: Ending) -> Result<(), SinkError> {
        let (id, resource) = (token.grant.bits().to_be_bytes(), token.resource.as_str());
        let now = i64::try_from(self.now() * 1_000_000).unwrap();
        self.change(|connection| match why {
            Ending::Session(why) => connection
                .execute("UPDATE session SET ended = ?1, ended_at_ns = ?2 WHERE id = ?3", params![why.name(), now, id]),
            Ending::Swept => connection.execute("DELETE FROM session WHERE id = ?1", [id]),
            Ending::Unknown => connection.execute("DELETE FROM lease WHERE resource = ?1", [resource]),
            phase => connection.execute("UPDATE lease SET phase = ?1 WHERE resource = ?2", [phase.name(), resource]),
        })
    }
}

/// In a schema of a PostgreSQL database.
pub(crate) struct InPostgres {
    url: String,
}

impl InPostgres {
    pub(crate) fn create(url: &str) -> Self {
        let own = Self::at(url);
        let ddl = POSTGRES.replace("{planning}", "").replace("{planning_one}", "").replace("{lock_timeout}", "3s");
        own.run(&format!("CREATE SCHEMA tenure; {}", ddl.replace("{schema}", "tenure")));
        own.run("INSERT INTO tenure.meta VALUES (true, tenure.identity(), 1, NULL, 1, NULL, 1, 0, 0)");
        own
    }

    /// The one that is there.
    pub(crate) fn at(url: &str) -> Self {
        Self { url: url.to_owned() }
    }

    fn run(&self, sql: &str) {
        psql(&self.url, sql).unwrap_or_else(|error| panic!("`{sql}`: {error}"));
    }
}

fn literal(name: &ResourceName) -> String {
    format!("'{}'", name.as_str().replace('\'', "''"))
}

impl SetAuthority for InPostgres {
    fn grants(&self, token: &Token) -> Result<(), SinkError> {
        let (id, resource) = (format!("'\\x{}'", token.grant), literal(&token.resource));
        self.run(&format!(
            "INSERT INTO tenure.session VALUES
                 ({id}, 'alice', {id}, true, {long}, tenure.clock_ns() + {long}, 0, 1, NULL, NULL, 1)
             ON CONFLICT (id) DO NOTHING;
             INSERT INTO tenure.lease AS l VALUES
                 ({resource}, {epoch}, {id}, {id}, 'alice', {id}, 1, 'held', NULL, NULL, NULL, '{{}}', 1, 0, 0)
             ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, grant_id = excluded.grant_id,
                 session_id = excluded.session_id, phase = 'held' WHERE excluded.epoch > l.epoch",
            long = nanos(LONG),
            epoch = token.epoch,
        ));
        Ok(())
    }

    fn reaches_the_deadline(&self) {
        self.run("UPDATE tenure.session SET deadline_ns = tenure.clock_ns()");
    }

    fn ends(&self, token: &Token, why: Ending) -> Result<(), SinkError> {
        let (id, resource, name) = (format!("'\\x{}'", token.grant), literal(&token.resource), why.name());
        self.run(&match why {
            Ending::Session(_) => {
                format!("UPDATE tenure.session SET ended = '{name}', ended_at_ns = tenure.clock_ns() WHERE id = {id}")
            }
            Ending::Swept => format!("DELETE FROM tenure.session WHERE id = {id}"),
            Ending::Unknown => format!("DELETE FROM tenure.lease WHERE resource = {resource}"),
            _ => format!("UPDATE tenure.lease SET phase = '{name}' WHERE resource = {resource}"),
        });
        Ok(())
    }
}
