//! An index, an authority and documents, of one test.

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use tenure_servers::{Chroma, Postgres};

/// Where the index of a test is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
    Chroma,
}

/// Everything that a test works with. Gone with the test.
#[derive(Debug)]
pub(crate) struct Site {
    folder: TempDir,
    pub(crate) index: String,
    pub(crate) authority: String,
}

/// Long enough for two busy cores, short enough to wait for.
pub(crate) const LEASE: &str = "5s";

/// What a command wrote.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Site {
    pub(crate) fn new(kind: Kind) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().display();
        let index = match kind {
            Kind::Sqlite => format!("sqlite:{path}/vectors"),
            Kind::Postgres => Postgres::shared_with_vectors().database(),
            Kind::Chroma => format!("chroma:{}?catalog=sqlite:{path}/catalog", Chroma::shared().url()),
        };
        let authority = format!("sqlite:{path}/authority.db?create=true");
        Self { folder, index, authority }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of a tenant's documents.
    pub(crate) fn source(&self, tenant: &str) -> PathBuf {
        self.path().join("documents").join(tenant)
    }

    /// Writes a document of a tenant, in one step: somebody may be reading.
    pub(crate) fn write(&self, tenant: &str, name: &str, text: &str) {
        let file = self.source(tenant).join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let draft = file.with_file_name(".draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, file).unwrap();
    }

    /// Writes many documents, with enough chunks for several batches. Each edition shares most of its chunks with the others.
    pub(crate) fn edition(&self, tenant: &str, edition: &str) {
        for number in 0..20 {
            let mut text = format!("# Manual {number} of {tenant}\n\nEdition {edition}, page {number}.\n");
            for section in 0..20 {
                write!(text, "\n## Part {section}\n\nHow tenant {tenant} turns wheel {number}-{section}: slowly.\n")
                    .unwrap();
            }
            self.write(tenant, &format!("manual-{number:02}.md"), &text);
        }
    }

    /// A command of this site. The addresses stand in the environment.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vector-sync"));
        command.args(words);
        command.env("VECTOR_SYNC_INDEX", &self.index).env("TENURE_AUTHORITY", &self.authority);
        command.env("VECTOR_SYNC_MODEL", "words").env_remove("VECTOR_SYNC_LOG");
        command.current_dir(self.path());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Said {
        Said::of(self.command(words).output().unwrap())
    }

    /// Runs a command that must do what it is asked.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let said = self.run(words);
        assert_eq!(said.status, 0, "{words:?}: {said:?}");
        said.out
    }

    /// The words of a round of a tenant.
    pub(crate) fn sync(&self, tenant: &str) -> Vec<String> {
        let source = self.source(tenant).display().to_string();
        let lease = ["--ttl", LEASE, "--wait", "60s"];
        ["sync", "--json", "--tenant", tenant, "--source", &source]
            .into_iter()
            .chain(lease)
            .map(str::to_owned)
            .collect()
    }

    /// A round of a tenant, to its end: how it ended.
    pub(crate) fn round(&self, tenant: &str) -> Value {
        let words = self.sync(tenant);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = self.run(&words);
        outcome(&said.out).unwrap_or_else(|| panic!("no outcome: {said:?}"))
    }

    /// How a tenant stands, without what grows old.
    pub(crate) fn standing(&self, tenant: &str) -> Value {
        serde_json::from_str(&self.done(&["status", "--json", "--tenant", tenant])).unwrap()
    }

    /// What a search finds.
    pub(crate) fn search(&self, tenant: &str, words: &str) -> Value {
        serde_json::from_str(&self.done(&["search", "--json", "--tenant", tenant, "-n", "20", words])).unwrap()
    }
}

impl Said {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// How the round ended that wrote these lines.
pub(crate) fn outcome(out: &str) -> Option<Value> {
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut ended = lines.filter(|line: &Value| line["event"] == "ended");
    ended.next_back()
}
