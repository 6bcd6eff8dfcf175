//! How a PostgreSQL server is to be.

use super::build::Build;
use super::{Postgres, template};
use crate::folder::Folder;
use crate::installed::Account;
use crate::ports::on_free_ports;
use crate::tls::Certificates;

/// Lines that every server has. The rest is as PostgreSQL comes.
const LINES: &str = "
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
# Its memory is files of the data folder: nothing of a killed server stays elsewhere.
dynamic_shared_memory_type = mmap
# After a kill: one call for the file system rather than one for each file.
recovery_init_sync_method = syncfs
hot_standby = on
wal_keep_size = 64MB
wal_retrieve_retry_interval = 100ms
";

/// How a PostgreSQL server is to be; see [`Postgres::options`].
#[derive(Debug, Clone)]
#[must_use = "`start` starts it"]
pub struct PostgresOptions {
    lines: String,
    tls: bool,
    build: Build,
}

impl PostgresOptions {
    pub(super) fn new() -> Self {
        Self { lines: LINES.to_owned(), tls: false, build: Build::Debian }
    }

    /// A line of `postgresql.conf`, such as `max_connections = 20`. The last one of a name counts.
    pub fn conf(mut self, line: &str) -> Self {
        self.lines.push_str(line);
        self.lines.push('\n');
        self
    }

    /// When a commit is answered: `on` (on the disk, the default), `off`, `local`, `remote_apply`.
    pub fn synchronous_commit(self, level: &str) -> Self {
        self.conf(&format!("synchronous_commit = {level}"))
    }

    /// Leaves it to the system when to write to the disk (`fsync = off`). What was committed outlives a kill all the
    /// same, though not a loss of power; starting again and removing its files are many times faster. For drills, and
    /// never for a bench.
    pub fn unsynced(self) -> Self {
        self.conf("fsync = off")
    }

    /// Speaks TLS to those who want it; [`Postgres::ca`] vouches for its certificate. Without TLS it still answers.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Takes a newer PostgreSQL, to which pgvector can be added: `create extension vector`.
    pub fn vectors(mut self) -> Self {
        self.build = Build::Vectors;
        self
    }

    /// Starts it.
    #[must_use]
    pub fn start(&self) -> Postgres {
        on_free_ports("PostgreSQL", |[port]| {
            let folder = Folder::new("postgres", Account::postgres());
            template::fill(self.build, &folder);
            let mut lines = self.lines.clone();
            if self.tls {
                lines.push_str(&certify(&folder));
            }
            let path = folder.at("data/postgresql.conf");
            let text = std::fs::read_to_string(&path).expect("initdb wrote it") + &lines;
            std::fs::write(&path, text).expect("the data folder can be written");
            Postgres::run(self.build, folder, port, None)
        })
    }
}

/// Puts the certificate into the data folder, where a standby gets it too, and gives the lines that name it.
fn certify(folder: &Folder) -> String {
    let made = Certificates::shared();
    for (from, name) in [(made.certificate(), "data/tenure.crt"), (made.key(), "data/tenure.key")] {
        // Copied with its permissions: openssl makes a key that only its owner reads.
        std::fs::copy(from, folder.at(name)).expect("the data folder can be written");
        folder.give(&folder.at(name));
    }
    "ssl = on\nssl_cert_file = 'tenure.crt'\nssl_key_file = 'tenure.key'\n".to_owned()
}
