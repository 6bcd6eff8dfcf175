use std::path::PathBuf;
use tempfile::TempDir;
use tenure::core::fence::Rule;
use tenure::sink::{FileSink, SqliteFence, SqliteSink};
use tenure::{SinkId, Token, Verdict};

/// A folder with the receivers of a test: a real database and a real folder of files.
pub(crate) struct Receivers {
    folder: TempDir,
}

impl Receivers {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn sqlite(&self) -> SqliteSink {
        SqliteSink::create(self.path("shop.sqlite"), id("shop"), Rule::Sealed).unwrap()
    }

    pub(crate) fn high_water(&self) -> SqliteSink {
        SqliteSink::create(self.path("log.sqlite"), id("log"), Rule::HighWater).unwrap()
    }

    pub(crate) fn files(&self) -> FileSink {
        FileSink::create(self.path("files"), id("files"), Rule::Sealed).unwrap()
    }

    /// Writes a row under the token, as a worker would: in its own transaction, with the check inside it.
    pub(crate) fn write(&self, token: &Token) -> Verdict {
        let mut connection = rusqlite::Connection::open(self.path("shop.sqlite")).unwrap();
        connection.execute_batch("CREATE TABLE IF NOT EXISTS effect (epoch INTEGER)").unwrap();
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        match SqliteFence::new(Rule::Sealed).admit(&tx, token).unwrap() {
            Ok(_) => {
                tx.execute("INSERT INTO effect VALUES (?1)", [token.epoch.as_i64()]).unwrap();
                tx.commit().unwrap();
                Verdict::Written
            }
            Err(verdict) => verdict,
        }
    }
}

pub(crate) fn id(name: &str) -> SinkId {
    SinkId::new(name).unwrap()
}
