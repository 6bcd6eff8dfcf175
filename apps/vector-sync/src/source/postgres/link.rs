//! The connection, and what comes over it.

use futures_util::StreamExt as _;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, Config, Row, RowStream, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long connecting may take in all.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a row is waited for. The first one comes after all were sorted.
const PATIENCE: Duration = Duration::from_secs(300);

/// Takes an address apart.
pub(super) fn settings(url: &str) -> Result<(Config, MakeRustlsConnect), String> {
    let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
    let (ours, drivers): (Vec<&str>, Vec<&str>) =
        parameters.split('&').filter(|all| !all.is_empty()).partition(|parameter| parameter.starts_with("tls_ca="));
    // The name of the server is checked whenever TLS is asked for.
    let drivers = drivers.join("&").replace("sslmode=verify-full", "sslmode=require");
    let mark = if drivers.is_empty() { "" } else { "?" };
    // The driver's words may hold a piece of what it could not read.
    let unread = |_| "write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for special characters".to_owned();
    let mut config: Config = format!("{place}{mark}{drivers}").parse().map_err(unread)?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err("it names no host: write postgres://USER@HOST:PORT/DATABASE".to_owned());
    }
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
        config.application_name("vector-sync");
    }
    let ca = ours.first().map(|parameter| &parameter["tls_ca=".len()..]);
    let tls = tls(ca, config.get_ssl_mode())?;
    Ok((config, tls))
}

fn tls(ca: Option<&str>, mode: SslMode) -> Result<MakeRustlsConnect, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let wrong = |why: String| format!("tls_ca={path} cannot be used: {why}");
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))? {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("there is no certificate in it".to_owned()));
            }
        }
        None if mode == SslMode::Disable => {}
        None => _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
    }
    // The provider is named: with two of them in one program, rustls would panic.
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

/// An open connection, in a transaction that cannot write. It ends when this is dropped.
pub(super) struct Link {
    client: Client,
    carrier: JoinHandle<()>,
}

pub(super) async fn connect(config: &Config, tls: MakeRustlsConnect) -> Result<Link, String> {
    let connecting = async {
        let (client, connection) = config.connect(tls).await.map_err(|error| said(&error))?;
        let carrier = tokio::spawn(async move {
            // What it says, the calls say as well.
            let _ = connection.await;
        });
        let link = Link { client, carrier };
        link.client
            .batch_execute("begin transaction isolation level repeatable read, read only")
            .await
            .map_err(|error| said(&error))?;
        Ok(link)
    };
    timeout(CONNECT, connecting)
        .await
        .unwrap_or_else(|_| Err(format!("it does not answer within {} s: is it running?", CONNECT.as_secs())))
}

impl Link {
    pub(super) async fn prepare(&self, sql: &str) -> Result<Statement, String> {
        patiently(self.client.prepare(sql)).await
    }

    pub(super) async fn rows(self, sql: &str) -> Result<Rows, String> {
        let none: [&str; 0] = [];
        let rows = patiently(self.client.query_raw(sql, none)).await?;
        Ok(Rows { rows: Box::pin(rows), _link: self })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.carrier.abort();
    }
}

/// The rows of a query, as they come.
pub(super) struct Rows {
    rows: Pin<Box<RowStream>>,
    _link: Link,
}

impl Rows {
    pub(super) async fn next(&mut self) -> Result<Option<Row>, String> {
        let row = patiently(async { self.rows.next().await.transpose() });
        row.await
    }
}

async fn patiently<T>(answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, String> {
    match timeout(PATIENCE, answer).await {
        Ok(answer) => answer.map_err(|error| said(&error)),
        Err(_) => Err(format!("it has said nothing for {} s", PATIENCE.as_secs())),
    }
}

/// What the server said, or else what went wrong on the way to it.
fn said(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint}", error.message());
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
