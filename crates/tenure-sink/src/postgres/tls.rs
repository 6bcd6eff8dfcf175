//! TLS for `tokio_postgres`.

use crate::trust::Trust;
use std::path::Path;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Trusts the certificates of the given file, or those of the system.
pub(super) fn connector(ca: Option<&str>, mode: SslMode) -> Result<MakeRustlsConnect, String> {
    let is_encrypted = mode != SslMode::Disable;
    if let Some(path) = ca.filter(|_| !is_encrypted) {
        return Err(format!("tls_ca={path} means nothing with sslmode=disable: leave one of them out"));
    }
    Ok(MakeRustlsConnect::new(Trust::of(ca.map(Path::new), is_encrypted).config()?))
}
