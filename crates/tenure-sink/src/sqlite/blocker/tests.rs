use super::*;
use rusqlite::Connection;

const LOCKS: &str = "\
1: POSIX  ADVISORY  WRITE 4711 fd:00:131 120 120
2: POSIX  ADVISORY  READ 4712 fd:00:131 123 123
3: POSIX  ADVISORY  WRITE 4713 fd:00:132 120 120
3: -> POSIX  ADVISORY  WRITE 4714 fd:00:131 120 120
4: FLOCK  ADVISORY  WRITE 4715 fd:00:131 0 EOF
5: POSIX  ADVISORY  WRITE 4716 00:2f:140 1073741824 1073742335
6: POSIX  ADVISORY  READ 4717 fd:00:140 1073741826 1073742335
7: OFDLCK ADVISORY  WRITE -1 fd:00:131 120 120
8: POSIX  ADVISORY  WRITE 0 fd:00:131 120 120
a line of another form
";

#[test]
fn only_whoever_has_the_byte_for_itself_is_named() {
    assert_eq!(holders(LOCKS, 131, 120), [4711]);
    assert_eq!(holders(LOCKS, 140, 0x4000_0001), [4716]);
    assert!(holders(LOCKS, 131, 121).is_empty());
    assert!(holders("", 131, 120).is_empty());
}

#[test]
fn a_writer_is_named_in_either_mode_of_the_journal() {
    for mode in ["wal", "delete"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.sqlite");
        let place = path.display().to_string();
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "journal_mode", mode).unwrap();
        connection.execute_batch("CREATE TABLE t (x)").unwrap();
        assert_eq!(named(&place), None, "{mode}");
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        let said = named(&place).unwrap();
        assert!(said.starts_with(&format!("Process {} (", std::process::id())), "{mode}: {said}");
        assert!(said.contains("this one itself") && said.contains("end that process"), "{mode}: {said}");
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(named(&place), None, "{mode}");
    }
}
