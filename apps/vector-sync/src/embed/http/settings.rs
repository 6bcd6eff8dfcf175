//! An address taken apart.

use crate::manifest::Sum;
use reqwest::header::HeaderValue;
use rustls::{ClientConfig, RootCertStore};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Where the key is looked for, unless the address says otherwise.
const KEY: &str = "VECTOR_SYNC_KEY";
/// A connection that is not there after this is none.
const CONNECT: Duration = Duration::from_secs(5);

/// How a model behind HTTP is asked.
#[derive(Clone)]
pub struct HttpSettings {
    /// What is posted to, with the query that the service may want.
    pub(super) url: String,
    /// The model's name for the service.
    pub(super) model: String,
    /// How many numbers its vectors have.
    pub(super) dimensions: u32,
    /// How many texts one call takes.
    pub(super) batch: usize,
    /// How long an answer is waited for.
    pub(super) wait: Duration,
    pub(super) max_calls: Option<u64>,
    pub(super) max_tokens: Option<u64>,
    /// The environment's variable that the key is in.
    key_name: Option<String>,
    pub(super) key: Option<HeaderValue>,
}

impl HttpSettings {
    /// Reads an address: `https://HOST/PATH#MODEL&dimensions=N`. What stands behind the `#` is not sent as a part of it:
    ///
    /// | setting | meaning | unless said |
    /// |---|---|---|
    /// | `dimensions` | how many numbers a vector has | |
    /// | `key` | the environment's variable with the key | `VECTOR_SYNC_KEY`, if it is set |
    /// | `batch` | how many texts one call takes | 64 |
    /// | `wait` | how many seconds an answer is waited for | 60 |
    /// | `max-calls`, `max-tokens` | what one run may use | no limit |
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(address: &str) -> Result<Self, String> {
        let (url, rest) = address.split_once('#').unwrap_or((address, ""));
        let mut parts = rest.split('&');
        let model =
            parts.next().filter(|model| !model.is_empty()).ok_or("write https://HOST/PATH#MODEL&dimensions=N")?;
        let host = host(url)?;
        let mut settings = Self {
            url: url.to_owned(),
            model: model.to_owned(),
            dimensions: 0,
            batch: 64,
            wait: Duration::from_secs(60),
            max_calls: None,
            max_tokens: None,
            key_name: None,
            key: None,
        };
        for part in parts {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} has no value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name}={value}: write a whole number"));
            let small = |most: u64| match number()? {
                number if (1..=most).contains(&number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
                _ => Err(format!("{name}={value}: write a number from 1 to {most}")),
            };
            match name {
                "dimensions" => settings.dimensions = small(16_384)?,
                "batch" => settings.batch = small(2_048)? as usize,
                "wait" => settings.wait = Duration::from_secs(small(3_600)?.into()),
                "max-calls" => settings.max_calls = Some(number()?),
                "max-tokens" => settings.max_tokens = Some(number()?),
                "key" => settings.key_name = Some(value.to_owned()),
                _ => {
                    return Err(format!(
                        "there is no setting {name:?}; there are dimensions, key, batch, wait, max-calls, max-tokens"
                    ));
                }
            }
        }
        if settings.dimensions == 0 {
            return Err(format!("say how many numbers the vectors of {model} have: #{model}&dimensions=N"));
        }
        settings.key = settings.find_key()?;
        let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if settings.key.is_some() && !url.starts_with("https://") && !is_here {
            return Err("its key would be sent where others can read it: use https://".to_owned());
        }
        Ok(settings)
    }

    fn find_key(&self) -> Result<Option<HeaderValue>, String> {
        let name = self.key_from();
        let key = match (std::env::var(name), &self.key_name) {
            (Ok(key), _) if !key.trim().is_empty() => key,
            (_, None) => return Ok(None),
            (_, Some(name)) => return Err(format!("the variable {name}, which should hold its key, is not set")),
        };
        let mut key = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
            .map_err(|_| format!("the variable {name} holds more than one line of plain text"))?;
        // Whoever prints the request does not print this.
        key.set_sensitive(true);
        Ok(Some(key))
    }

    /// The variable that the key is read from.
    pub(super) fn key_from(&self) -> &str {
        self.key_name.as_deref().unwrap_or(KEY)
    }

    /// Whether a text holds a part of the key.
    pub(super) fn is_secret(&self, text: &str) -> bool {
        let key = self.key.as_ref().and_then(|key| key.to_str().ok()).and_then(|key| key.strip_prefix("Bearer "));
        let beginning = key.and_then(|key| key.get(..6).or(Some(key)));
        beginning.is_some_and(|beginning| text.contains(beginning))
    }

    /// The address for people, without what a service may take for a password.
    pub(super) fn shown(&self) -> &str {
        self.url.split('?').next().unwrap_or_default()
    }

    /// The model's name with a digest of where it is and how long its vectors are.
    pub(super) fn name(&self) -> String {
        let sum = Sum::of(&[self.shown().as_bytes(), self.model.as_bytes(), &self.dimensions.to_le_bytes()]);
        format!("{}@{}", self.model, sum.short())
    }

    pub(super) fn client(&self) -> Result<reqwest::Client, String> {
        let mut roots = RootCertStore::empty();
        if self.url.starts_with("https://") {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        // The provider is named: with two of them in one program, rustls would panic.
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("no encryption: {error}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT.min(self.wait))
            .timeout(self.wait)
            // A redirect would carry the texts, and the key, to wherever it points.
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|error| format!("no connections can be made: {error}"))
    }
}

/// The name of the machine in an address.
fn host(url: &str) -> Result<&str, String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let place = rest.ok_or("write https://HOST/PATH#MODEL&dimensions=N")?.split(['/', '?']).next().unwrap_or_default();
    if place.contains('@') {
        return Err("it has a password in it: put the key into the environment instead".to_owned());
    }
    let host = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
        Some((host, _)) => host,
        None => place.split(':').next().unwrap_or_default(),
    };
    if host.is_empty() {
        Err("it names no host: write https://HOST/PATH#MODEL&dimensions=N".to_owned())
    } else {
        Ok(host)
    }
}

#[cfg(test)]
mod tests;
