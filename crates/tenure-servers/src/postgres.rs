//! PostgreSQL: a primary, its standbys, and its data folder put back.

mod build;
mod options;
mod template;

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use build::Build;
pub use options::PostgresOptions;

use crate::folder::Folder;
use crate::installed::postgres;
use crate::patience::{PATIENCE, eventually};
use crate::ports::on_free_ports;
use crate::process::{Process, Recipe, ask, tool};
use crate::proxy::Proxy;
use crate::snapshot::Snapshot;
use crate::tls::Certificates;

/// A PostgreSQL server with a system identifier of its own. Its user is `postgres`, without a password.
#[derive(Debug)]
pub struct Postgres {
    build: Build,
    process: Process,
    port: u16,
    /// Of a standby: what the log comes through.
    link: Option<Proxy>,
    databases: AtomicU32,
    folder: Folder,
}

impl Postgres {
    /// Starts one with the defaults: everything is as durable as PostgreSQL makes it. A drill that kills it is faster on
    /// an [unsynced](PostgresOptions::unsynced) one.
    #[must_use]
    pub fn start() -> Self {
        Self::options().start()
    }

    /// Starts one that is not as usual.
    pub fn options() -> PostgresOptions {
        PostgresOptions::new()
    }

    /// The server that all tests of this process share. Take a [`database`](Self::database) of it, and do not harm it.
    /// It is [unsynced](PostgresOptions::unsynced): a bench starts one of its own.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| Self::options().unsynced().conf("max_connections = 300").start())
    }

    /// The same with pgvector: one server for all tests of this process that need it.
    #[must_use]
    pub fn shared_with_vectors() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| Self::options().vectors().unsynced().conf("max_connections = 300").start())
    }

    fn run(build: Build, folder: Folder, port: u16, link: Option<Proxy>) -> Result<Self, String> {
        let recipe = Recipe {
            program: build.program("postgres"),
            args: vec!["-D".into(), folder.at("data").into(), "-p".into(), port.to_string().into()],
            dir: folder.path().to_owned(),
            account: folder.account(),
        };
        let process = Process::start(recipe, |_| ready(port, &folder))?;
        Ok(Self { build, process, port, link, databases: AtomicU32::new(0), folder })
    }

    /// The address of its database `postgres`.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.port, "postgres")
    }

    /// The address of a new, empty database.
    #[must_use]
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed) + 1);
        // Without a checkpoint, which copying the files of a template would need.
        self.psql(&format!("create database {name} strategy wal_log"));
        url(self.port, &name)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The file of the authority that signed its certificate: for `sslrootcert`, when it speaks TLS.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        Certificates::shared().ca()
    }

    /// Runs SQL in the database `postgres` and gives a line for each row, fields parted by `|`; panics when it fails.
    pub fn psql(&self, sql: &str) -> String {
        psql(&self.url(), sql).unwrap_or_else(|said| panic!("`{sql}` failed: {said}\n{}", self.log()))
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Stops it in order: what was committed is on the disk, connections are dropped.
    pub fn stop(&self) {
        self.process.stop(Signal::INT);
    }

    /// Kills it and all its processes. What the system had buffered for the disk is kept.
    pub fn kill(&self) {
        self.process.kill();
    }

    /// Stops all its processes where they are (SIGSTOP). Connections stay open and are not answered.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets them go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Starts it again on the same port, after an orderly stop when it still runs.
    pub fn restart(&self) {
        if self.process.runs() {
            self.stop();
        }
        self.process.restart(|_| ready(self.port, &self.folder));
    }

    /// A copy that follows this one and streams. [`cut_link`](Self::cut_link) keeps the last commits from it.
    #[must_use]
    pub fn standby(&self) -> Self {
        on_free_ports("a standby", |[port]| {
            let folder = Folder::new("standby", self.folder.account());
            let link = Proxy::to(self.port);
            let mut command = tool(&self.build.program("pg_basebackup"), folder.account());
            let connection = format!("host=127.0.0.1 port={} user=postgres application_name={port}", link.port());
            command.args(["-d", &connection, "--checkpoint=fast", "--write-recovery-conf", "--no-sync", "-D"]);
            command.arg(folder.at("data"));
            ask(command, PATIENCE).result().unwrap_or_else(|said| panic!("pg_basebackup failed:\n{said}"));
            let standby = Self::run(self.build, folder, port, Some(link))?;
            let streams =
                format!("select 1 from pg_stat_replication where application_name = '{port}' and state = 'streaming'");
            eventually("the standby streams", || (self.psql(&streams) == "1").then_some(()));
            Ok(standby)
        })
    }

    /// Waits until `standby` has replayed everything that is committed here by now.
    pub fn wait_for(&self, standby: &Self) {
        let place = self.psql("select pg_current_wal_flush_lsn()");
        let sql = format!("select pg_last_wal_replay_lsn() >= '{place}'");
        eventually("the standby has replayed all", || (standby.psql(&sql) == "t").then_some(()));
    }

    /// Of a standby: nothing comes from its primary from now on, and connecting again fails.
    pub fn cut_link(&self) {
        self.link().cut();
    }

    /// Of a standby: lets it connect to its primary again.
    pub fn heal_link(&self) {
        self.link().heal();
    }

    /// Of a standby: it goes on receiving, but what it receives does not show. Promoting it makes up for it first.
    pub fn pause_replay(&self) {
        self.psql("select pg_wal_replay_pause()");
        let paused = || (self.psql("select pg_get_wal_replay_pause_state()") == "paused").then_some(());
        eventually("the replay pauses", paused);
    }

    /// Of a standby: lets it show what it received.
    pub fn resume_replay(&self) {
        self.psql("select pg_wal_replay_resume()");
    }

    /// Makes a primary of a standby, on a timeline of its own. It takes writes when this returns.
    pub fn promote(&self) {
        assert_eq!(self.psql("select pg_promote(true, 30)"), "t", "not promoted:\n{}", self.log());
    }

    /// Copies its data folder, as a snapshot of the volume would: at one instant, also while it runs.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.process, &self.folder)
    }

    /// Puts a snapshot of its data folder back, and starts it: what came after is lost. It is killed when it runs.
    pub fn restore(&self, snapshot: &Snapshot) {
        self.process.kill();
        self.free_memory();
        snapshot.put_back(&self.folder);
        // It names a process that is gone, or another that has its number now.
        let _ = std::fs::remove_file(self.folder.at("data/postmaster.pid"));
        self.restart();
    }

    /// A killed server leaves a small piece of shared memory, and a note of its number.
    fn free_memory(&self) {
        let note = std::fs::read_to_string(self.folder.at("data/postmaster.pid")).unwrap_or_default();
        if let Some(memory) = note.lines().nth(6).and_then(|line| line.split_whitespace().nth(1)) {
            let _ = Command::new("ipcrm").args(["-m", memory]).output();
        }
    }

    fn link(&self) -> &Proxy {
        self.link.as_ref().expect("only a standby has a link to its primary")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An orderly end gives the shared memory back.
        self.process.end(Signal::QUIT, Duration::from_secs(5));
        self.free_memory();
    }
}

/// Runs SQL at an address: a line for each row, fields parted by `|`.
///
/// # Errors
///
/// What `psql` complained about. It waits for [`PATIENCE`].
pub fn psql(url: &str, sql: &str) -> Result<String, String> {
    let mut command = tool(&postgres("psql"), None);
    command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]).env("PGCONNECT_TIMEOUT", "10");
    ask(command, PATIENCE).result()
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}")
}

/// The server on this port answers, and it is the one of this folder.
fn ready(port: u16, folder: &Folder) -> Option<()> {
    let data = psql(&url(port, "postgres"), "show data_directory").ok()?;
    (data == folder.at("data").display().to_string()).then_some(())
}
