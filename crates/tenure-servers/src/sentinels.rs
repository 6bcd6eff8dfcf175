//! Redis Sentinel: who is the primary now.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::Signal;

use crate::folder::Folder;
use crate::installed::program;
use crate::patience::{PATIENCE, eventually};
use crate::ports::on_free_ports;
use crate::process::{Process, Recipe};
use crate::redis::{Redis, cli};

/// Sentinels that watch one primary, and name another when it fails.
#[derive(Debug)]
pub struct Sentinels {
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    process: Process,
    port: u16,
    /// Held for its life.
    _folder: Folder,
}

impl Sentinels {
    /// What they call the primary.
    pub const NAME: &'static str = "tenure";

    /// Starts `n` of them. They know each other and the primary's replicas when this returns.
    ///
    /// A primary that was silent for `down_after` counts as down; `quorum` of them must think so. Below a second they see
    /// failures that are none. `failover_timeout` is Sentinel's own: a failed attempt is repeated after twice that time.
    #[must_use]
    pub fn start(n: usize, primary: &Redis, quorum: usize, down_after: Duration, failover_timeout: Duration) -> Self {
        Self::through(primary.port(), n, primary, quorum, down_after, failover_timeout)
    }

    /// As [`start`](Self::start), and they know the primary by another port of 127.0.0.1, which leads to it.
    #[must_use]
    pub fn through(
        port: u16,
        n: usize,
        primary: &Redis,
        quorum: usize,
        down_after: Duration,
        failover_timeout: Duration,
    ) -> Self {
        let name = Self::NAME;
        let mut watch = format!(
            "sentinel monitor {name} 127.0.0.1 {port} {quorum}\nsentinel down-after-milliseconds {name} {}\n\
             sentinel failover-timeout {name} {}\n",
            down_after.as_millis(),
            failover_timeout.as_millis()
        );
        if let Some(password) = primary.password() {
            watch.push_str(&format!("sentinel auth-pass {name} {password}\n"));
        }
        let sentinels = Self { sentinels: (0..n).map(|_| Sentinel::start(&watch)).collect() };
        let others = n.saturating_sub(1).to_string();
        let info = primary.cli(&["info", "replication"]);
        let replicas = info.lines().find_map(|line| line.strip_prefix("connected_slaves:")).unwrap_or("0").trim_end();
        eventually("the Sentinels know each other and the replicas", || {
            let knows = |sentinel: &Sentinel| {
                { sentinel.field("num-other-sentinels")? == others && sentinel.field("num-slaves")? == replicas }
                    .then_some(())
            };
            sentinels.sentinels.iter().all(|sentinel| knows(sentinel).is_some()).then_some(())
        });
        sentinels
    }

    /// Where they listen.
    #[must_use]
    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.sentinels.iter().map(|sentinel| ([127, 0, 0, 1], sentinel.port).into()).collect()
    }

    /// The primary that the first of them that answers names now.
    #[must_use]
    pub fn primary(&self) -> SocketAddr {
        eventually("a Sentinel answers", || self.sentinels.iter().find_map(Sentinel::primary))
    }

    /// Waits until all of them that run name another primary than `old`, and gives it.
    #[must_use]
    pub fn wait_for_change(&self, old: SocketAddr) -> SocketAddr {
        eventually("the Sentinels name another primary", || {
            let named: Vec<_> =
                self.sentinels.iter().filter(|each| each.process.runs()).map(Sentinel::primary).collect();
            let new = *named.first()?;
            (new? != old && named.iter().all(|each| *each == new)).then_some(new?)
        })
    }

    /// The end of the log of one.
    #[must_use]
    pub fn log(&self, n: usize) -> String {
        self.sentinels[n].process.log()
    }

    /// Kills one.
    pub fn kill(&self, n: usize) {
        self.sentinels[n].process.kill();
    }

    /// Stops one where it is (SIGSTOP).
    pub fn pause(&self, n: usize) {
        self.sentinels[n].process.pause();
    }

    /// Lets it go on.
    pub fn resume(&self, n: usize) {
        self.sentinels[n].process.resume();
    }

    /// Starts one again, after an orderly stop when it still runs.
    pub fn restart(&self, n: usize) {
        let sentinel = &self.sentinels[n];
        if sentinel.process.runs() {
            sentinel.process.stop(Signal::TERM);
        }
        sentinel.process.restart(|pid| ready(sentinel.port, pid));
    }
}

impl Sentinel {
    fn start(watch: &str) -> Self {
        on_free_ports("Redis Sentinel", |[port]| {
            let folder = Folder::new("sentinel", None);
            let head = format!("bind 127.0.0.1\nport {port}\ndir {}\n", folder.path().display());
            let conf = folder.write("sentinel.conf", head + watch);
            let recipe = Recipe {
                program: program("redis-server", "redis-server"),
                args: vec![conf.into(), "--sentinel".into()],
                dir: folder.path().to_owned(),
                account: None,
            };
            let process = Process::start(recipe, |pid| ready(port, pid))?;
            Ok(Self { process, port, _folder: folder })
        })
    }

    fn primary(&self) -> Option<SocketAddr> {
        let said = self.ask(&["sentinel", "get-master-addr-by-name", Sentinels::NAME])?;
        let (host, port) = said.split_once('\n')?;
        format!("{host}:{port}").parse().ok()
    }

    /// A field of what it knows about the primary.
    fn field(&self, name: &str) -> Option<String> {
        let said = self.ask(&["sentinel", "master", Sentinels::NAME])?;
        said.lines().skip_while(|line| *line != name).nth(1).map(ToOwned::to_owned)
    }

    fn ask(&self, args: &[&str]) -> Option<String> {
        cli(self.port, None, args, Duration::from_secs(1)).ok()
    }
}

fn ready(port: u16, pid: i32) -> Option<()> {
    let info = cli(port, None, &["info", "server"], PATIENCE).ok()?;
    // They tell of themselves each 2 s and look for replicas each 10 s: a test need not wait that long.
    cli(port, None, &["sentinel", "debug", "publish-period", "200", "info-period", "500"], PATIENCE).ok()?;
    info.lines().any(|line| line.trim_end() == format!("process_id:{pid}")).then_some(())
}
