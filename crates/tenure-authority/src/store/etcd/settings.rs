//! What an address says.

use crate::store::{StoreError, shown};
use std::path::PathBuf;
use std::time::Duration;
use tenure_core::Ttl;
use tenure_core::address::{flag, plain, span};

/// An address, taken apart. Its password is never shown: this has no `Debug`.
#[derive(Clone)]
pub(super) struct Settings {
    /// For messages: without the password.
    pub(super) shown: String,
    /// `http://host:port` of each member.
    pub(super) members: Vec<String>,
    pub(super) user: Option<(String, String)>,
    /// What all keys begin with.
    pub(super) name: String,
    pub(super) create: bool,
    pub(super) max_ttl: Option<Ttl>,
    pub(super) is_encrypted: bool,
    pub(super) tls_ca: Option<PathBuf>,
}

/// The `max_ttl` of a store that is made without one. Whoever learns late that a session is not renewed waits so long
/// at most, and so long is a quarantine.
const MAX_TTL: Duration = Duration::from_mins(10);

const PORT: &str = "2379";

impl Settings {
    /// # Errors
    /// [`StoreError::Address`]: it makes no sense.
    pub(super) fn of(url: &str) -> Result<Self, StoreError> {
        Self::parse(url).map_err(|why| StoreError::Address { url: shown(url), why })
    }

    pub(super) fn new_max_ttl(&self) -> Ttl {
        self.max_ttl.unwrap_or_else(|| Ttl::new(MAX_TTL).unwrap_or(Ttl::DEFAULT))
    }

    fn parse(url: &str) -> Result<Self, String> {
        const RIGHT: &str = "write etcd://HOST:PORT,HOST:PORT (or etcds:// for TLS)";
        let (scheme, rest) = url.split_once("://").ok_or(RIGHT)?;
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        if parameters.contains('@') {
            // What looks like a parameter may be the end of a password: it is not repeated.
            return Err("there is an `@` after a `?`: write a `?` in a password as %3F, and an `@` as %40".to_owned());
        }
        let (user, hosts) = match place.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, place),
        };
        let user = user.map(|user| {
            let (user, password) = user.split_once(':').ok_or("a user needs a password: write user:password@")?;
            let plain = |text| plain(text).map_err(|error| error.to_string());
            Ok::<_, String>((plain(user)?, plain(password)?))
        });
        let is_encrypted = scheme == "etcds";
        let mut settings = Self {
            shown: shown(url),
            members: members(hosts.trim_end_matches('/'), is_encrypted).ok_or(RIGHT)?,
            user: user.transpose()?,
            name: "tenure".to_owned(),
            create: false,
            max_ttl: None,
            is_encrypted,
            tls_ca: None,
        };
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or_else(|| format!("{parameter:?} has no value"))?;
            match name {
                "name" => settings.name = name_of(value)?,
                "create" => settings.create = flag(value).map_err(|error| error.to_string())?,
                "max_ttl" => {
                    let span = span(value).map_err(|error| error.to_string())?;
                    settings.max_ttl = Some(Ttl::new(span).map_err(|error| error.to_string())?);
                }
                "tls_ca" if is_encrypted => {
                    settings.tls_ca = Some(plain(value).map_err(|error| error.to_string())?.into());
                }
                "tls_ca" => return Err("tls_ca is for etcds://, which is encrypted".to_owned()),
                other => {
                    return Err(format!(
                        "an etcd store has no parameter {other:?}; it has name, create, max_ttl, tls_ca"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

fn members(hosts: &str, is_encrypted: bool) -> Option<Vec<String>> {
    let scheme = if is_encrypted { "https" } else { "http" };
    let member = |host: &str| {
        let is_host = !host.is_empty() && !host.contains(['/', '#', ' ', '@']);
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let port = if has_port { String::new() } else { format!(":{PORT}") };
        is_host.then(|| format!("{scheme}://{host}{port}"))
    };
    hosts.split(',').map(member).collect()
}

/// No slash: the keys of one store must not lie among those of another one.
fn name_of(value: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if value.is_empty() || value.len() > 64 || !value.bytes().all(is_plain) {
        return Err(format!("the name {value:?} is none: take up to 64 of A-Z, a-z, 0-9, `-`, `_` and `.`"));
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests;
