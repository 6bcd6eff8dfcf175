//! The address of an index in a Chroma server.

use crate::index::IndexError;
use reqwest::Client;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure::core::address::{Address, plain, span};
use tenure::sink::shown;

/// How long one answer is waited for, unless said otherwise.
const WAIT: Duration = Duration::from_secs(10);

/// A connection that is not there after this is none.
const CONNECT: Duration = Duration::from_secs(3);

/// What an address says.
pub(super) struct Settings {
    /// Scheme, host and port of the server.
    pub(super) server: String,
    /// The address of the records.
    pub(super) catalog: String,
    /// How long one answer is waited for.
    pub(super) wait: Duration,
    tls_ca: Option<PathBuf>,
}

/// What to add when the catalog is missing.
const CATALOG: &str = "the server keeps vectors and no records; say where those are, with catalog=sqlite:FOLDER or \
                       catalog=postgres://… (with %3F for ? and %26 for & in it)";

impl Settings {
    /// Reads an address.
    pub(super) fn parse(url: &str) -> Result<Self, IndexError> {
        let wrong = |why: String| IndexError::Address { url: shown(url), why };
        let rest = url.strip_prefix("chroma:").unwrap_or(url);
        let (server, _) = rest.split_once('?').unwrap_or((rest, ""));
        let server = server.trim_end_matches('/');
        let address = Address::parse(rest).map_err(|error| wrong(error.to_string()))?;
        let host = server.strip_prefix("http://").or_else(|| server.strip_prefix("https://")).unwrap_or_default();
        if host.is_empty() || host.contains('/') {
            return Err(wrong("write chroma:http://HOST:PORT?catalog=…, or chroma:https://…".to_owned()));
        }
        if host.contains('@') {
            return Err(wrong("it has a password, which this server does not ask for: leave it out".to_owned()));
        }
        let (mut catalog, mut wait, mut tls_ca) = (None, WAIT, None);
        for (name, value) in address.parameters() {
            match *name {
                "catalog" => catalog = Some(plain(value).map_err(|error| wrong(error.to_string()))?),
                "wait" => wait = span(value).map_err(|error| wrong(error.to_string()))?,
                "tls_ca" => tls_ca = Some(PathBuf::from(plain(value).map_err(|error| wrong(error.to_string()))?)),
                _ => {
                    let why =
                        format!("the index in a Chroma server has no parameter {name:?}; it has catalog, wait, tls_ca");
                    return Err(wrong(why));
                }
            }
        }
        let catalog = catalog.ok_or_else(|| wrong(CATALOG.to_owned()))?;
        if wait.is_zero() || wait > Duration::from_secs(60) {
            return Err(wrong("wait is how long one answer may take: from 1ms to 60s".to_owned()));
        }
        Ok(Self { server: server.to_owned(), catalog, wait, tls_ca })
    }

    pub(super) fn client(&self) -> Result<Client, IndexError> {
        let wrong = |why: String| IndexError::Address { url: self.server.clone(), why };
        Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT.min(self.wait))
            .timeout(self.wait)
            // A redirect would carry the documents to wherever it points.
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(self.tls().map_err(wrong)?)
            .build()
            .map_err(|error| wrong(format!("no connections can be made: {error}")))
    }

    /// The provider is given explicitly: with two of them in one program, rustls would panic.
    fn tls(&self) -> Result<ClientConfig, String> {
        let mut roots = RootCertStore::empty();
        match &self.tls_ca {
            Some(path) => trust(&mut roots, path).map_err(|why| format!("tls_ca {}: {why}", path.display()))?,
            None if self.server.starts_with("https:") => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            None => {}
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("no encryption: {error}"))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}

fn trust(roots: &mut RootCertStore, path: &Path) -> Result<(), String> {
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())? {
        roots.add(certificate.map_err(|error| error.to_string())?).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(()) }
}
