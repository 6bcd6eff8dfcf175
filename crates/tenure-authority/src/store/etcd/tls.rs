//! What an encrypted connection trusts.

use super::settings::Settings;
use crate::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// The provider is given explicitly: with two of them in one program, rustls would panic.
pub(super) fn config(settings: &Settings) -> Result<ClientConfig, StoreError> {
    let wrong = |why: String| StoreError::Address { url: settings.shown.clone(), why };
    let mut roots = RootCertStore::empty();
    match &settings.tls_ca {
        Some(path) => {
            let unreadable = |error: rustls::pki_types::pem::Error| {
                wrong(format!("tls_ca {} holds no certificates: {error}", path.display()))
            };
            for certificate in CertificateDer::pem_file_iter(path).map_err(unreadable)? {
                roots.add(certificate.map_err(unreadable)?).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong(format!("tls_ca {} holds no certificates", path.display())));
            }
        }
        None if settings.is_encrypted => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        None => {}
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(format!("no encryption: {error}")))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
