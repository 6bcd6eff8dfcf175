use crate::ledger::Ledger;
use crate::{Sink, SinkError};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::address::{Address, AddressError, flag, plain, span, without_stray_password};
use tenure_core::fence::Rule;

#[cfg(feature = "file")]
use crate::FileSink;
#[cfg(feature = "object-store")]
use crate::ObjectSink;
#[cfg(feature = "postgres")]
use crate::PostgresSink;
#[cfg(feature = "redis")]
use crate::RedisSink;
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
/// | `postgres://USER@HOST:PORT/DATABASE` | the tables of one schema of a PostgreSQL database; `?schema=NAME` unless it is `tenure` |
/// | `http://HOST/PATH`, `https://HOST/PATH` | a receiver behind HTTP, with parameters of its own: `HttpSink::open` |
/// | `redis://USER:PASSWORD@HOST:PORT/DB`, `rediss://…` | the keys `{NAME}:…` of one Redis server |
/// | `s3://BUCKET/PREFIX` | objects of a bucket, below a prefix |
/// | `redis+sentinel://HOST:PORT,HOST:PORT/PRIMARY/DB`, `rediss+sentinel://…` | the same, of the primary that the Sentinels name |
///
/// Parameters follow a `?` and are separated by `&`, as in `file:/srv/out?create=true&wait=10s`:
///
/// | parameter | meaning | unless said |
/// |---|---|---|
/// | `id` | the name under which the sink is enrolled | the scheme and the absolute path, such as `file:/srv/out` |
/// | `rule` | `sealed`, `high-water` or `held` (beside the authority in one database); a sink has one for its whole life | `sealed` |
/// | `create` | whether a sink that is not there is made | `false` |
/// | `wait` | how long a call waits for another process: a whole number with one of `ms`, `s`, `m`, `h`, `d` | `5s` |
///
/// One in Redis has these as well, `wait` is there how long a connection or an answer may take, and its id does without user and
/// password:
///
/// | parameter | meaning | unless said |
/// |---|---|---|
/// | `name` | which sink of the server it is: the hash tag of its keys | `tenure` |
/// | `tls_ca` | a file with the authority that vouches for the server, in PEM | the system's own |
/// | `sentinel_user`, `sentinel_password` | whom the Sentinels know | nobody |
///
/// One in a bucket has `id`, `rule`, `create` and `wait` as well, and these. Credentials come from the environment alone
/// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, …):
///
/// | parameter | meaning | unless said |
/// |---|---|---|
/// | `endpoint` | who speaks S3 there: `http://HOST:PORT`, `https://HOST:PORT` | Amazon |
/// | `region` | in which region the bucket is | `AWS_REGION`, or `us-east-1` |
/// | `tls_ca` | a file with the authority that vouches for the server, in PEM | the system's own |
///
/// In a path and in an id, `%3F` is a question mark, `%26` an ampersand and `%25` a percent sign. An id that was not
/// chosen is itself an address: whoever finds it enrolled can open the sink.
///
/// Opens files, and asks servers, on the caller's thread; call it outside async code.
///
/// # Errors
/// [`SinkError::Address`] when the address makes no sense; otherwise what the sink says.
pub fn connect(url: &str) -> Result<Arc<dyn Sink>, SinkError> {
    open(url).map(Opened::into_sink)
}

/// A receiver in files (`file:`, `sqlite:`) without a look whether it is there, for who may do without it: each call looks, and
/// says so as long as it is not. `create` makes nothing then. `None` for every other address.
#[must_use]
pub fn connect_later(url: &str) -> Option<Arc<dyn Sink>> {
    if is_in_files(url) { in_files(url, true).ok().map(Opened::into_sink) } else { None }
}

fn is_in_files(url: &str) -> bool {
    ["file", "sqlite"].contains(&url.split(':').next().unwrap_or_default())
}

/// The same for a caller that needs to know which sink it is, in order to write there.
///
/// # Errors
/// As [`connect`].
pub fn open(url: &str) -> Result<Opened, SinkError> {
    // It may hold a password, which no message shows: whatever is wrong with it is said there.
    if ["postgres:", "postgresql:"].iter().any(|scheme| url.starts_with(scheme)) {
        return postgres(url);
    }
    if url.starts_with("http://") || url.starts_with("https://") {
        return http(url);
    }
    #[cfg(feature = "redis")]
    if url.split_once("://").is_some_and(|(scheme, _)| REDIS.contains(&scheme)) {
        return RedisSink::open(url).map(Opened::Redis);
    }
    if url.starts_with("s3://") {
        return s3(url);
    }
    in_files(url, false)
}

fn in_files(url: &str, later: bool) -> Result<Opened, SinkError> {
    let opened = Address::parse(url).map_err(Wrong::from).and_then(|address| {
        let parameters = Parameters { later, ..Parameters::of(&address)? };
        match address.scheme() {
            "file" => file(&address, parameters),
            "sqlite" => sqlite(&address, parameters),
            other if REDIS.contains(&other) => {
                Err(Wrong::Here("this program was built without the `redis` feature, or // is missing".to_owned()))
            }
            other => Err(Wrong::Here(format!("there is no sink called {other:?}; write {RIGHT}"))),
        }
    });
    opened.map_err(|wrong| match wrong {
        Wrong::Here(why) => SinkError::Address { url: shown(url), why },
        Wrong::There(error) => error,
    })
}

/// The address as it may be shown: without user and password. Whatever is no path may hold one, also where the address makes
/// no sense.
#[must_use]
pub fn shown(url: &str) -> String {
    if is_in_files(url) {
        return url.to_owned();
    }
    // A password may hold an `@`, and a `?` that should have been escaped; a host cannot.
    let (who, rest) = url.rsplit_once('@').map_or(("", url), |(who, rest)| (who, rest));
    let scheme = who.find("://").map_or("", |end| &who[..end + 3]);
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let place = if scheme.is_empty() { without_stray_password(place) } else { place };
    // Only what is known to be no secret: a misspelt `password=` is one as well.
    let is_shown = |parameter: &&str| SHOWN.contains(&parameter.split('=').next().unwrap_or_default());
    let kept: Vec<&str> = parameters.split('&').filter(is_shown).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{scheme}{place}{mark}{}", kept.join("&"))
}

/// The parameters whose values may be shown.
const SHOWN: &[&str] = &["id", "rule", "create", "wait", "name", "tls_ca", "endpoint", "region"];

const REDIS: &[&str] = &["redis", "rediss", "redis+sentinel", "rediss+sentinel"];

const RIGHT: &str = "file:FOLDER or sqlite:PATH (with ?create=true to make the sink), postgres://USER@HOST/DATABASE, \
                     redis://HOST:PORT/DB, or s3://BUCKET/PREFIX";

/// A sink that was opened by its address.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Opened {
    /// Plain files of one folder.
    #[cfg(feature = "file")]
    File(FileSink),
    /// The keys of a Redis server.
    #[cfg(feature = "redis")]
    Redis(RedisSink),
    /// Objects of a store.
    #[cfg(feature = "object-store")]
    Object(ObjectSink),
    /// The tables of a SQLite file.
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteSink),
    /// The tables of a PostgreSQL database.
    #[cfg(feature = "postgres")]
    Postgres(PostgresSink),
    /// A receiver behind HTTP.
    #[cfg(feature = "http-client")]
    Http(crate::http::HttpSink),
}

impl Opened {
    /// The sink as a candidate sees it.
    #[must_use]
    pub fn into_sink(self) -> Arc<dyn Sink> {
        match self {
            #[cfg(feature = "file")]
            Self::File(sink) => Arc::new(sink),
            #[cfg(feature = "redis")]
            Self::Redis(sink) => Arc::new(sink),
            #[cfg(feature = "object-store")]
            Self::Object(sink) => Arc::new(sink),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sink) => Arc::new(sink),
            #[cfg(feature = "postgres")]
            Self::Postgres(sink) => Arc::new(sink),
            #[cfg(feature = "http-client")]
            Self::Http(sink) => Arc::new(sink),
        }
    }

    /// The ledger of calls that the sink keeps.
    ///
    /// # Errors
    /// [`SinkError::NoLedger`] when sinks of this kind keep none. Whether this one does is found out when it is asked.
    pub fn into_ledger(self) -> Result<Arc<dyn Ledger>, SinkError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(sink) => Ok(Arc::new(sink)),
            #[cfg(feature = "postgres")]
            Self::Postgres(sink) => Ok(Arc::new(sink)),
            #[allow(unreachable_patterns, reason = "the other kinds may all be switched off")]
            other => Err(SinkError::NoLedger { place: other.into_sink().id().to_string() }),
        }
    }
}

/// Why there is no sink.
enum Wrong {
    /// The address makes no sense.
    Here(String),
    /// The sink says so.
    There(SinkError),
}

impl From<AddressError> for Wrong {
    fn from(error: AddressError) -> Self {
        Self::Here(match error {
            AddressError::NoScheme => format!("it does not begin with the kind of the sink; write {RIGHT}"),
            error => error.to_string(),
        })
    }
}

impl From<SinkError> for Wrong {
    fn from(error: SinkError) -> Self {
        Self::There(error)
    }
}

/// What follows the question mark.
struct Parameters {
    id: Option<String>,
    rule: Rule,
    create: bool,
    wait: Duration,
    /// It is not looked at before its first use.
    #[cfg_attr(
        not(any(feature = "file", feature = "sqlite")),
        expect(dead_code, reason = "what is not in this program is not opened")
    )]
    later: bool,
}

impl Parameters {
    fn of(address: &Address<'_>) -> Result<Self, Wrong> {
        let mut all = Self { id: None, rule: Rule::Sealed, create: false, wait: Duration::from_secs(5), later: false };
        for (name, value) in address.parameters() {
            match *name {
                "id" => all.id = Some(plain(value)?),
                "rule" => all.rule = rule(value).map_err(Wrong::Here)?,
                "create" => all.create = flag(value)?,
                "wait" => all.wait = bound(span(value)?, value).map_err(Wrong::Here)?,
                _ => {
                    return Err(Wrong::Here(format!(
                        "a {} sink has no parameter {name:?}; it has id, rule, create, wait",
                        address.scheme()
                    )));
                }
            }
        }
        Ok(all)
    }
}

pub(crate) fn rule(value: &str) -> Result<Rule, String> {
    let found = Rule::ALL.into_iter().find(|rule| rule.name() == value);
    found.ok_or_else(|| format!("{value:?} is no rule; write sealed, high-water or held"))
}

/// The longest wait of a sink for others.
pub(crate) const WAIT_MAX: Duration = Duration::from_hours(1);

pub(crate) fn bound(span: Duration, value: &str) -> Result<Duration, String> {
    if span > WAIT_MAX {
        return Err(format!("a wait of {value} is too long; give at most 1h"));
    }
    Ok(span)
}

#[cfg(feature = "file")]
fn file(address: &Address<'_>, parameters: Parameters) -> Result<Opened, Wrong> {
    let Parameters { id, rule, create, wait, later } = parameters;
    let (path, id) = place(address, id)?;
    let make = match (later, create) {
        (true, _) => |path: PathBuf, id, rule| Ok(FileSink::later(path, id, rule)),
        (_, true) => FileSink::create,
        (_, false) => FileSink::open,
    };
    Ok(Opened::File(make(path, id, rule)?.with_wait(wait)))
}

#[cfg(not(feature = "file"))]
fn file(_address: &Address<'_>, _parameters: Parameters) -> Result<Opened, Wrong> {
    Err(Wrong::Here("this program was built without the `file` feature".to_owned()))
}

#[cfg(feature = "sqlite")]
fn sqlite(address: &Address<'_>, parameters: Parameters) -> Result<Opened, Wrong> {
    let Parameters { id, rule, create, wait, later } = parameters;
    let (path, id) = place(address, id)?;
    let make = match (later, create) {
        (true, _) => SqliteSink::later,
        (_, true) => SqliteSink::create,
        (_, false) => SqliteSink::open,
    };
    Ok(Opened::Sqlite(make(path, id, rule)?.with_wait(wait)))
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_address: &Address<'_>, _parameters: Parameters) -> Result<Opened, Wrong> {
    Err(Wrong::Here("this program was built without the `sqlite` feature".to_owned()))
}

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> Result<Opened, SinkError> {
    PostgresSink::at(url).map(Opened::Postgres)
}

#[cfg(not(feature = "postgres"))]
fn postgres(_url: &str) -> Result<Opened, SinkError> {
    // Without the address: it may hold a password.
    let why = "this program was built without the `postgres` feature".to_owned();
    Err(SinkError::Address { url: "postgres:".to_owned(), why })
}

#[cfg(feature = "http-client")]
fn http(url: &str) -> Result<Opened, SinkError> {
    crate::http::HttpSink::open(url).map(Opened::Http)
}

#[cfg(not(feature = "http-client"))]
fn http(url: &str) -> Result<Opened, SinkError> {
    Err(SinkError::Address {
        url: shown(url),
        why: "this program was built without the `http-client` feature".to_owned(),
    })
}

#[cfg(feature = "s3")]
fn s3(url: &str) -> Result<Opened, SinkError> {
    ObjectSink::at(url).map(Opened::Object)
}

#[cfg(not(feature = "s3"))]
fn s3(url: &str) -> Result<Opened, SinkError> {
    let why = "this program was built without the `s3` feature".to_owned();
    Err(SinkError::Address { url: shown(url), why })
}

/// Where the sink is, and under which name it is enrolled.
#[cfg(any(feature = "file", feature = "sqlite"))]
fn place(address: &Address<'_>, id: Option<String>) -> Result<(PathBuf, SinkId), Wrong> {
    let path = PathBuf::from(address.place()?);
    let id = match id {
        Some(name) => SinkId::new(name),
        None => SinkId::new(usual_id(address.scheme(), &path)?),
    };
    Ok((path, id.map_err(|error| Wrong::Here(format!("{error}; choose one with id=NAME")))?))
}

#[cfg(any(feature = "file", feature = "sqlite"))]
fn usual_id(scheme: &str, path: &Path) -> Result<String, Wrong> {
    let whole = canonical(path).map_err(|error| {
        Wrong::Here(format!("its absolute path cannot be found out ({error}); choose an id with id=NAME"))
    })?;
    let Some(whole) = whole.to_str() else {
        return Err(Wrong::Here(format!("{} is no text; choose an id with id=NAME", whole.display())));
    };
    Ok(format!("{scheme}:{}", tenure_core::address::escaped(whole)))
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

#[cfg(test)]
mod tests;
