//! What an encrypted connection trusts.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// Whose word counts for who a server is. Its name is always checked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust<'path> {
    /// The certificates of this file, which an address names with `tls_ca`, and no others.
    File(&'path Path),
    /// The system's own. One that cannot be read vouches for nobody.
    System,
    /// Nobody's: the connection is not encrypted.
    Nobody,
}

impl<'path> Trust<'path> {
    /// Of an address with `tls_ca`, if it has it, whose connection is encrypted or not.
    pub(crate) const fn of(ca: Option<&'path Path>, is_encrypted: bool) -> Self {
        match (ca, is_encrypted) {
            (Some(path), _) => Self::File(path),
            (None, true) => Self::System,
            (None, false) => Self::Nobody,
        }
    }

    /// How a client encrypts. The provider is given explicitly: with two of them in one program, rustls would panic.
    pub(crate) fn config(self) -> Result<ClientConfig, String> {
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("no encryption: {error}"))?;
        Ok(config.with_root_certificates(self.roots()?).with_no_client_auth())
    }

    fn roots(self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        match self {
            Self::File(path) => {
                let unreadable =
                    |why: &dyn std::fmt::Display| format!("tls_ca {} holds no certificates: {why}", path.display());
                for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))? {
                    let certificate = certificate.map_err(|error| unreadable(&error))?;
                    roots.add(certificate).map_err(|error| unreadable(&error))?;
                }
                if roots.is_empty() {
                    return Err(unreadable(&"it is empty"));
                }
            }
            Self::System => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
            Self::Nobody => {}
        }
        Ok(roots)
    }
}
