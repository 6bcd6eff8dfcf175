//! The address of a sink in PostgreSQL.

use super::tls;
use crate::SinkError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tenure_core::SinkId;
use tenure_core::address::{escaped, flag, plain, span, without_stray_password};
use tenure_core::fence::Rule;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Where the sink is, and how it is reached.
#[derive(Clone)]
pub(super) struct Place {
    /// Without a password.
    pub(super) shown: String,
    pub(super) schema: String,
    pub(super) create: bool,
    pub(super) rule: Rule,
    pub(super) wait: Duration,
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
}

/// How long a call waits for another transaction, unless said otherwise.
const WAIT: Duration = Duration::from_secs(5);

/// How long a connection may take to be made, to each address of the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The schema, unless said otherwise.
pub(super) const SCHEMA: &str = "tenure";

/// What goes to the driver as it is, and whether it may be shown.
const DRIVERS: &[(&str, bool)] = &[
    ("user", false),
    ("password", false),
    ("dbname", true),
    ("options", true),
    ("application_name", true),
    ("sslmode", true),
    ("host", true),
    ("hostaddr", true),
    ("port", true),
    ("connect_timeout", true),
    ("tcp_user_timeout", true),
    ("keepalives", true),
    ("keepalives_idle", true),
    ("keepalives_interval", true),
    ("keepalives_retries", true),
    ("target_session_attrs", true),
    ("channel_binding", true),
    ("load_balance_hosts", true),
];

impl Place {
    /// Reads an address, and the name that the sink is to have, if the address says one.
    pub(super) fn parse(url: &str) -> Result<(Self, Option<SinkId>), SinkError> {
        let shown = shown(url);
        let wrong = |why: String| SinkError::Address { url: shown.clone(), why };
        let said = |error: tenure_core::address::AddressError| wrong(error.to_string());
        let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut create, mut ca, mut id) = (SCHEMA.to_owned(), false, None, None);
        let (mut rule, mut wait) = (Rule::Sealed, WAIT);
        let mut rest: Vec<String> = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or_else(|| {
                let name = parameter.split(':').next().unwrap_or_default();
                wrong(format!("the parameter {name:?} has no value; write {name}=…"))
            })?;
            let value = plain(value).map_err(said)?;
            match name {
                "schema" => schema = value,
                "create" => create = flag(&value).map_err(said)?,
                "rule" => rule = crate::address::rule(&value).map_err(wrong)?,
                "wait" => wait = crate::address::bound(span(&value).map_err(said)?, &value).map_err(wrong)?,
                "tls_ca" => ca = Some(value),
                "id" => {
                    let read = SinkId::new(&value);
                    id = Some(read.map_err(|error| wrong(format!("{error}; choose one with id=NAME")))?);
                }
                "sslmode" => rest.push(format!("sslmode={}", ssl_mode(&value).map_err(wrong)?)),
                name if DRIVERS.iter().any(|(known, _)| *known == name) => rest.push(parameter.to_owned()),
                name => {
                    let known: Vec<_> = DRIVERS.iter().map(|(known, _)| *known).collect();
                    return Err(wrong(format!(
                        "a postgres sink has no parameter {name:?}; it has id, rule, create, wait, schema, tls_ca, {}",
                        known.join(", ")
                    )));
                }
            }
        }
        if !is_plain_name(&schema) {
            return Err(wrong(bad_schema(&schema)));
        }
        let mark = if rest.is_empty() { "" } else { "?" };
        // The driver's words may hold a piece of what it could not read.
        let unread =
            |_| wrong("write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for special characters".to_owned());
        let mut config = Config::from_str(&format!("{place}{mark}{}", rest.join("&"))).map_err(unread)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host; write postgres://USER@HOST:PORT/DATABASE".to_owned()));
        }
        complete(&mut config);
        let tls = tls::connector(ca.as_deref(), config.get_ssl_mode()).map_err(wrong)?;
        Ok((Self { shown, schema, create, rule, wait, config, tls }, id))
    }

    /// The name of a sink that was given none: an address by which whoever has the right to can open it, and which does
    /// not depend on who opens it.
    pub(super) fn usual_id(&self) -> Result<SinkId, SinkError> {
        let (config, ports) = (&self.config, self.config.get_ports());
        let mut hosts: Vec<String> = config.get_hosts().iter().map(host).collect();
        if hosts.is_empty() {
            hosts = config.get_hostaddrs().iter().map(|address| host(&Host::Tcp(address.to_string()))).collect();
        }
        let port = |at: usize| ports.get(at).or_else(|| ports.first()).copied().unwrap_or(5432);
        let hosts: Vec<String> = hosts.iter().enumerate().map(|(at, host)| format!("{host}:{}", port(at))).collect();
        let schema = if self.schema == SCHEMA { String::new() } else { format!("?schema={}", self.schema) };
        let id = format!("postgres://{}/{}{schema}", hosts.join(","), segment(self.database()));
        SinkId::new(id).map_err(|error| SinkError::Address {
            url: self.shown.clone(),
            why: format!("{error}; choose an id with id=NAME"),
        })
    }

    /// The user's name, for advice.
    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or("this user")
    }

    /// The database's name.
    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_else(|| self.user())
    }

    /// What is at the address cannot be used so.
    pub(super) fn wrong(&self, why: String) -> SinkError {
        SinkError::Address { url: self.shown.clone(), why }
    }
}

fn host(host: &Host) -> String {
    match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => segment(&path.display().to_string()),
    }
}

/// A piece of a URL between two slashes.
fn segment(text: &str) -> String {
    escaped(text).replace('/', "%2F").replace('@', "%40").replace(':', "%3A").replace(',', "%2C").replace('&', "%26")
}

/// The address as it may be shown: without a password, wherever in it one may stand.
fn shown(url: &str) -> String {
    // A password may hold an `@`, and a `?` that should have been escaped; a host cannot.
    let (who, rest) = url.rsplit_once('@').map_or((None, url), |(who, rest)| (Some(who), rest));
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let place = match who {
        Some(who) => {
            let (scheme, user) = who.find("://").map_or(("", who), |end| who.split_at(end + 3));
            format!("{scheme}{}@{place}", user.split([':', '?', '/']).next().unwrap_or_default())
        }
        None => without_stray_password(place).to_owned(),
    };
    let is_ours = |name: &str| ["schema", "create", "rule", "wait", "tls_ca", "id"].contains(&name);
    // Only what is known to be no secret: a misspelt `password=` is one as well.
    let kept: Vec<&str> = parameters
        .split('&')
        .filter(|parameter| {
            let name = parameter.split('=').next().unwrap_or_default();
            is_ours(name) || DRIVERS.contains(&(name, true))
        })
        .collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{place}{mark}{}", kept.join("&"))
}

/// What the address leaves open.
fn complete(config: &mut Config) {
    if config.get_user().is_none()
        && let Ok(user) = std::env::var("PGUSER").or_else(|_| std::env::var("USER"))
    {
        config.user(user);
    }
    if config.get_password().is_none()
        && let Some(password) = std::env::var_os("PGPASSWORD")
    {
        config.password(password.as_encoded_bytes());
    }
    if config.get_application_name().is_none() {
        config.application_name("tenure");
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    // Of several servers, the one that takes writes.
    if config.get_hosts().len() > 1 && config.get_target_session_attrs() == TargetSessionAttrs::Any {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

/// The driver's word. Whoever is asked for TLS here always has its certificate and its name checked.
fn ssl_mode(value: &str) -> Result<&'static str, String> {
    match value {
        "disable" => Ok("disable"),
        "prefer" => Ok("prefer"),
        "require" | "verify-full" => Ok("require"),
        _ => Err(format!(
            "{value:?} is no sslmode here; take disable, prefer or verify-full: with TLS, the server's certificate and \
             name are always checked"
        )),
    }
}

/// A name that needs no quotes, nor a look at who quotes it.
pub(super) fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty()
        && name.len() <= 50
        && name.bytes().all(plain)
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.starts_with("pg_")
}

pub(super) fn bad_schema(schema: &str) -> String {
    format!(
        "{schema:?} is no name for its schema: take a to z, 0 to 9 and _, at most 50, not beginning with a digit or pg_"
    )
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "schema {} of {}", self.schema, self.shown)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

#[cfg(test)]
mod tests;
