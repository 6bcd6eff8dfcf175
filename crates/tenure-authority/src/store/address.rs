use super::memory::MemoryStore;
use super::{Store, StoreError};
use crate::Clock;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Ttl;

/// Opens the store at an address.
///
/// | address | store | parameters |
/// |---|---|---|
/// | `sqlite:PATH`, `sqlite:///ABSOLUTE/PATH` | one SQLite file | `create`, `max_ttl`, `busy_timeout` |
/// | `memory:` | this process's memory | `max_ttl` |
///
/// Parameters follow a `?` and are separated by `&`: `sqlite:tenure.db?create=true&max_ttl=24h&busy_timeout=5s`. A span
/// is a whole number with one of `ms`, `s`, `m`, `h`, `d`. In a path, `%3F` is a question mark and `%25` a percent sign.
///
/// It opens files on the caller's thread, and may wait there for `busy_timeout`.
///
/// # Errors
/// [`StoreError::Address`] when the address makes no sense; otherwise what the store says.
pub fn connect(url: &str, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    let address = Address::parse(url)?;
    match address.scheme {
        "memory" => memory(&address, clock),
        "sqlite" => sqlite(&address, clock),
        other => Err(address.wrong(format!("there is no store called {other:?}; write {RIGHT}"))),
    }
}

/// The address by which another process finds the same store: its path is absolute, since that process may work in
/// another folder, and it does not make a store where this one is gone. An address that makes no sense stays as it is.
#[must_use]
pub fn shared(url: &str) -> String {
    let Ok(address) = Address::parse(url) else { return url.to_owned() };
    let path = match (address.scheme, address.path.starts_with("//")) {
        ("sqlite", false) => std::path::absolute(&address.path).ok(),
        _ => None,
    };
    let path = path.map_or(address.path, |path| path.to_string_lossy().into_owned());
    let kept = address.parameters.iter().filter(|(name, _)| *name != "create");
    let kept: Vec<String> = kept.map(|(name, value)| format!("{name}={value}")).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{}:{}{mark}{}", address.scheme, escaped(&path), kept.join("&"))
}

const RIGHT: &str = "sqlite:PATH (with ?create=true to make the file) or memory:";

/// What is between the colons and question marks.
struct Address<'url> {
    url: &'url str,
    scheme: &'url str,
    path: String,
    parameters: Vec<(&'url str, &'url str)>,
}

fn memory(address: &Address<'_>, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    if !address.path.is_empty() {
        return Err(address.wrong("a store in memory has no path; write memory:".to_owned()));
    }
    let mut max_ttl = Ttl::MAX;
    for (name, value) in &address.parameters {
        match *name {
            "max_ttl" => max_ttl = address.ttl(value)?,
            other => return Err(address.unknown(other, "max_ttl")),
        }
    }
    Ok(Arc::new(MemoryStore::new(clock, max_ttl)?))
}

#[cfg(feature = "sqlite")]
fn sqlite(address: &Address<'_>, clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    use super::sqlite::{Options, SqliteStore};
    let path = match address.path.strip_prefix("//") {
        None => address.path.as_str(),
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => {
            let why = "after sqlite:// comes an absolute path; write sqlite:PATH or sqlite:///ABSOLUTE/PATH".to_owned();
            return Err(address.wrong(why));
        }
    };
    if path.is_empty() {
        return Err(address.wrong("it names no file; write sqlite:PATH".to_owned()));
    }
    let mut options = Options::new(clock);
    for (name, value) in &address.parameters {
        match *name {
            "create" => options.create = address.flag(value)?,
            "max_ttl" => options.max_ttl = Some(address.ttl(value)?),
            "busy_timeout" => options.busy_timeout = address.busy_timeout(value)?,
            other => return Err(address.unknown(other, "create, max_ttl, busy_timeout")),
        }
    }
    Ok(Arc::new(SqliteStore::open(path, &options)?))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(address: &Address<'_>, _clock: Clock) -> Result<Arc<dyn Store>, StoreError> {
    Err(address.wrong("this program was built without the `sqlite` feature".to_owned()))
}

impl<'url> Address<'url> {
    fn parse(url: &'url str) -> Result<Self, StoreError> {
        let mut address = Self { url, scheme: "", path: String::new(), parameters: Vec::new() };
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(address.wrong(format!("it does not begin with the kind of the store; write {RIGHT}")));
        };
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let Some(path) = unescaped(path) else {
            return Err(address.wrong("a % is followed by two hexadecimal digits; write %25 for itself".to_owned()));
        };
        address.scheme = scheme;
        address.path = path;
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err(address.wrong(format!("the parameter {parameter:?} has no value; write {parameter}=…")));
            };
            if address.parameters.iter().any(|(other, _)| *other == name) {
                return Err(address.wrong(format!("the parameter {name:?} is there twice; write it once")));
            }
            address.parameters.push((name, value));
        }
        Ok(address)
    }

    fn wrong(&self, why: String) -> StoreError {
        StoreError::Address { url: self.url.to_owned(), why }
    }

    fn unknown(&self, name: &str, known: &str) -> StoreError {
        self.wrong(format!("a {} store has no parameter {name:?}; it has {known}", self.scheme))
    }

    #[cfg(feature = "sqlite")]
    fn flag(&self, value: &str) -> Result<bool, StoreError> {
        value.parse().map_err(|_| self.wrong(format!("{value:?} is neither true nor false")))
    }

    #[cfg(feature = "sqlite")]
    fn busy_timeout(&self, value: &str) -> Result<Duration, StoreError> {
        let most = Duration::from_mins(1);
        match self.span(value)? {
            span if span <= most => Ok(span),
            _ => Err(self.wrong(format!("a busy_timeout of {value} is too long; give at most 60s"))),
        }
    }

    fn ttl(&self, value: &str) -> Result<Ttl, StoreError> {
        Ttl::new(self.span(value)?).map_err(|error| self.wrong(error.to_string()))
    }

    fn span(&self, value: &str) -> Result<Duration, StoreError> {
        span(value).ok_or_else(|| {
            self.wrong(format!("{value:?} is no span of time; write a whole number and a unit: 250ms, 5s, 2m, 24h, 1d"))
        })
    }
}

fn span(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let number: u64 = number.parse().ok()?;
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

/// The path as it stands in an address.
#[must_use]
pub fn escaped(path: &str) -> String {
    path.replace('%', "%25").replace('?', "%3F")
}

/// The path with its `%XX` replaced; `None` when one of them is none, or the result is no text.
fn unescaped(path: &str) -> Option<String> {
    let mut bytes = path.bytes();
    let mut plain = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = (digit()?, digit()?);
        plain.push(high * 16 + low);
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests;
