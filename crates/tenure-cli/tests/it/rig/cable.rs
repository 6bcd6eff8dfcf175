//! Two network namespaces with a cable between them that can be cut. The host's own network is not touched, and no address
//! of it can collide. When the cable is cut, nobody is told: packets are sent again and again, as TCP does.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

/// The cable, with its two ends.
pub(crate) struct Cable {
    near: Namespace,
    far: Namespace,
}

impl Cable {
    /// Lays one.
    ///
    /// Fails where that is not possible, and says with which command it becomes possible.
    #[track_caller]
    pub(crate) fn lay() -> Self {
        if !rustix::process::geteuid().is_root() {
            panic!("packets are dropped in network namespaces, which only root makes: sudo -E cargo xtask test");
        }
        if !runs("ip", "-V") || !runs("nsenter", "--version") {
            panic!("apt-get install --yes iproute2 util-linux");
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("tenure-{}-{number}-{end}", std::process::id());
        let (near, far) = (Namespace::add(name("near")), Namespace::add(name("far")));
        near.ip(&["link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", &far.0]);
        for (namespace, address) in [(&near, NEAR), (&far, FAR)] {
            namespace.ip(&["address", "add", &format!("{address}/30"), "dev", "cable"]);
            namespace.ip(&["link", "set", "cable", "up"]);
        }
        Self { near, far }
    }

    /// At its far end: what is sent from now on is lost, in both directions.
    pub(crate) fn cut(&self) {
        self.far.ip(&["link", "set", "cable", "down"]);
    }

    pub(crate) fn mend(&self) {
        self.far.ip(&["link", "set", "cable", "up"]);
    }

    /// Where the system lists both ends.
    pub(crate) fn paths(&self) -> [PathBuf; 2] {
        [self.near.path(), self.far.path()]
    }

    /// A program at the near end. Not by `ip netns exec`: that has mounts of its own.
    pub(crate) fn near(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.near.path().display())).arg(program);
        command
    }

    /// Listens at the far end. The thread that goes in does not come out again; what it opened there stays there.
    pub(crate) fn listen(&self) -> TcpListener {
        let path = self.far.path();
        let inside = move || {
            let namespace = File::open(path).unwrap();
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            TcpListener::bind((FAR, 0)).unwrap()
        };
        std::thread::spawn(inside).join().unwrap()
    }
}

/// Whether this program is here.
pub(crate) fn runs(tool: &str, version: &str) -> bool {
    let quiet = Command::new(tool).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// A network namespace; it is removed when this is dropped.
struct Namespace(String);

impl Namespace {
    fn add(name: String) -> Self {
        run(Command::new("ip").args(["netns", "add", &name]));
        Self(name)
    }

    fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.0)
    }

    #[track_caller]
    fn ip(&self, args: &[&str]) {
        run(Command::new("ip").args(["-netns", &self.0]).args(args));
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
