//! TLS, with this program's one provider.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Trusts the certificates of the given file, or those of the system.
pub(super) fn connector(ca: Option<&str>, mode: SslMode) -> Result<MakeRustlsConnect, String> {
    if ca.is_some() && mode == SslMode::Disable {
        return Err("it has tls_ca, but sslmode=disable switches TLS off: leave one of them out".to_owned());
    }
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let unread =
                |error: &dyn std::fmt::Display| format!("the certificates of tls_ca={path} cannot be read: {error}");
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unread(&error))? {
                let certificate = certificate.map_err(|error| unread(&error))?;
                roots.add(certificate).map_err(|error| unread(&error))?;
            }
            if roots.is_empty() {
                return Err(unread(&"there is none in it"));
            }
        }
        None if mode == SslMode::Disable => {}
        // One that cannot be read vouches for nobody.
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
