//! Redis: a server and its replicas.

mod options;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;

pub use options::RedisOptions;

use crate::folder::Folder;
use crate::installed::program;
use crate::patience::{PATIENCE, eventually};
use crate::process::{Process, ask, tool};
use crate::snapshot::Snapshot;
use crate::tls::Certificates;

/// How many numbered databases a server has.
const DATABASES: u32 = 1024;

/// A Redis server.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    port: u16,
    tls_port: u16,
    options: RedisOptions,
    databases: AtomicU32,
    folder: Folder,
}

impl Redis {
    /// Starts one with the defaults: an append-only file that is synced each second, and no eviction.
    #[must_use]
    pub fn start() -> Self {
        Self::options().start()
    }

    /// Starts one that is not as usual.
    pub fn options() -> RedisOptions {
        RedisOptions::default()
    }

    /// The server that all tests of this process share. Take a [`database`](Self::database) of it, and do not harm it.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Redis> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Its address. It holds the password when there is one.
    #[must_use]
    pub fn url(&self) -> String {
        let password = self.options.password.as_deref().map(|word| format!(":{word}@")).unwrap_or_default();
        format!("redis://{password}127.0.0.1:{}", self.port)
    }

    /// Its address with TLS, when it was started with [`RedisOptions::tls`].
    #[must_use]
    pub fn tls_url(&self) -> String {
        assert!(self.options.tls, "this server does not speak TLS");
        self.url().replacen("redis:", "rediss:", 1).replace(&self.port.to_string(), &self.tls_port.to_string())
    }

    /// The file of the authority that signed its certificate.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        Certificates::shared().ca()
    }

    /// The address of an empty numbered database that this process did not hand out before.
    #[must_use]
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(number < DATABASES, "all {DATABASES} databases are handed out");
        format!("{}/{number}", self.url())
    }

    /// Its port on 127.0.0.1, without TLS.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens, without TLS.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// What `redis-cli` says to a command, such as `["get", "key"]`; it panics when the command fails.
    pub fn cli(&self, args: &[&str]) -> String {
        self.try_cli(args).unwrap_or_else(|said| panic!("`{}` failed: {said}\n{}", args.join(" "), self.log()))
    }

    /// As [`cli`](Self::cli).
    ///
    /// # Errors
    ///
    /// What it said when the command failed.
    pub fn try_cli(&self, args: &[&str]) -> Result<String, String> {
        cli(self.port, self.options.password.as_deref(), args, PATIENCE)
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Stops it in order.
    pub fn stop(&self) {
        self.process.stop(Signal::TERM);
    }

    /// Kills it. What it wrote to its file stays, as the system keeps it.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Stops its process where it is (SIGSTOP). Connections stay open and are not answered.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Starts it again on the same port with the same files, after an orderly stop when it still runs. Replicas and
    /// Sentinels find it there.
    pub fn restart(&self) {
        if self.process.runs() {
            self.stop();
        }
        self.process.restart(|pid| ready(self.port, self.password(), pid));
    }

    /// Copies its data folder, as a snapshot of the volume would: at one instant, also while it runs.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.process, &self.folder)
    }

    /// Puts a snapshot of its data folder back, and starts it: what came after is lost. It is killed when it runs.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.process.kill();
        snapshot.put_back(&self.folder);
        self.restart();
    }

    /// A new server with the same options that follows this one and has caught up.
    #[must_use]
    pub fn replica(&self) -> Self {
        let replica = self.options.start();
        replica.replica_of(self);
        replica
    }

    /// Makes this server follow `primary`, and waits until it has caught up. What it held before is gone.
    pub fn replica_of(&self, primary: &Self) {
        self.cli(&["replicaof", "127.0.0.1", &primary.port.to_string()]);
        eventually("the replica has caught up", || {
            self.cli(&["info", "replication"]).contains("link_status:up").then_some(())
        });
        primary.wait_for(1);
    }

    /// Makes a primary of a replica, as an operator would.
    pub fn promote(&self) {
        self.cli(&["replicaof", "no", "one"]);
    }

    /// Waits until `replicas` replicas have everything that was written here.
    pub fn wait_for(&self, replicas: u32) {
        // `WAIT` is about what its own connection has written, and a fresh one has written nothing.
        let number = |line: &str, field: &str| -> Option<u64> {
            line.split([',', '\r', '\n']).find_map(|part| part.strip_prefix(field))?.parse().ok()
        };
        let written = number(&self.cli(&["info", "replication"]), "master_repl_offset:").unwrap_or(u64::MAX);
        eventually("the replicas have everything", || {
            let info = self.cli(&["info", "replication"]);
            let have = info.lines().filter(|line| line.starts_with("slave") && line.contains("state=online"));
            let have = have.filter(|line| number(line, "offset=").is_some_and(|offset| offset >= written));
            (have.count() >= replicas as usize).then_some(())
        });
    }

    /// Nothing that is written here from now on reaches `replica`: it is [paused](Self::pause), and its connection is
    /// dropped from this side. Kill this server before the replica resumes, or it catches up.
    pub fn leave_behind(&self, replica: &Self) {
        replica.pause();
        self.cli(&["client", "kill", "type", "replica"]);
        // The others come back at once.
        let port = format!("port={},", replica.port);
        eventually("the replica is gone", || (!self.cli(&["info", "replication"]).contains(&port)).then_some(()));
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.options.password.as_deref()
    }
}

/// The server on this port answers, has read its files, and is the one with this process id.
fn ready(port: u16, password: Option<&str>, pid: i32) -> Option<()> {
    let info = cli(port, password, &["info"], Duration::from_secs(5)).ok()?;
    let has = |line: &str| info.lines().any(|each| each.trim_end() == line);
    (has(&format!("process_id:{pid}")) && has("loading:0")).then_some(())
}

/// Runs `redis-cli`.
pub(crate) fn cli(port: u16, password: Option<&str>, args: &[&str], patience: Duration) -> Result<String, String> {
    let mut command = tool(&program("redis-cli", "redis-tools"), None);
    command.args(["-e", "-h", "127.0.0.1", "-p", &port.to_string()]).args(args);
    if let Some(password) = password {
        command.env("REDISCLI_AUTH", password);
    }
    ask(command, patience).result()
}
