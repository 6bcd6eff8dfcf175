//! One member of a cluster.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::folder::Folder;
use crate::http::Connection;
use crate::installed::program;
use crate::island::Site;
use crate::patience::PATIENCE;
use crate::process::{Process, Recipe, ask, tool};
use crate::tls::Certificates;

/// Members of two clusters never take each other for their own.
const TOKEN: &str = "tenure";

#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    port: u16,
    peer_port: u16,
    site: Site,
    tls_port: Option<u16>,
    process: Process,
    folder: Folder,
}

/// What a member says of itself and its cluster.
#[derive(Debug)]
pub(super) struct Status {
    pub(super) member: String,
    pub(super) leading: String,
    pub(super) cluster: String,
    pub(super) revision: u64,
}

impl Member {
    pub(super) fn new(n: usize, port: u16, peer_port: u16, site: Site) -> Self {
        let folder = Folder::new("etcd", None);
        let (program, args) = site.program(program("etcd", "etcd-server"));
        let recipe = Recipe { program, args, dir: folder.path().to_owned(), account: None };
        Self { name: format!("m{n}"), port, peer_port, site, tls_port: None, process: Process::new(recipe), folder }
    }

    /// With a second port, for TLS.
    pub(super) fn speaking_tls(self, port: u16) -> Self {
        Self { tls_port: Some(port), ..self }
    }

    pub(super) fn addr(&self) -> SocketAddr {
        (self.site.clients, self.port).into()
    }

    pub(super) fn tls_addr(&self) -> Option<SocketAddr> {
        self.tls_port.map(|port| ([127, 0, 0, 1], port).into())
    }

    pub(super) fn peer_url(&self) -> String {
        format!("http://{}:{}", self.site.peers, self.peer_port)
    }

    pub(super) fn process(&self) -> &Process {
        &self.process
    }

    /// Starts it without waiting for it. `all` is what it is told of the cluster, `pace` the milliseconds between two
    /// signs of life.
    pub(super) fn launch(&self, all: &str, pace: u32) {
        let mut client = format!("http://{}", self.addr());
        let mut tls = Vec::new();
        if let Some(addr) = self.tls_addr() {
            let made = Certificates::shared();
            let _ = write!(client, ",https://{addr}");
            tls = vec![("cert-file", made.certificate()), ("key-file", made.key())];
        }
        let tls = tls.into_iter().map(|(name, path)| format!("--{name}={}", path.display()).into());
        let data = self.folder.at("data").display().to_string();
        let peer = self.peer_url();
        let options = [
            ("name", self.name.as_str()),
            ("data-dir", &data),
            ("listen-client-urls", &client),
            ("advertise-client-urls", &client),
            ("listen-peer-urls", &peer),
            ("initial-advertise-peer-urls", &peer),
            ("initial-cluster", all),
            ("initial-cluster-token", TOKEN),
            ("heartbeat-interval", &pace.to_string()),
            ("election-timeout", &(pace * 10).to_string()),
            // One that comes back from an island forces no election: so it is by default in newer releases.
            ("pre-vote", if self.site.network.is_some() { "true" } else { "false" }),
            ("logger", "zap"),
        ];
        let options = options.map(|(name, value)| format!("--{name}={value}").into());
        self.process.launch(options.into_iter().chain(tls));
    }

    /// Waits until it answers and knows who leads. The error is the end of its log.
    pub(super) fn wait(&self) -> Result<(), String> {
        self.process.wait(|_| self.status().filter(|status| status.leading != "0"))
    }

    /// Gives it the data of a snapshot in the place of its own.
    pub(super) fn restore(&self, snapshot: &Path, all: &str) {
        let data = self.folder.at("data");
        let _ = std::fs::remove_dir_all(&data);
        let mut command = tool(&program("etcdctl", "etcd-client"), None);
        command.args(["snapshot", "restore"]).arg(snapshot).env("ETCDCTL_API", "3");
        command.arg("--name").arg(&self.name).arg("--data-dir").arg(&data).args(["--initial-cluster", all]);
        command.args(["--initial-cluster-token", TOKEN, "--initial-advertise-peer-urls", &self.peer_url()]);
        ask(command, PATIENCE).result().unwrap_or_else(|said| panic!("no snapshot was restored:\n{said}"));
    }

    pub(super) fn status(&self) -> Option<Status> {
        let mut connection = Connection::open(self.addr(), Duration::from_millis(300)).ok()?;
        let said = connection.post("/v3/maintenance/status", "{}").ok()?;
        let said: Value = serde_json::from_str(&said).ok()?;
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let head = said.get("header")?;
        Some(Status {
            member: text(head.get("member_id")?)?,
            // What is 0 is left out.
            leading: said.get("leader").and_then(text).unwrap_or_else(|| "0".to_owned()),
            cluster: text(head.get("cluster_id")?)?,
            revision: head.get("revision").and_then(text)?.parse().ok()?,
        })
    }
}
