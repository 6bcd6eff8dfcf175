use super::*;
use rusqlite::Connection;

#[test]
fn a_writer_is_named_as_long_as_it_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tenure.db");
    let connection = Connection::open(&path).expect("a file");
    connection.pragma_update(None, "journal_mode", "WAL").expect("WAL");
    assert_eq!(named(&path), None);
    connection.execute_batch("BEGIN IMMEDIATE").expect("a transaction");
    let said = named(&path).expect("somebody");
    assert!(said.starts_with(&format!("process {} (", std::process::id())), "{said}");
    connection.execute_batch("COMMIT").expect("an end");
    assert_eq!(named(&path), None);
}
