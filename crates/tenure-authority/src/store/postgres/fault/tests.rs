//! What an error says of a commit.

use super::is_lost;
use tokio_postgres::error::{Severity, SqlState};

/// PgBouncer told of a server that was killed after the commit: `SFATAL C08P01 Mserver conn crashed?`, without the field that
/// holds the severity untranslated. It was taken for a refusal, and a grant that stood for one that was not made.
#[test]
fn a_pooler_whose_server_died_leaves_the_commit_unknown() {
    assert!(is_lost(None, "FATAL", &SqlState::PROTOCOL_VIOLATION));
}

#[test]
fn only_what_ends_the_connection_leaves_the_commit_unknown() {
    for (severity, translated, code, lost) in [
        (None, "FATAL", SqlState::ADMIN_SHUTDOWN, true),
        (None, "ERROR", SqlState::UNIQUE_VIOLATION, false),
        (None, "ERROR", SqlState::CONNECTION_FAILURE, true),
        (Some(Severity::Error), "ERROR", SqlState::T_R_STATEMENT_COMPLETION_UNKNOWN, true),
        (Some(Severity::Fatal), "SCHWERWIEGEND", SqlState::ADMIN_SHUTDOWN, true),
        (Some(Severity::Panic), "PANIK", SqlState::DISK_FULL, true),
        (Some(Severity::Error), "FEHLER", SqlState::LOCK_NOT_AVAILABLE, false),
    ] {
        assert_eq!(is_lost(severity, translated, &code), lost, "{translated} {code:?}");
    }
}
