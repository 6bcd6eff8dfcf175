//! A place that can be cut off from all servers elsewhere, while clients still reach it.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::folder::Folder;
use crate::installed::program;
use crate::patience::PATIENCE;
use crate::process::{Process, Recipe, ask, tool};

/// The two cables that lead there, each with its end here and its end there.
const PEERS: (&str, Ipv4Addr, Ipv4Addr) = ("peers", Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
const CLIENTS: (&str, Ipv4Addr, Ipv4Addr) = ("clients", Ipv4Addr::new(10, 0, 1, 1), Ipv4Addr::new(10, 0, 1, 2));

/// A network namespace with two cables: servers reach each other over the one, clients the servers over the other. The
/// first can be cut: nobody is told, and what is sent is sent again, as TCP does.
#[derive(Debug)]
pub struct Island {
    /// What keeps the namespace: it is gone with this process.
    holder: Process,
    _folder: Folder,
}

/// Where a server listens.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// For other servers.
    pub(crate) peers: Ipv4Addr,
    /// For clients.
    pub(crate) clients: Ipv4Addr,
    /// Its network namespace, when that is not ours.
    pub(crate) network: Option<PathBuf>,
}

impl Site {
    /// Where servers usually are.
    pub(crate) fn usual() -> Self {
        Self { peers: Ipv4Addr::LOCALHOST, clients: Ipv4Addr::LOCALHOST, network: None }
    }

    /// What to start for this program there.
    pub(crate) fn program(&self, path: PathBuf) -> (PathBuf, Vec<std::ffi::OsString>) {
        let Some(network) = &self.network else { return (path, Vec::new()) };
        (program("nsenter", "util-linux"), vec![format!("--net={}", network.display()).into(), path.into()])
    }
}

impl Island {
    /// Makes one.
    ///
    /// # Panics
    ///
    /// The network of this process has addresses already, which could collide with those of the island. Start it with
    /// `unshare --net`, as root.
    #[must_use]
    pub fn new() -> Self {
        let taken = ip(&["-oneline", "address", "show", "scope", "global"]);
        assert!(taken.is_empty(), "an island needs an empty network: start this as root with `unshare --net`\n{taken}");
        let own = std::fs::read_link("/proc/self/ns/net").expect("the system tells of its networks");
        let folder = Folder::new("island", None);
        let recipe = Recipe {
            program: program("unshare", "util-linux"),
            args: ["--net", "sleep", "infinity"].map(Into::into).into(),
            dir: folder.path().to_owned(),
            account: None,
        };
        let apart = |pid: i32| std::fs::read_link(network_of(pid)).is_ok_and(|there| there != own).then_some(());
        let holder = Process::start(recipe, apart).unwrap_or_else(|log| panic!("no network was made:\n{log}"));
        let island = Self { holder, _folder: folder };
        let pid = island.pid().as_raw_nonzero().get().to_string();
        ip(&["link", "set", "lo", "up"]);
        island.ip(&["link", "set", "lo", "up"]);
        for (name, here, there) in [PEERS, CLIENTS] {
            ip(&["link", "add", name, "type", "veth", "peer", "name", name, "netns", &pid]);
            ip(&["address", "add", &format!("{here}/30"), "dev", name]);
            ip(&["link", "set", name, "up"]);
            island.ip(&["address", "add", &format!("{there}/30"), "dev", name]);
            island.ip(&["link", "set", name, "up"]);
        }
        island
    }

    /// Servers here and there do not hear each other from now on.
    pub fn cut(&self) {
        self.ip(&["link", "set", PEERS.0, "down"]);
    }

    /// They do again.
    pub fn mend(&self) {
        self.ip(&["link", "set", PEERS.0, "up"]);
    }

    /// Where a server on the island listens.
    pub(crate) fn there(&self) -> Site {
        Site { peers: PEERS.2, clients: CLIENTS.2, network: Some(self.network()) }
    }

    /// Where a server listens that those on the island know.
    pub(crate) fn here() -> Site {
        Site { peers: PEERS.1, clients: Ipv4Addr::LOCALHOST, network: None }
    }

    fn pid(&self) -> Pid {
        self.holder.pid().expect("what keeps the network has not ended")
    }

    fn network(&self) -> PathBuf {
        network_of(self.pid().as_raw_nonzero().get())
    }

    fn ip(&self, args: &[&str]) {
        let network = format!("--net={}", self.network().display());
        let ip = program("ip", "iproute2");
        run(&program("nsenter", "util-linux"), [network.as_ref(), ip.as_os_str()].into_iter().chain(texts(args)));
    }
}

impl Default for Island {
    fn default() -> Self {
        Self::new()
    }
}

fn network_of(pid: i32) -> PathBuf {
    format!("/proc/{pid}/ns/net").into()
}

fn ip(args: &[&str]) -> String {
    run(&program("ip", "iproute2"), texts(args))
}

fn texts<'a>(args: &'a [&str]) -> impl Iterator<Item = &'a std::ffi::OsStr> {
    args.iter().map(AsRef::as_ref)
}

fn run<'a>(program: &Path, args: impl Iterator<Item = &'a std::ffi::OsStr>) -> String {
    let mut command = tool(program, None);
    command.args(args);
    ask(command, PATIENCE).result().unwrap_or_else(|said| panic!("the network cannot be changed:\n{said}"))
}
