//! An S3 server: SeaweedFS, which makes each conditional put in one step.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::folder::Folder;
use crate::http::Connection;
use crate::installed::weed;
use crate::patience::PATIENCE;
use crate::ports::on_free_ports;
use crate::process::{Process, Recipe};

/// The bucket that a server has from the start. A new bucket costs seconds: tests take a [`prefix`](S3::prefix) each.
const BUCKET: &str = "tests";

/// The key that a server asks for. It guards nothing.
const ACCESS_KEY: &str = "tenure-tests";
const SECRET_KEY: &str = "not-a-secret";

/// A server that speaks S3, on the local disk.
#[derive(Debug)]
pub struct S3 {
    process: Process,
    ports: Ports,
    prefixes: AtomicU32,
    // Last: the server must be gone before its folder.
    folder: Folder,
}

impl S3 {
    /// Starts one. This takes some seconds.
    #[must_use]
    pub fn start() -> Self {
        on_free_ports("SeaweedFS", |ports: [u16; 8]| Self::run(Ports(ports)))
    }

    /// The server that all tests of this process share. Take a [`prefix`](Self::prefix) of it, and do not harm it.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<S3> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn run(ports: Ports) -> Result<Self, String> {
        let folder = Folder::new("s3", None);
        let who = format!(
            r#"{{"identities":[{{"name":"tests","credentials":[{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}],
            "actions":["Admin","Read","Write","List"]}}]}}"#
        );
        let who = folder.write("who.json", who);
        let recipe = Recipe {
            program: weed(),
            args: ports.options(&folder, &who),
            dir: folder.path().to_owned(),
            account: None,
        };
        let process = Process::start(recipe, |_| ports.answers())?;
        Ok(Self { process, ports, prefixes: AtomicU32::new(0), folder })
    }

    /// Where it speaks S3: `http://127.0.0.1:port`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// As [`endpoint`](Self::endpoint), without the protocol.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.ports.s3()).into()
    }

    /// The bucket that is there from the start.
    #[must_use]
    pub fn bucket(&self) -> &'static str {
        BUCKET
    }

    /// A prefix in that bucket that nobody else was given.
    #[must_use]
    pub fn prefix(&self) -> String {
        format!("t{}", self.prefixes.fetch_add(1, Ordering::Relaxed))
    }

    /// What it wants to be shown, by the names under which tools look for it in their environment.
    #[must_use]
    pub fn credentials(&self) -> [(&'static str, &'static str); 2] {
        [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)]
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

    /// Starts it again on the same ports with the same files; it is killed first when it still runs.
    pub fn restart(&self) {
        self.process.kill();
        self.ports.sweep();
        // What it remembers of a vote among one costs it eight seconds.
        let _ = std::fs::remove_dir_all(self.folder.at(&format!("m{}", self.ports.0[0])));
        self.process.restart(|_| self.ports.answers());
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        self.process.kill();
        self.ports.sweep();
    }
}

/// Its parts speak to each other by ports of their own, each with a second one for gRPC.
#[derive(Debug, Clone, Copy)]
struct Ports([u16; 8]);

impl Ports {
    fn s3(self) -> u16 {
        self.0[6]
    }

    fn options(self, folder: &Folder, who: &Path) -> Vec<std::ffi::OsString> {
        let [chief, chief_grpc, volume, volume_grpc, filer, filer_grpc, s3, s3_grpc] = self.0;
        let at = |name: &str| folder.at(name).display().to_string();
        let options = [
            "-logtostderr".to_owned(),
            "server".to_owned(),
            format!("-dir={}", folder.path().display()),
            "-ip=127.0.0.1".to_owned(),
            "-ip.bind=127.0.0.1".to_owned(),
            format!("-master.port={chief}"),
            format!("-master.port.grpc={chief_grpc}"),
            format!("-volume.port={volume}"),
            format!("-volume.port.grpc={volume_grpc}"),
            "-filer".to_owned(),
            format!("-filer.port={filer}"),
            format!("-filer.port.grpc={filer_grpc}"),
            format!("-filer.localSocket={}", at("filer.sock")),
            "-s3".to_owned(),
            format!("-s3.port={s3}"),
            format!("-s3.port.grpc={s3_grpc}"),
            "-s3.port.iceberg=0".to_owned(),
            "-s3.port.lance=0".to_owned(),
            format!("-s3.localSocket={}", at("s3.sock")),
            format!("-s3.config={}", who.display()),
            // It would report to its makers.
            "-master.telemetry=false".to_owned(),
            "-master.volumeSizeLimitMB=64".to_owned(),
            "-volume.max=8".to_owned(),
        ];
        options.map(Into::into).into()
    }

    /// The bucket is there, and something can be written: the first write waits until room was made on the disk.
    fn answers(self) -> Option<()> {
        let filer: SocketAddr = ([127, 0, 0, 1], self.0[4]).into();
        let s3: SocketAddr = ([127, 0, 0, 1], self.s3()).into();
        let mut connection = Connection::open(filer, Duration::from_millis(300)).ok()?;
        connection.post(&format!("/buckets/{BUCKET}/"), "").ok()?;
        let mut connection = Connection::open(filer, PATIENCE).ok()?;
        let said = connection.ask("PUT", &format!("/buckets/{BUCKET}/ready"), "ready").ok()?;
        let mut connection = Connection::open(s3, Duration::from_millis(300)).ok()?;
        // Without a signature it is refused, by the part that is asked for.
        let refused = connection.ask("GET", "/", "").ok()?;
        (said.contains("\"size\"") && refused.contains("AccessDenied")).then_some(())
    }

    /// It leaves sockets behind that bear the numbers of its ports.
    fn sweep(self) {
        for (part, port) in [("master", self.0[1]), ("volume", self.0[3]), ("filer", self.0[5]), ("s3", self.0[7])] {
            let _ = std::fs::remove_file(PathBuf::from(format!("/tmp/seaweedfs-{part}-grpc-{port}.sock")));
        }
    }
}
