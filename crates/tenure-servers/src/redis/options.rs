//! How a Redis server is to be.

use std::sync::atomic::AtomicU32;

use super::{DATABASES, Redis, ready};
use crate::folder::Folder;
use crate::installed::program;
use crate::ports::on_free_ports;
use crate::process::{Process, Recipe};
use crate::tls::Certificates;

/// How a Redis server is to be; see [`Redis::options`].
#[derive(Debug, Clone, Default)]
#[must_use = "`start` starts it"]
pub struct RedisOptions {
    pub(super) lines: String,
    pub(super) password: Option<String>,
    pub(super) tls: bool,
}

impl RedisOptions {
    /// A line of `redis.conf`, such as `maxmemory 3mb`. The last one of a name counts.
    pub fn conf(mut self, line: &str) -> Self {
        self.lines.push_str(line);
        self.lines.push('\n');
        self
    }

    /// Whether it writes an append-only file (it does when this is not called). Without, nothing outlives the process.
    pub fn appendonly(self, yes: bool) -> Self {
        self.conf(if yes { "appendonly yes" } else { "appendonly no" })
    }

    /// When the append-only file is synced: `always` (before the answer), `everysec` (the default) or `no`.
    pub fn appendfsync(self, when: &str) -> Self {
        self.conf(&format!("appendfsync {when}"))
    }

    /// What it throws away when memory is short: `noeviction` (the default), `allkeys-lru` and so on.
    pub fn maxmemory_policy(self, policy: &str) -> Self {
        self.conf(&format!("maxmemory-policy {policy}"))
    }

    /// Answers only to those who know this password; [`Redis::url`] holds it.
    pub fn requirepass(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Speaks TLS on a second port, at [`Redis::tls_url`].
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts it.
    #[must_use]
    pub fn start(&self) -> Redis {
        on_free_ports("Redis", |[port, tls_port]| {
            let folder = Folder::new("redis", None);
            std::fs::create_dir(folder.at("data")).expect("the folder is ours");
            let conf = folder.write("redis.conf", self.text(port, tls_port, &folder));
            let recipe = Recipe {
                program: program("redis-server", "redis-server"),
                args: vec![conf.into()],
                dir: folder.path().to_owned(),
                account: None,
            };
            let process = Process::start(recipe, |pid| ready(port, self.password.as_deref(), pid))?;
            Ok(Redis { process, port, tls_port, options: self.clone(), databases: AtomicU32::new(0), folder })
        })
    }

    fn text(&self, port: u16, tls_port: u16, folder: &Folder) -> String {
        let mut text = format!(
            "bind 127.0.0.1\nport {port}\ndir {}\ndatabases {DATABASES}\nsave \"\"\nappendonly yes\n\
             repl-diskless-sync-delay 0\nenable-debug-command local\n",
            folder.at("data").display()
        );
        text.push_str(&self.lines);
        if let Some(password) = &self.password {
            text.push_str(&format!("requirepass {password}\nmasterauth {password}\n"));
        }
        if self.tls {
            let made = Certificates::shared();
            text.push_str(&format!(
                "tls-port {tls_port}\ntls-auth-clients no\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\n",
                made.certificate().display(),
                made.key().display(),
                made.ca().display()
            ));
        }
        text
    }
}
