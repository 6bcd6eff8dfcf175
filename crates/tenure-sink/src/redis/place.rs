//! What an address of a sink in Redis says.

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo, TlsCertificates,
};
use std::fmt;
use std::time::Duration;
use tenure_core::SinkId;
use tenure_core::address::{Address, flag, plain, span};
use tenure_core::fence::Rule;

/// A server, or the Sentinels that know it, and which sink there is meant.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) target: Target,
    pub(super) user: Credentials,
    pub(super) sentinel_user: Credentials,
    pub(super) tls: Option<Tls>,
    pub(super) db: i64,
    pub(super) name: String,
    pub(super) id: SinkId,
    pub(super) rule: Rule,
    pub(super) create: bool,
    /// How long a connection, and an answer, may take.
    pub(super) wait: Duration,
    /// The address without what is secret.
    pub(super) shown: String,
}

#[derive(Clone, Debug)]
pub(super) enum Target {
    Server(Node),
    Sentinels { nodes: Vec<Node>, primary: String },
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

const KNOWN: &str = "id, rule, create, wait, name, tls_ca, sentinel_user, sentinel_password";

/// The name of a sink for which none was chosen.
const NAME: &str = "tenure";

impl Place {
    /// # Errors
    /// Why it is no address, and what would be right.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let address = Address::parse(url).map_err(|error| error.to_string())?;
        let (scheme, rest) = url.split_once("://").ok_or("write redis://HOST:PORT/DB")?;
        let place = rest.split('?').next().unwrap_or_default();
        // A password may hold an `@`; a host cannot.
        let (user, place) = place.rsplit_once('@').unwrap_or(("", place));
        let (hosts, path) = place.split_once('/').unwrap_or((place, ""));
        let (target, db) = target(scheme, hosts, path)?;
        let mut found = Self {
            target,
            user: Credentials::from_url(user)?,
            sentinel_user: Credentials::default(),
            tls: scheme.starts_with("rediss").then_some(Tls { ca: None }),
            db,
            name: NAME.to_owned(),
            id: SinkId::new("redis").map_err(|error| error.to_string())?,
            rule: Rule::Sealed,
            create: false,
            wait: Duration::from_secs(5),
            shown: String::new(),
        };
        let mut id = None;
        for (name, value) in address.parameters() {
            match *name {
                "id" => id = Some(text(value)?),
                _ => found.parameter(scheme, name, value)?,
            }
        }
        found.shown = found.usual_id(scheme);
        found.id = SinkId::new(id.unwrap_or_else(|| found.shown.clone()))
            .map_err(|error| format!("{error}; choose one with id=NAME"))?;
        Ok(found)
    }

    fn parameter(&mut self, scheme: &str, name: &str, value: &str) -> Result<(), String> {
        let said = |error: tenure_core::address::AddressError| error.to_string();
        match name {
            "create" => self.create = flag(value).map_err(said)?,
            "rule" => {
                let all = [Rule::Sealed, Rule::HighWater];
                let found = all.into_iter().find(|rule| rule.name() == value);
                // No script may read what another one keeps elsewhere: `held` is for an authority in the same database.
                self.rule = found.ok_or_else(|| format!("{value:?} is no rule here; write sealed or high-water"))?;
            }
            "wait" => match span(value).map_err(said)? {
                span if span.is_zero() || span > Duration::from_mins(1) => {
                    return Err(format!("a wait of {value} does not do; give at least 1ms and at most 1m"));
                }
                span => self.wait = span,
            },
            "name" => {
                let name = text(value)?;
                check_name(&name).map_err(|why| format!("the name {name:?} does not do: {why}"))?;
                self.name = name;
            }
            "tls_ca" => {
                let tls = self.tls.as_mut().ok_or("tls_ca is for a server that speaks TLS; write rediss://…")?;
                let path = text(value)?;
                let read = std::fs::read(&path).map_err(|error| format!("tls_ca: {path} cannot be read: {error}"))?;
                tls.ca = Some(read);
            }
            "sentinel_user" => self.sentinel_user.name = Some(text(value)?),
            "sentinel_password" => self.sentinel_user.password = Some(text(value)?),
            other => return Err(format!("a {scheme} sink has no parameter {other:?}; it has {KNOWN}")),
        }
        Ok(())
    }

    /// An address that says no more than which sink it is, and so the same for all who open it.
    fn usual_id(&self, scheme: &str) -> String {
        let (db, name) = (self.db, &self.name);
        match &self.target {
            Target::Server(node) => format!("{scheme}://{node}/{db}?name={name}"),
            Target::Sentinels { nodes, primary } => {
                let mut nodes: Vec<_> = nodes.iter().map(ToString::to_string).collect();
                nodes.sort_unstable();
                let primary = tenure_core::address::escaped(primary);
                format!("{scheme}://{}/{primary}/{db}?name={name}", nodes.join(","))
            }
        }
    }

    /// How to reach a server.
    pub(super) fn server(&self, node: &Node) -> redis::RedisResult<redis::Client> {
        self.client(node, &self.user, self.db)
    }

    /// How to reach a Sentinel.
    pub(super) fn sentinel(&self, node: &Node) -> redis::RedisResult<redis::Client> {
        self.client(node, &self.sentinel_user, 0)
    }

    fn client(&self, node: &Node, user: &Credentials, db: i64) -> redis::RedisResult<redis::Client> {
        let mut settings = RedisConnectionInfo::default().set_db(db).set_protocol(ProtocolVersion::RESP2);
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

fn target(scheme: &str, hosts: &str, path: &str) -> Result<(Target, i64), String> {
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
    Ok((target, db))
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
    Ok(Node(name.to_ascii_lowercase(), port))
}

/// A name stands in the hash tag of keys, and in patterns of rights.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if name.is_empty() || name.len() > 128 || !name.chars().all(fits) {
        return Err("give at most 128 letters, digits and any of - _ . / :");
    }
    Ok(())
}
