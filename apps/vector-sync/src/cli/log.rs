//! Trace events on the standard error, for whoever asks for them with `RUST_LOG`-like words in `VECTOR_SYNC_LOG`.

use tracing_subscriber::filter::LevelFilter;

/// Begins to listen: to errors, unless `VECTOR_SYNC_LOG` names another level. No event holds a document's text or a
/// password.
pub(crate) fn start() {
    let level =
        std::env::var("VECTOR_SYNC_LOG").ok().and_then(|level| level.parse().ok()).unwrap_or(LevelFilter::ERROR);
    let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false).try_init();
}
