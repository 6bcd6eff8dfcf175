//! An address taken apart.

use crate::trust::Trust;
use crate::{SinkError, shown};
use http::HeaderValue;
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::address::{Address, plain, span};

/// A connection that is not there after this is none.
const CONNECT: Duration = Duration::from_secs(2);

/// What an address says.
#[derive(Clone)]
pub(super) struct Settings {
    /// Scheme, host and path, without a slash at the end: what is shown, and what is asked.
    pub(super) place: String,
    is_encrypted: bool,
    wait: Duration,
    tls_ca: Option<PathBuf>,
    /// The operator's, as a header.
    pub(super) secret: Option<HeaderValue>,
}

impl Settings {
    pub(super) fn of(url: &str) -> Result<Self, SinkError> {
        let (place, _) = url.split_once('?').unwrap_or((url, ""));
        let place = place.trim_end_matches('/');
        let wrong = |why: String| SinkError::Address { url: shown(url), why };
        let address = Address::parse(url).map_err(|error| wrong(error.to_string()))?;
        let host = address.path().strip_prefix("//").filter(|host| !host.is_empty() && !host.starts_with('/'));
        let host = host.ok_or_else(|| wrong("write http://HOST:PORT/PATH or https://HOST:PORT/PATH".to_owned()))?;
        if host.split('/').next().is_some_and(|host| host.contains('@')) {
            return Err(wrong("it has a password, which a receiver does not ask for: leave it out".to_owned()));
        }
        let mut settings = Self {
            place: place.to_owned(),
            is_encrypted: address.scheme() == "https",
            wait: Duration::from_secs(10),
            tls_ca: None,
            secret: None,
        };
        for (name, value) in address.parameters() {
            let path = || plain(value).map(PathBuf::from).map_err(|error| wrong(error.to_string()));
            match *name {
                "wait" => settings.wait = span(value).map_err(|error| wrong(error.to_string()))?,
                "tls_ca" => settings.tls_ca = Some(path()?),
                "secret" => settings.secret = Some(secret(&path()?).map_err(wrong)?),
                _ => return Err(wrong(format!("an http sink has no parameter {name:?}; it has wait, tls_ca, secret"))),
            }
        }
        Ok(settings)
    }

    pub(super) fn client(&self) -> Result<reqwest::Client, SinkError> {
        let wrong = |why: String| SinkError::Address { url: self.place.clone(), why };
        let trust = Trust::of(self.tls_ca.as_deref(), self.is_encrypted);
        reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT.min(self.wait))
            .timeout(self.wait)
            // A redirect would carry the signed grant to wherever it points.
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(trust.config().map_err(wrong)?)
            .build()
            .map_err(|error| wrong(format!("no connections can be made: {error}")))
    }
}

/// In the file stands the secret alone.
fn secret(path: &std::path::Path) -> Result<HeaderValue, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("secret {}: {error}", path.display()))?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", text.trim()))
        .map_err(|_| format!("secret {} holds more than one line of plain text", path.display()))?;
    value.set_sensitive(true);
    Ok(value)
}
