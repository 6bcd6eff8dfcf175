//! What the authority's file and its deadlines are read with: SQLite, and the clocks.

use super::finding::Finding;
use crate::screen::when::{absolute, parse};
use crate::span::Span;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;
use tenure::authority::{Clock, WallTime, boot_id};

/// How far this machine's wall clock may lie behind the newest row of the history.
const BACK_MAX: Duration = Duration::from_secs(5);

pub(super) fn version() -> Finding {
    // Opening a store refuses an engine that must not be trusted.
    Finding::ok("engine", format!("SQLite {}", rusqlite::version()))
}

pub(super) fn clock() -> Vec<Finding> {
    let since_boot = match Clock::from_env().and_then(|clock| clock.now_nanos()) {
        Ok(0) => Finding::fail(
            "clock",
            "the clock that counts suspend stands at zero",
            "use a kernel with CLOCK_BOOTTIME: without it no deadline can be kept",
        ),
        Ok(nanos) => Finding::ok(
            "clock",
            format!("it counts suspend, and stands at {} since the start", Span(Duration::from_nanos(nanos))),
        ),
        Err(error) => Finding::fail("clock", error.to_string(), "deadlines cannot be read without it"),
    };
    let id = boot_id();
    let boot = if id.is_empty() {
        Finding::warn(
            "boot",
            "the kernel does not tell which start of the machine this is",
            "make /proc/sys/kernel/random/boot_id readable: until then a reboot is noticed only as deadlines pass",
        )
    } else {
        Finding::ok("boot", format!("this start of the machine is {id}"))
    };
    vec![since_boot, boot]
}

/// What only the file itself says.
pub(super) fn file(path: &Path) -> Vec<Finding> {
    match read(path) {
        Ok(findings) => findings,
        Err(error) => vec![Finding::warn(
            "schema",
            format!("{} cannot be read on its own: {error}", path.display()),
            "see whether another process holds it",
        )],
    }
}

fn read(path: &Path) -> rusqlite::Result<Vec<Finding>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    let mode: String = connection.query_row("PRAGMA journal_mode", (), |row| row.get(0))?;
    let newest = "SELECT wall FROM history ORDER BY number DESC LIMIT 1";
    let newest = match connection.query_row(newest, (), |row| row.get::<_, String>(0)) {
        Ok(newest) => Some(newest),
        Err(rusqlite::Error::QueryReturnedNoRows) => None,
        Err(error) => return Err(error),
    };
    let schema = Finding::ok("schema", format!("version {version}, journal mode {mode}"));
    Ok(vec![schema, wall(newest.as_deref(), WallTime::now())])
}

/// The wall clock decides nothing, but people read the history by it.
fn wall(newest: Option<&str>, now: WallTime) -> Finding {
    let says = format!("it is {}", absolute(now));
    let Some(newest) = newest.and_then(parse) else {
        return Finding::ok("wall clock", says);
    };
    let ahead = Duration::from_millis(newest.as_millis().saturating_sub(now.as_millis()));
    if ahead > BACK_MAX {
        return Finding::warn(
            "wall clock",
            format!("{says}, but the history's newest row is of {}, {} ahead", absolute(newest), Span(ahead)),
            "set this machine's clock; no lease depends on it, but the times in the history do",
        );
    }
    Finding::ok("wall clock", says)
}

#[cfg(test)]
mod tests;
