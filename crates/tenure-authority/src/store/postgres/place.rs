//! The address of a store in PostgreSQL.

use super::tls;
use crate::StoreError;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tenure_core::Ttl;
use tenure_core::address::{flag, plain, span};
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Where the store is, and how it is reached.
pub(super) struct Place {
    /// Without a password.
    pub(super) shown: String,
    pub(super) schema: String,
    pub(super) create: bool,
    pub(super) max_ttl: Option<Ttl>,
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
}

/// A new store's longest ttl, unless the address says another one: a quarantine lasts as long.
pub(super) const MAX_TTL: Duration = Duration::from_mins(10);

/// How long a connection may take to be made, to each address of the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What goes to the driver as it is.
const DRIVERS: &[&str] = &[
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslmode",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let shown = crate::store::shown(url);
        let wrong = |why: String| StoreError::Address { url: shown.clone(), why };
        let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut create, mut max_ttl, mut ca) = ("tenure".to_owned(), false, None, None);
        let mut rest: Vec<String> = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err(wrong(format!("the parameter {parameter:?} has no value; write {parameter}=…")));
            };
            let value = plain(value).map_err(|error| wrong(error.to_string()))?;
            match name {
                "schema" => schema = value,
                "create" => create = flag(&value).map_err(|error| wrong(error.to_string()))?,
                "max_ttl" => {
                    let span = span(&value).map_err(|error| wrong(error.to_string()))?;
                    max_ttl = Some(Ttl::new(span).map_err(|error| wrong(error.to_string()))?);
                }
                "tls_ca" => ca = Some(value),
                "sslmode" => rest.push(format!("sslmode={}", ssl_mode(&value).map_err(wrong)?)),
                name if DRIVERS.contains(&name) => rest.push(parameter.to_owned()),
                name => {
                    let known = DRIVERS.join(", ");
                    return Err(wrong(format!(
                        "a postgres store has no parameter {name:?}; it has schema, create, max_ttl, tls_ca, {known}"
                    )));
                }
            }
        }
        if !is_plain_name(&schema) {
            return Err(wrong(format!(
                "{schema:?} is no name for its schema: take a to z, 0 to 9 and _, at most 50, not beginning with a \
                 digit or pg_"
            )));
        }
        let mark = if rest.is_empty() { "" } else { "?" };
        // The driver's words may hold a piece of what it could not read.
        let unread =
            |_| wrong("write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for special characters".into());
        let mut config = Config::from_str(&format!("{place}{mark}{}", rest.join("&"))).map_err(unread)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host; write postgres://USER@HOST:PORT/DATABASE".to_owned()));
        }
        complete(&mut config);
        let tls = tls::connector(ca.as_deref(), config.get_ssl_mode()).map_err(wrong)?;
        Ok(Self { shown: shown.clone(), schema, create, max_ttl, config, tls })
    }

    /// What is at the address cannot be used so.
    pub(super) fn wrong(&self, why: String) -> StoreError {
        StoreError::Address { url: self.shown.clone(), why }
    }

    /// The user's name, for advice.
    pub(super) fn user(&self) -> &str {
        self.config.get_user().unwrap_or("this user")
    }

    /// The database's name, for advice.
    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_else(|| self.user())
    }
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
        "allow" | "verify-ca" => Err(format!(
            "sslmode={value} is not offered: with TLS, the server's certificate and name are always checked; take \
             disable, prefer or verify-full"
        )),
        _ => Err(format!("{value:?} is no sslmode; take disable, prefer or verify-full")),
    }
}

/// A name that needs no quotes, nor a look at who quotes it.
fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty()
        && name.len() <= 50
        && name.bytes().all(plain)
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.starts_with("pg_")
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
