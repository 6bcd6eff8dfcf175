//! PgBouncer, which gives a connection of the server to each transaction anew.

use rustix::process::Signal;

use crate::folder::Folder;
use crate::installed::{Account, program};
use crate::ports::on_free_ports;
use crate::postgres::{Postgres, psql};
use crate::process::{Process, Recipe};

/// A PgBouncer in transaction mode before a [`Postgres`].
#[derive(Debug)]
pub struct PgBouncer {
    process: Process,
    port: u16,
    /// Held for its life.
    _folder: Folder,
}

impl PgBouncer {
    /// Starts one that keeps at most 5 connections to each database.
    #[must_use]
    pub fn start(postgres: &Postgres) -> Self {
        Self::with_pool(postgres, 5)
    }

    /// Starts one that keeps at most `size` connections to each database.
    #[must_use]
    pub fn with_pool(postgres: &Postgres, size: u32) -> Self {
        on_free_ports("PgBouncer", |[port]| {
            // It refuses to run as root, as PostgreSQL does.
            let folder = Folder::new("pgbouncer", Account::postgres());
            let text = format!(
                "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
                 listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
                 default_pool_size = {size}\nmax_client_conn = 1000\nignore_startup_parameters = extra_float_digits\n",
                postgres.port()
            );
            let recipe = Recipe {
                program: program("pgbouncer", "pgbouncer"),
                args: vec![folder.write("pgbouncer.ini", text).into()],
                dir: folder.path().to_owned(),
                account: folder.account(),
            };
            let process = Process::start(recipe, |_| psql(&url(port, "postgres"), "select 1").ok())?;
            Ok(Self { process, port, _folder: folder })
        })
    }

    /// The address of the database `postgres` through it.
    #[must_use]
    pub fn url(&self) -> String {
        url(self.port, "postgres")
    }

    /// The address through it of a database that has this address at the server itself.
    #[must_use]
    pub fn url_of(&self, direct: &str) -> String {
        let (_, database) = direct.rsplit_once('/').expect("the address names a database");
        url(self.port, database)
    }

    /// Stops it: connections are dropped.
    pub fn stop(&self) {
        self.process.stop(Signal::TERM);
    }

    /// Stops its process where it is (SIGSTOP).
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Starts it again on the same port, after a stop when it still runs.
    pub fn restart(&self) {
        if self.process.runs() {
            self.stop();
        }
        self.process.restart(|_| psql(&self.url(), "select 1").ok());
    }
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}")
}
