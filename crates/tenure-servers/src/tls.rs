//! A certificate for 127.0.0.1 and who vouches for it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::folder::Folder;
use crate::installed::program;
use crate::patience::PATIENCE;
use crate::process::{ask, tool};

/// A certificate of a server at `127.0.0.1` and `localhost`, with its key and the authority that signed it.
#[derive(Debug)]
pub struct Certificates {
    folder: Folder,
}

impl Certificates {
    /// Makes new ones. Servers that speak TLS have [`Certificates::shared`]: those made here are trusted by nobody,
    /// which a test of distrust needs.
    #[must_use]
    pub fn make() -> Self {
        let folder = Folder::new("tls", None);
        let made = Self { folder };
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-x509", "-days", "30"];
        let ca = made.ca();
        made.openssl(&key, &["-subj", "/CN=tests", "-addext", "keyUsage=critical,keyCertSign"], "ca");
        let (ca, ca_key) = (ca.display().to_string(), made.folder.at("ca.key").display().to_string());
        let names = "subjectAltName=IP:127.0.0.1,DNS:localhost";
        let leaf = "basicConstraints=critical,CA:FALSE";
        let signed = ["-CA", &ca, "-CAkey", &ca_key, "-subj", "/CN=localhost", "-addext", names, "-addext", leaf];
        made.openssl(&key, &signed, "server");
        made
    }

    /// Those of the servers of this process.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Certificates> = OnceLock::new();
        SHARED.get_or_init(Self::make)
    }

    /// The file (PEM) of the authority that signed the server's certificate.
    #[must_use]
    pub fn ca(&self) -> PathBuf {
        self.folder.at("ca.crt")
    }

    /// The file (PEM) of the server's certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.at("server.crt")
    }

    /// The file (PEM) of the server's key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.folder.at("server.key")
    }

    fn openssl(&self, key: &[&str], rest: &[&str], name: &str) {
        let at = |end: &str| self.folder.at(&format!("{name}.{end}"));
        let mut command = tool(Path::new(&program("openssl", "openssl")), None);
        command.arg("req").args(key).args(rest).arg("-keyout").arg(at("key")).arg("-out").arg(at("crt"));
        ask(command, PATIENCE).result().unwrap_or_else(|said| panic!("openssl made no certificate:\n{said}"));
    }
}
