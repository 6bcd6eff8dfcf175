use crate::{Sink, SinkError};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::Rule;

#[cfg(feature = "file")]
use crate::FileSink;
#[cfg(feature = "sqlite")]
use crate::SqliteSink;
#[cfg(any(feature = "file", feature = "sqlite"))]
use {
    std::path::{Path, PathBuf},
    tenure_core::SinkId,
};

/// Opens the sink at an address, to be sealed and asked.
///
/// | address | sink |
/// |---|---|
/// | `file:FOLDER`, `file:///ABSOLUTE/FOLDER` | the plain files of one folder |
/// | `sqlite:PATH`, `sqlite:///ABSOLUTE/PATH` | the tables of one SQLite file |
///
/// Parameters follow a `?` and are separated by `&`, as in `file:/srv/out?create=true&wait=10s`:
///
/// | parameter | meaning | unless said |
/// |---|---|---|
/// | `id` | the name under which the sink is enrolled | the scheme and the absolute path, such as `file:/srv/out` |
/// | `rule` | `sealed` or `high-water`; a sink has one for its whole life | `sealed` |
/// | `create` | whether a sink that is not there is made | `false` |
/// | `wait` | how long a call waits for another process: a whole number with one of `ms`, `s`, `m`, `h`, `d` | `5s` |
///
/// In a path and in an id, `%3F` is a question mark, `%26` an ampersand and `%25` a percent sign. An id that was not
/// chosen is itself an address: whoever finds it enrolled can open the sink.
///
/// Opens files on the caller's thread; call it outside async code.
///
/// # Errors
/// [`SinkError::Address`] when the address makes no sense; otherwise what the sink says.
pub fn connect(url: &str) -> Result<Arc<dyn Sink>, SinkError> {
    open(url).map(Opened::into_sink)
}

/// The same for a caller that needs to know which sink it is, in order to write there.
///
/// # Errors
/// As [`connect`].
pub fn open(url: &str) -> Result<Opened, SinkError> {
    let address = Address::parse(url)?;
    match address.scheme {
        "file" => file(&address),
        "sqlite" => sqlite(&address),
        other => Err(address.wrong(format!("there is no sink called {other:?}; write {RIGHT}"))),
    }
}

const RIGHT: &str = "file:FOLDER or sqlite:PATH (with ?create=true to make the sink)";

/// A sink that was opened by its address.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Opened {
    /// Plain files of one folder.
    #[cfg(feature = "file")]
    File(FileSink),
    /// The tables of a SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteSink),
}

impl Opened {
    /// The sink as a candidate sees it.
    #[must_use]
    pub fn into_sink(self) -> Arc<dyn Sink> {
        match self {
            #[cfg(feature = "file")]
            Self::File(sink) => Arc::new(sink),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sink) => Arc::new(sink),
        }
    }
}

/// What is between the colons and question marks.
struct Address<'url> {
    url: &'url str,
    scheme: &'url str,
    path: String,
    parameters: Parameters,
}

/// What follows the question mark.
struct Parameters {
    id: Option<String>,
    rule: Rule,
    create: bool,
    wait: Option<Duration>,
}

#[cfg(feature = "file")]
fn file(address: &Address<'_>) -> Result<Opened, SinkError> {
    let (path, id) = address.place()?;
    let make = if address.parameters.create { FileSink::create } else { FileSink::open };
    let sink = make(path, id, address.parameters.rule)?;
    Ok(Opened::File(sink.with_wait(address.wait())))
}

#[cfg(not(feature = "file"))]
fn file(address: &Address<'_>) -> Result<Opened, SinkError> {
    Err(address.wrong("this program was built without the `file` feature".to_owned()))
}

#[cfg(feature = "sqlite")]
fn sqlite(address: &Address<'_>) -> Result<Opened, SinkError> {
    let (path, id) = address.place()?;
    let make = if address.parameters.create { SqliteSink::create } else { SqliteSink::open };
    let sink = make(path, id, address.parameters.rule)?;
    Ok(Opened::Sqlite(sink.with_wait(address.wait())))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(address: &Address<'_>) -> Result<Opened, SinkError> {
    Err(address.wrong("this program was built without the `sqlite` feature".to_owned()))
}

impl<'url> Address<'url> {
    fn parse(url: &'url str) -> Result<Self, SinkError> {
        let parameters = Parameters { id: None, rule: Rule::Sealed, create: false, wait: None };
        let mut address = Self { url, scheme: "", path: String::new(), parameters };
        let Some((scheme, rest)) = url.split_once(':') else {
            return Err(address.wrong(format!("it does not begin with the kind of the sink; write {RIGHT}")));
        };
        let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        address.scheme = scheme;
        address.path = address.plain(path)?;
        let mut before: Vec<&str> = Vec::new();
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                return Err(address.wrong(format!("the parameter {parameter:?} has no value; write {parameter}=…")));
            };
            if before.contains(&name) {
                return Err(address.wrong(format!("the parameter {name:?} is there twice; write it once")));
            }
            before.push(name);
            address.set(name, value)?;
        }
        Ok(address)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SinkError> {
        match name {
            "id" => self.parameters.id = Some(self.plain(value)?),
            "rule" => {
                self.parameters.rule = match value {
                    "sealed" => Rule::Sealed,
                    "high-water" => Rule::HighWater,
                    _ => return Err(self.wrong(format!("{value:?} is no rule; write sealed or high-water"))),
                }
            }
            "create" => {
                let wrong = |_| self.wrong(format!("{value:?} is neither true nor false"));
                self.parameters.create = value.parse().map_err(wrong)?;
            }
            "wait" => self.parameters.wait = Some(self.span(value)?),
            _ => {
                return Err(self.wrong(format!(
                    "a {} sink has no parameter {name:?}; it has id, rule, create, wait",
                    self.scheme
                )));
            }
        }
        Ok(())
    }

    fn wrong(&self, why: String) -> SinkError {
        SinkError::Address { url: self.url.to_owned(), why }
    }

    fn plain(&self, text: &str) -> Result<String, SinkError> {
        unescaped(text)
            .ok_or_else(|| self.wrong("a % is followed by two hexadecimal digits; write %25 for itself".to_owned()))
    }

    fn span(&self, value: &str) -> Result<Duration, SinkError> {
        let most = Duration::from_hours(1);
        match span(value) {
            Some(span) if span <= most => Ok(span),
            Some(_) => Err(self.wrong(format!("a wait of {value} is too long; give at most 1h"))),
            None => {
                Err(self
                    .wrong(format!("{value:?} is no span of time; write a whole number and a unit: 250ms, 5s, 2m, 1h")))
            }
        }
    }
}

#[cfg(any(feature = "file", feature = "sqlite"))]
impl Address<'_> {
    fn wait(&self) -> Duration {
        self.parameters.wait.unwrap_or(Duration::from_secs(5))
    }

    /// Where the sink is, and under which name it is enrolled.
    fn place(&self) -> Result<(PathBuf, SinkId), SinkError> {
        let path = match self.path.strip_prefix("//") {
            None => self.path.as_str(),
            Some(absolute) if absolute.starts_with('/') => absolute,
            Some(_) => {
                let scheme = self.scheme;
                return Err(self.wrong(format!(
                    "after {scheme}:// comes an absolute path; write {scheme}:PATH or {scheme}:///ABSOLUTE/PATH"
                )));
            }
        };
        if path.is_empty() {
            return Err(self.wrong(format!("it names no place; write {}:PATH", self.scheme)));
        }
        let path = PathBuf::from(path);
        let id = match &self.parameters.id {
            Some(name) => SinkId::new(name),
            None => SinkId::new(self.usual_id(&path)?),
        };
        Ok((path, id.map_err(|error| self.wrong(format!("{error}; choose one with id=NAME")))?))
    }

    fn usual_id(&self, path: &Path) -> Result<String, SinkError> {
        let whole = canonical(path).map_err(|error| {
            self.wrong(format!("its absolute path cannot be found out ({error}); choose an id with id=NAME"))
        })?;
        let Some(whole) = whole.to_str() else {
            return Err(self.wrong(format!("{} is no text; choose an id with id=NAME", whole.display())));
        };
        Ok(format!("{}:{}", self.scheme, escaped(whole)))
    }
}

/// The absolute path without links, also of what is about to be made in a folder that is there.
#[cfg(any(feature = "file", feature = "sqlite"))]
fn canonical(path: &Path) -> std::io::Result<PathBuf> {
    let whole = std::path::absolute(path)?;
    match (whole.canonicalize(), whole.parent(), whole.file_name()) {
        (Ok(there), _, _) => Ok(there),
        (Err(_), Some(folder), Some(name)) => {
            Ok(folder.canonicalize().map_or(whole.clone(), |folder| folder.join(name)))
        }
        _ => Ok(whole),
    }
}

/// Reads a whole number with a unit.
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

/// The text with its `%XX` replaced; `None` when one of them is none, or the result is no text.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut plain = Vec::with_capacity(text.len());
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

/// The path as an address writes it: without what an address or a name cannot hold.
#[cfg(any(feature = "file", feature = "sqlite"))]
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for c in path.chars() {
        if matches!(c, '%' | '?') || c.is_control() {
            let mut bytes = [0; 4];
            text.extend(c.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")));
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests;
