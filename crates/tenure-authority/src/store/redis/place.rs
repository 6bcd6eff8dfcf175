//! What an address of a store in Redis says.

use crate::store::{StoreError, shown};
use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, TlsCertificates,
};
use std::fmt;
use std::time::Duration;
use tenure_core::Ttl;
use tenure_core::address::{Address, flag, plain, span};

/// A server, or the Sentinels that know it, and how the store there is opened.
#[derive(Clone)]
pub(super) struct Place {
    /// The address, as it may be shown.
    pub(super) shown: String,
    pub(super) target: Target,
    pub(super) user: Credentials,
    pub(super) sentinel_user: Credentials,
    pub(super) tls: Option<Tls>,
    pub(super) db: i64,
    pub(super) name: String,
    pub(super) create: bool,
    pub(super) max_ttl: Option<Ttl>,
    /// How many replicas must have a change before it counts as made.
    pub(super) replicas: u32,
    /// How long an answer may take.
    pub(super) timeout: Duration,
}

#[derive(Clone, Debug)]
pub(super) enum Target {
    Server(Node),
    Sentinels { nodes: Vec<Node>, primary: String },
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node(pub(super) String, pub(super) u16);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(':') { write!(f, "[{}]:{}", self.0, self.1) } else { write!(f, "{}:{}", self.0, self.1) }
    }
}

#[derive(Clone, Default)]
pub(super) struct Credentials {
    name: Option<String>,
    password: Option<String>,
}

#[derive(Clone)]
pub(super) struct Tls {
    /// PEM; the system's own when there is none.
    ca: Option<Vec<u8>>,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

const KNOWN: &str = "create, max_ttl, name, replicas, timeout, tls_ca, sentinel_user, sentinel_password";

impl Place {
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        Self::parsed(url).map_err(|why| StoreError::Address { url: shown(url), why })
    }

    fn parsed(url: &str) -> Result<Self, String> {
        let address = Address::parse(url).map_err(|error| error.to_string())?;
        let (scheme, rest) = url.split_once("://").ok_or("write redis://HOST:PORT/DB")?;
        let place = rest.split('?').next().unwrap_or_default();
        // A password may hold an `@`; a host cannot.
        let (user, place) = place.rsplit_once('@').map_or(("", place), |(user, place)| (user, place));
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        let (target, db) = if scheme.ends_with("+sentinel") {
            let (primary, db) = path.split_once('/').unwrap_or((path, ""));
            if primary.is_empty() {
                return Err(format!("it does not name the primary; write {scheme}://HOST:PORT,HOST:PORT/PRIMARY"));
            }
            let nodes = hosts.split(',').map(|host| node(host, 26379)).collect::<Result<_, _>>()?;
            (Target::Sentinels { nodes, primary: text(primary)? }, db)
        } else if hosts.contains(',') {
            return Err("it names several servers; only Sentinels are several: redis+sentinel://…".to_owned());
        } else {
            (Target::Server(node(hosts, 6379)?), path)
        };
        let db = match db {
            "" => 0,
            db => db.parse::<u32>().map_err(|_| format!("{db:?} is no number of a database"))?.into(),
        };
        let mut found = Self {
            shown: shown(url),
            target,
            user: Credentials::from_url(user)?,
            sentinel_user: Credentials::default(),
            tls: scheme.starts_with("rediss").then_some(Tls { ca: None }),
            db,
            name: "tenure".to_owned(),
            create: false,
            max_ttl: None,
            replicas: 0,
            timeout: Duration::from_secs(5),
        };
        for (name, value) in address.parameters() {
            found.parameter(scheme, name, value)?;
        }
        Ok(found)
    }

    fn parameter(&mut self, scheme: &str, name: &str, value: &str) -> Result<(), String> {
        let said = |error: tenure_core::address::AddressError| error.to_string();
        match name {
            "create" => self.create = flag(value).map_err(said)?,
            "max_ttl" => {
                let ttl = Ttl::new(span(value).map_err(said)?).map_err(|error| error.to_string())?;
                self.max_ttl = Some(ttl);
            }
            "name" => self.name = store_name(&text(value)?)?,
            "replicas" => {
                let wrong = |_| format!("{value:?} is no number of replicas; write replicas=1");
                self.replicas = value.parse::<u8>().map_err(wrong)?.into();
            }
            "timeout" => match span(value).map_err(said)? {
                span if span.is_zero() || span > Duration::from_mins(1) => {
                    return Err(format!("a timeout of {value} does not do; give at most 60s, more than nothing"));
                }
                span => self.timeout = span,
            },
            "tls_ca" => {
                let tls = self.tls.as_mut().ok_or("tls_ca is for a server that speaks TLS; write rediss://…")?;
                let path = text(value)?;
                let read = std::fs::read(&path).map_err(|error| format!("tls_ca: {path} cannot be read: {error}"))?;
                tls.ca = Some(read);
            }
            "sentinel_user" => self.sentinel_user.name = Some(text(value)?),
            "sentinel_password" => self.sentinel_user.password = Some(text(value)?),
            other => return Err(format!("a {scheme} store has no parameter {other:?}; it has {KNOWN}")),
        }
        Ok(())
    }

    /// The key of the store's own record. All keys of a store have one hash tag.
    pub(super) fn own_key(&self) -> String {
        format!("{{{}}}:store", self.name)
    }

    /// Where the changes of the store are told.
    pub(super) fn channel(&self) -> String {
        format!("{{{}}}:changes", self.name)
    }

    /// How to reach a server of the store.
    pub(super) fn server(&self, node: &Node) -> redis::RedisResult<redis::Client> {
        self.client(node, &self.user, self.db)
    }

    /// How to reach a Sentinel.
    pub(super) fn sentinel(&self, node: &Node) -> redis::RedisResult<redis::Client> {
        self.client(node, &self.sentinel_user, 0)
    }

    fn client(&self, node: &Node, user: &Credentials, db: i64) -> redis::RedisResult<redis::Client> {
        // With RESP3 a connection tells of its end, also while nothing is asked.
        let mut settings = RedisConnectionInfo::default().set_db(db).set_protocol(ProtocolVersion::RESP3);
        if let Some(name) = &user.name {
            settings = settings.set_username(name);
        }
        if let Some(password) = &user.password {
            settings = settings.set_password(password);
        }
        let Node(host, port) = node.clone();
        let Some(tls) = &self.tls else {
            return redis::Client::open(info(ConnectionAddr::Tcp(host, port), settings)?);
        };
        let certificates = TlsCertificates { client_tls: None, root_cert: tls.ca.clone() };
        let addr = ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
        redis::Client::build_with_tls(info(addr, settings)?, certificates)
    }
}

fn info(addr: ConnectionAddr, settings: RedisConnectionInfo) -> redis::RedisResult<ConnectionInfo> {
    Ok(addr.into_connection_info()?.set_redis_settings(settings))
}

impl Credentials {
    fn from_url(user: &str) -> Result<Self, String> {
        let (name, password) = user.split_once(':').map_or((user, None), |(name, word)| (name, Some(word)));
        let name = Some(text(name)?).filter(|name| !name.is_empty());
        Ok(Self { name, password: password.map(text).transpose()? })
    }
}

fn text(value: &str) -> Result<String, String> {
    plain(value).map_err(|error| error.to_string())
}

fn node(host: &str, usual: u16) -> Result<Node, String> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or("a bracket is not closed; write [ADDRESS]:PORT")?;
            (name, port.strip_prefix(':'))
        }
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    // What stands where a port belongs may be a password whose host was forgotten.
    let wrong = || format!("{name:?}, with what follows it, is no server; write HOST:PORT");
    let port = port.map_or(Ok(usual), |port| port.parse().map_err(|_| wrong()))?;
    if name.is_empty() {
        return Err(wrong());
    }
    Ok(Node(name.to_owned(), port))
}

/// A name stands in the hash tag of keys, and in patterns of rights.
fn store_name(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if name.is_empty() || name.len() > 128 || !name.chars().all(fits) {
        return Err(format!("the name {name:?} does not do: give at most 128 letters, digits and any of - _ . / :"));
    }
    Ok(name.to_owned())
}
