//! Stores that speak S3, by their address.

use super::ObjectSink;
use super::bucket::Bucket;
use crate::SinkError;
use crate::trust::Trust;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
use object_store::client::{HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::SinkId;
use tenure_core::address::{Address, flag, plain, span};
use tenure_core::fence::Rule;

/// A connection that is not there after this is none.
const CONNECT: Duration = Duration::from_secs(2);

const RIGHT: &str = "write s3://BUCKET/PREFIX";

const KNOWN: &str = "id, rule, create, wait, endpoint, region, tls_ca";

/// What an address says. Credentials are not among it.
struct Settings {
    bucket: String,
    prefix: String,
    endpoint: Option<String>,
    region: Option<String>,
    tls_ca: Option<PathBuf>,
    id: SinkId,
    rule: Rule,
    create: bool,
    wait: Duration,
    /// Those of the environment whose names begin with `AWS_`.
    variables: BTreeMap<String, String>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.usual_id())
    }
}

impl ObjectSink {
    /// Opens the sink at an address, which [`connect`](crate::connect) describes, and makes it when `create=true` is asked
    /// for. It never makes a bucket.
    ///
    /// Credentials come from the environment alone: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, or
    /// whatever a container, a web identity or an instance is given in their place. `AWS_REGION` and `AWS_ENDPOINT_URL` count
    /// where the address says nothing.
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError`] when the address makes no sense, nobody answers there, the credentials are refused, or the sink is not
    /// there or is under another rule; [`SinkError::Unfit`] when the store does not put on a condition.
    pub fn at(url: &str) -> Result<Self, SinkError> {
        Self::at_with(
            url,
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        )
    }

    /// The same with other variables than the environment's: for a program that has its credentials from elsewhere.
    ///
    /// # Errors
    /// As [`at`](Self::at).
    pub fn at_with(
        url: &str,
        variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Result<Self, SinkError> {
        let wrong = |why: String| SinkError::Address { url: crate::shown(url), why };
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        let settings = Settings::parse(url, variables.filter(|(name, _)| name.starts_with("AWS_")).collect());
        let settings = settings.map_err(wrong)?;
        let exact = settings.store(0).map_err(wrong)?;
        let store = settings.store(4).map_err(wrong)?;
        let mut bucket = Bucket::new(store, &settings.prefix, settings.wait)?;
        (bucket.exact, bucket.repeats) = (exact, false);
        bucket.place = settings.usual_id();
        Self::ready(bucket, settings.id, settings.rule, settings.create)
    }
}

impl Settings {
    fn parse(url: &str, variables: BTreeMap<String, String>) -> Result<Self, String> {
        let address = Address::parse(url).map_err(said)?;
        let place = address.path().strip_prefix("//").ok_or(RIGHT)?;
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        if bucket.contains('@') || bucket.contains(':') {
            return Err(format!(
                "credentials come from the environment (AWS_ACCESS_KEY_ID, …), never from here; {RIGHT}"
            ));
        }
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
        if bucket.len() < 3 || bucket.len() > 63 || !bucket.chars().all(fits) {
            return Err(format!("{bucket:?} is no name of a bucket; {RIGHT}"));
        }
        let mut found = Self {
            bucket: bucket.to_owned(),
            prefix: prefix.trim_matches('/').to_owned(),
            endpoint: None,
            region: None,
            tls_ca: None,
            id: SinkId::new("s3").map_err(said)?,
            rule: Rule::Sealed,
            create: false,
            wait: Duration::from_secs(5),
            variables,
        };
        let mut id = None;
        for (name, value) in address.parameters() {
            match *name {
                "id" => id = Some(plain(value).map_err(said)?),
                "rule" => found.rule = crate::address::rule(value)?,
                "create" => found.create = flag(value).map_err(said)?,
                "wait" => found.wait = wait(value)?,
                "endpoint" => found.endpoint = Some(endpoint(&plain(value).map_err(said)?)?),
                "region" => found.region = Some(plain(value).map_err(said)?),
                "tls_ca" => found.tls_ca = Some(PathBuf::from(plain(value).map_err(said)?)),
                other => return Err(format!("an s3 sink has no parameter {other:?}; it has {KNOWN}")),
            }
        }
        if found.endpoint.is_none() {
            let names = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
            let given = names.iter().find_map(|name| found.variables.get(*name)).filter(|given| !given.is_empty());
            found.endpoint = given.map(|given| endpoint(given)).transpose()?;
        }
        let id = id.unwrap_or_else(|| found.usual_id());
        found.id = SinkId::new(id).map_err(|error| format!("{error}; choose one with id=NAME"))?;
        Ok(found)
    }

    /// An address that says no more than which sink it is, and so the same for all who open it.
    fn usual_id(&self) -> String {
        let prefix = tenure_core::address::escaped(&self.prefix);
        let slash = if prefix.is_empty() { "" } else { "/" };
        let endpoint = self.endpoint.as_ref().map_or_else(String::new, |endpoint| format!("?endpoint={endpoint}"));
        format!("s3://{}{slash}{prefix}{endpoint}", self.bucket)
    }

    /// `repeats`: how often it repeats by itself what was not answered.
    fn store(&self, repeats: usize) -> Result<Arc<dyn ObjectStore>, String> {
        let backoff = BackoffConfig {
            init_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(1),
            ..BackoffConfig::default()
        };
        let retry = RetryConfig { backoff, max_retries: repeats, retry_timeout: self.wait };
        let mut builder = AmazonS3Builder::new();
        for (name, value) in &self.variables {
            // What the sink rests on is nobody's choice, and where the store is was found out above.
            if let Ok(key) = name.to_ascii_lowercase().parse()
                && !matches!(key, Key::ConditionalPut | Key::Endpoint | Key::S3Endpoint)
            {
                builder = builder.with_config(key, value);
            }
        }
        let is_plain = self.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        builder = builder
            .with_bucket_name(&self.bucket)
            .with_retry(retry)
            .with_http_connector(Connector { tls: Trust::of(self.tls_ca.as_deref(), !is_plain).config()? });
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &self.endpoint {
            builder = builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
        }
        let store = builder.build().map_err(|error| format!("no store can be made of it: {error}"))?;
        Ok(Arc::new(store))
    }
}

/// Makes connections whose encryption is ours. The bound on each answer is the sink's.
#[derive(Debug)]
struct Connector {
    tls: ClientConfig,
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = reqwest::Client::builder()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none())
            .tls_backend_preconfigured(self.tls.clone())
            .build();
        client
            .map(HttpClient::new)
            .map_err(|error| object_store::Error::Generic { store: "S3", source: Box::new(error) })
    }
}

fn endpoint(value: &str) -> Result<String, String> {
    let rest = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
    let host = rest.map(|rest| rest.trim_end_matches('/')).filter(|host| !host.is_empty());
    match host {
        Some(host) if host.contains('@') => {
            Err("the endpoint holds a password: credentials come from the environment (AWS_ACCESS_KEY_ID, …)"
                .to_owned())
        }
        // Behind the host there may be a path, whose case counts.
        Some(host) if host.contains('/') => Ok(value.trim_end_matches('/').to_owned()),
        Some(_) => Ok(value.trim_end_matches('/').to_ascii_lowercase()),
        None => Err(format!("{value:?} is no endpoint; write endpoint=https://HOST:PORT")),
    }
}

fn wait(value: &str) -> Result<Duration, String> {
    match span(value).map_err(said)? {
        span if span.is_zero() || span > Duration::from_mins(1) => {
            Err(format!("a wait of {value} does not do; give at least 1ms and at most 1m"))
        }
        span => Ok(span),
    }
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}
