//! TLS, with this program's one provider.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Trusts the certificates of the given file, or those of the system. The server's name is always checked.
pub(super) fn connector(ca: Option<&str>, mode: SslMode) -> Result<MakeRustlsConnect, String> {
    let roots = match ca {
        Some(path) if mode == SslMode::Disable => {
            return Err(format!("tls_ca={path} means nothing with sslmode=disable: leave one of them out"));
        }
        Some(path) => named_roots(path).map_err(|why| format!("tls_ca={path} cannot be used: {why}"))?,
        None => {
            let mut roots = RootCertStore::empty();
            if mode != SslMode::Disable {
                // One that cannot be read vouches for nobody.
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            roots
        }
    };
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn named_roots(path: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(roots) }
}
