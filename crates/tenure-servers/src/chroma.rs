//! Chroma: a server of collections of vectors, which shares no transaction with anybody.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use crate::folder::Folder;
use crate::http::Connection;
use crate::installed::chroma;
use crate::ports::on_free_ports;
use crate::process::{Process, Recipe};

/// Chroma, with its files on the local disk.
#[derive(Debug)]
pub struct Chroma {
    process: Process,
    port: u16,
    // Last: the server must be gone before its folder.
    _folder: Folder,
}

impl Chroma {
    /// Starts one.
    #[must_use]
    pub fn start() -> Self {
        on_free_ports("Chroma", |[port]| {
            // In its words the port "is not available".
            Self::run(port).map_err(|log| log.replace("is not available", "is in use"))
        })
    }

    /// The server that all tests of this process share. Take collections of your own, and do not harm it.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Chroma> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn run(port: u16) -> Result<Self, String> {
        let folder = Folder::new("chroma", None);
        // The package's own program wants all that it depends on; the server in it needs nothing.
        let start = "import sys; sys.path.insert(0, sys.argv[1]); import chromadb_rust_bindings as c; \
                     c.cli(['chroma', 'run', '--path', sys.argv[2], '--host', '127.0.0.1', '--port', sys.argv[3]])";
        let recipe = Recipe {
            program: "python3".into(),
            args: vec!["-c".into(), start.into(), chroma().into(), folder.at("data").into(), port.to_string().into()],
            dir: folder.path().to_owned(),
            account: None,
        };
        let process = Process::start(recipe, |_| answers(port))?;
        Ok(Self { process, port, _folder: folder })
    }

    /// Where it is: `http://127.0.0.1:port`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Asks it by hand and gives the body of its answer, whatever its status; panics when there is none.
    #[must_use]
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut connection = Connection::open(addr(self.port), Duration::from_secs(10)).expect("it takes connections");
        let said = connection.ask_json(method, path, body);
        said.unwrap_or_else(|error| panic!("{method} {path}: {error}\n{}", self.log()))
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Kills it. What it wrote stays.
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

    /// Starts it again on the same port with the same files; it is killed first when it still runs.
    pub fn restart(&self) {
        self.process.restart(|_| answers(self.port));
    }
}

fn addr(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn answers(port: u16) -> Option<()> {
    let mut connection = Connection::open(addr(port), Duration::from_millis(300)).ok()?;
    let said = connection.ask("GET", "/api/v2/version", "").ok()?;
    said.starts_with('"').then_some(())
}
