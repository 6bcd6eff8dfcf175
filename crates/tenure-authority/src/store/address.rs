use super::memory::MemoryStore;
use super::{Store, StoreError};
use crate::Clock;
use std::sync::Arc;
use tenure_core::Ttl;
use tenure_core::address::{Address, AddressError, escaped, span, without_stray_password};

/// Opens the store at an address.
///
/// | address | store | parameters |
/// |---|---|---|
/// | `sqlite:PATH`, `sqlite:///ABSOLUTE/PATH` | one SQLite file | `create`, `max_ttl`, `busy_timeout` |
/// | `memory:` | this process's memory | `max_ttl` |
/// | `postgres://USER@HOST:PORT/DATABASE` | PostgreSQL | `create`, `max_ttl`, `schema`, `tls_ca`, and libpq's own |
/// | `redis://HOST:PORT/DB`, `rediss://…`, `redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY` | Redis | `create`, `max_ttl`, `name`, `tls_ca` |
/// | `etcd://HOST:PORT,HOST:PORT`, `etcds://…` | etcd | `create`, `max_ttl`, `name`, `tls_ca` |
///
/// Parameters follow a `?` and are separated by `&`: `sqlite:tenure.db?create=true&max_ttl=24h&busy_timeout=5s`. A span
/// is a whole number with one of `ms`, `s`, `m`, `h`, `d`. In a path, `%3F` is a question mark and `%25` a percent sign.
///
/// It opens files on the caller's thread, and may wait there for `busy_timeout`. A store on a network connects at its
/// first use, on a thread of its own.
///
/// # Errors
/// [`StoreError::Address`] when the address makes no sense; otherwise what the store says.
pub fn connect(url: &str, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    #[cfg(feature = "network")]
    if let Some(opened) = network(url, &clock, super::home::Home::own) {
        return opened;
    }
    local(url, clock)
}

/// The same, with the connections of a network store on the given runtime, whose I/O and time must be switched on. It
/// saves two changes of threads per round trip to whoever asks from there. When the runtime ends, so does the store.
///
/// # Errors
/// As [`connect`].
#[cfg(feature = "network")]
pub fn connect_on(url: &str, clock: Clock, runtime: &tokio::runtime::Handle) -> Result<Arc<dyn Store>, StoreError> {
    match network(url, &clock, || Ok(super::home::Home::Given(runtime.clone()))) {
        Some(opened) => opened,
        None => local(url, clock),
    }
}

/// `None`: the address is of no network store.
#[cfg(any(feature = "etcd", feature = "postgres", feature = "redis"))]
fn network(
    url: &str,
    clock: &Clock,
    home: impl FnOnce() -> Result<super::home::Home, StoreError>,
) -> Option<Result<Arc<dyn Store>, StoreError>> {
    let (scheme, _) = url.split_once(':')?;
    Some(match scheme {
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => home().and_then(|home| super::postgres::open(url, home)),
        #[cfg(feature = "redis")]
        "redis" | "rediss" | "redis+sentinel" | "rediss+sentinel" => {
            home().and_then(|home| super::redis::open(url, home))
        }
        #[cfg(feature = "etcd")]
        "etcd" | "etcds" => home().and_then(|home| super::etcd::open(url, clock.clone(), home)),
        _ => {
            // Only a store without a clock of its own takes it.
            let _ = clock;
            return None;
        }
    })
}

/// The feature alone brings no store.
#[cfg(all(feature = "network", not(any(feature = "etcd", feature = "postgres", feature = "redis"))))]
fn network(
    _url: &str,
    _clock: &Clock,
    _home: impl FnOnce() -> Result<super::home::Home, StoreError>,
) -> Option<Result<Arc<dyn Store>, StoreError>> {
    None
}

fn local(url: &str, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    let opened = Address::parse(url).map_err(Wrong::from).and_then(|address| match address.scheme() {
        "memory" => memory(&address, clock),
        "sqlite" => sqlite(&address, clock),
        other if NETWORK.contains(&other) => {
            Err(Wrong::Here(format!("this program was built without the feature for {other} stores")))
        }
        other => Err(Wrong::Here(format!("there is no store called {other:?}; write {RIGHT}"))),
    });
    opened.map_err(|wrong| match wrong {
        Wrong::Here(why) => StoreError::Address { url: shown(url), why },
        Wrong::There(error) => error,
    })
}

/// The address by which another process finds the same store: its path is absolute, since that process may work in
/// another folder, and it does not make a store where this one is gone. An address that makes no sense stays as it is.
#[must_use]
pub fn shared(url: &str) -> String {
    if is_network(url) {
        return without_create(url);
    }
    let Ok(address) = Address::parse(url) else { return url.to_owned() };
    let path = match (address.scheme(), address.path().starts_with("//")) {
        ("sqlite", false) => std::path::absolute(address.path()).ok(),
        _ => None,
    };
    let path = path.map_or_else(|| address.path().to_owned(), |path| path.to_string_lossy().into_owned());
    let kept = address.parameters().iter().filter(|(name, _)| *name != "create");
    let kept: Vec<String> = kept.map(|(name, value)| format!("{name}={value}")).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{}:{}{mark}{}", address.scheme(), escaped(&path), kept.join("&"))
}

/// The address as it may be shown: without a password. Whatever is no path of a file may hold one, also where the address
/// makes no sense.
#[must_use]
pub fn shown(url: &str) -> String {
    if ["sqlite", "memory", "file"].contains(&url.split(':').next().unwrap_or_default()) {
        return url.to_owned();
    }
    // A password may hold an `@`, and a `?` that should have been escaped; a host cannot. So everything up to the last `@`
    // that stands before a parameter belongs to whoever connects.
    let (who, rest) = url.rsplit_once('@').map_or((None, url), |(who, rest)| (Some(who), rest));
    let (place, parameters) = rest.split_once('?').map_or((rest, None), |(place, rest)| (place, Some(rest)));
    let place = match who {
        Some(who) => {
            let (scheme, user) = who.find("://").map_or(("", who), |end| who.split_at(end + 3));
            format!("{scheme}{}@{place}", user.split([':', '?', '/']).next().unwrap_or_default())
        }
        None => without_stray_password(place).to_owned(),
    };
    // Only what is known to be no secret: a misspelt `password=` is one as well.
    let is_shown = |parameter: &&str| {
        let name = parameter.split('=').next().unwrap_or_default();
        SHOWN.contains(&name)
    };
    let all: Vec<&str> = parameters.into_iter().flat_map(|all| all.split('&')).collect();
    let kept: Vec<&str> = all.iter().copied().filter(is_shown).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{place}{mark}{}", kept.join("&"))
}

/// The parameters whose values may be shown.
const SHOWN: &[&str] = &[
    "application_name",
    "channel_binding",
    "connect_timeout",
    "create",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "load_balance_hosts",
    "max_ttl",
    "name",
    "options",
    "port",
    "replicas",
    "schema",
    "sslmode",
    "sslnegotiation",
    "target_session_attrs",
    "tls_ca",
    "user",
];

/// The schemes of stores on a network.
const NETWORK: &[&str] =
    &["postgres", "postgresql", "redis", "rediss", "redis+sentinel", "rediss+sentinel", "etcd", "etcds"];

fn is_network(url: &str) -> bool {
    url.split_once(':').is_some_and(|(scheme, _)| NETWORK.contains(&scheme))
}

fn without_create(url: &str) -> String {
    let Some((place, parameters)) = url.split_once('?') else { return url.to_owned() };
    let kept: Vec<&str> = parameters.split('&').filter(|parameter| !parameter.starts_with("create=")).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{place}{mark}{}", kept.join("&"))
}

const RIGHT: &str = "sqlite:PATH (with ?create=true to make the file), postgres://…, redis://…, etcd://… or memory:";

/// Why there is no store.
enum Wrong {
    /// The address makes no sense.
    Here(String),
    /// The store says so.
    There(StoreError),
}

impl From<AddressError> for Wrong {
    fn from(error: AddressError) -> Self {
        Self::Here(match error {
            AddressError::NoScheme => format!("it does not begin with the kind of the store; write {RIGHT}"),
            error => error.to_string(),
        })
    }
}

impl From<StoreError> for Wrong {
    fn from(error: StoreError) -> Self {
        Self::There(error)
    }
}

fn memory(address: &Address<'_>, clock: Clock) -> Result<Arc<dyn Store>, Wrong> {
    if !address.path().is_empty() {
        return Err(Wrong::Here("a store in memory has no path; write memory:".to_owned()));
    }
    let mut max_ttl = Ttl::MAX;
    for (name, value) in address.parameters() {
        match *name {
            "max_ttl" => max_ttl = ttl(value)?,
            other => return Err(unknown(address, other, "max_ttl")),
        }
    }
    Ok(Arc::new(MemoryStore::new(clock, max_ttl)?))
}

#[cfg(feature = "sqlite")]
fn sqlite(address: &Address<'_>, clock: Clock) -> Result<Arc<dyn Store>, Wrong> {
    use super::sqlite::{Options, SqliteStore};
    let path = address.place()?;
    let mut options = Options::new(clock);
    for (name, value) in address.parameters() {
        match *name {
            "create" => options.create = tenure_core::address::flag(value)?,
            "max_ttl" => options.max_ttl = Some(ttl(value)?),
            "busy_timeout" => options.busy_timeout = busy_timeout(value)?,
            other => return Err(unknown(address, other, "create, max_ttl, busy_timeout")),
        }
    }
    Ok(Arc::new(SqliteStore::open(path, &options)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_address: &Address<'_>, _clock: Clock) -> Result<Arc<dyn Store>, Wrong> {
    Err(Wrong::Here("this program was built without the `sqlite` feature".to_owned()))
}

fn unknown(address: &Address<'_>, name: &str, known: &str) -> Wrong {
    Wrong::Here(format!("a {} store has no parameter {name:?}; it has {known}", address.scheme()))
}

#[cfg(feature = "sqlite")]
fn busy_timeout(value: &str) -> Result<std::time::Duration, Wrong> {
    match span(value)? {
        span if span <= std::time::Duration::from_mins(1) => Ok(span),
        _ => Err(Wrong::Here(format!("a busy_timeout of {value} is too long; give at most 60s"))),
    }
}

fn ttl(value: &str) -> Result<Ttl, Wrong> {
    Ttl::new(span(value)?).map_err(|error| Wrong::Here(error.to_string()))
}

#[cfg(test)]
mod tests;
