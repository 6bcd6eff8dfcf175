//! Silence as a network makes it: the packets between a file and whoever writes it are lost.
//!
//! Two network namespaces with a cable between them. The far one offers a folder over SFTP, the near one mounts it. The host's
//! own network is not touched, and no address of it can collide. What the far end answers is real; when the cable is cut,
//! nobody is told, and the near end sends its packets again and again, as TCP does, for a quarter of an hour.
//!
//! A process that is inside a call to the file then cannot be ended at all, not even by SIGKILL, and its parent waits for it
//! in vain until the silence ends: that is what Linux does with a file system that does not answer. Mend the cable, or drop
//! the rig, before you wait for such a process. Reading may still be answered, from what this host remembers of the file.

use super::Rig;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A folder behind a cable that can be cut.
pub(crate) struct Dropped {
    // In the order in which they must go: nobody may be in the folder when it is removed.
    mount: Mount,
    near: Namespace,
    far: Namespace,
    dir: TempDir,
}

impl Dropped {
    /// Builds it.
    ///
    /// Fails where that is not possible, and says with which command it becomes possible.
    #[track_caller]
    pub(crate) fn start() -> Self {
        if let Some(missing) = missing() {
            panic!("{missing}");
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
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("near"), dir.path().join("far"));
        std::fs::create_dir(&here).unwrap();
        std::fs::create_dir(&there).unwrap();
        let mount = Mount::of(&there, here, &near, &far.listen());
        Self { mount, near, far, dir }
    }

    /// Cuts the cable at its far end: what is sent from now on is lost, in both directions.
    pub(crate) fn drop_packets(&mut self) {
        self.far.ip(&["link", "set", "cable", "down"]);
    }

    /// Whether anything of it is left in the system: of this one, when it has been dropped.
    pub(crate) fn traces(&self) -> impl Fn() -> Vec<String> + use<> {
        let (near, far, dir) = (self.near.path(), self.far.path(), self.dir.path().to_owned());
        let processes = [&self.mount.server, &self.mount.client].map(|child| format!("/proc/{}", child.id()));
        move || {
            let mut paths = vec![near.clone(), far.clone(), dir.clone()];
            paths.extend(processes.iter().map(PathBuf::from));
            let mut left: Vec<String> =
                paths.into_iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
            left.extend(mounted(&dir.join("near")));
            left
        }
    }
}

impl Rig for Dropped {
    fn path(&self) -> PathBuf {
        self.mount.here.join("authority.db")
    }

    fn silence(&mut self) {
        self.drop_packets();
    }

    fn mend(&mut self) {
        self.far.ip(&["link", "set", "cable", "up"]);
    }
}

/// What is missing here, with the one command that brings it.
fn missing() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        return Some("packets are dropped in network namespaces, which only root makes: sudo -E cargo xtask test");
    }
    let tools = [("ip", "-V"), ("sshfs", "--version"), ("fusermount3", "--version"), ("nsenter", "--version")];
    let runs = |(tool, version): (&str, &str)| {
        let quiet = Command::new(tool).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    };
    if !tools.into_iter().all(runs) || !Path::new(SERVER).exists() {
        return Some("apt-get install --yes iproute2 openssh-sftp-server sshfs");
    }
    let fuse = Path::new("/dev/fuse").exists();
    (!fuse).then_some("this kernel mounts no file system of a process, /dev/fuse is not there: modprobe fuse")
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

    /// Listens in there. The thread that goes in does not come out again; what it opened there stays there.
    fn listen(&self) -> TcpListener {
        let path = self.path();
        let inside = move || {
            let namespace = File::open(path).unwrap();
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            TcpListener::bind((FAR, 0)).unwrap()
        };
        std::thread::spawn(inside).join().unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.0]).status();
    }
}

/// A mounted folder, and the two processes that carry it. All is gone when this is dropped.
struct Mount {
    here: PathBuf,
    client: Child,
    server: Child,
}

impl Mount {
    fn of(there: &Path, here: PathBuf, near: &Namespace, listener: &TcpListener) -> Self {
        let port = listener.local_addr().unwrap().port();
        // Not `ip netns exec`: that has mounts of its own, and this one must be seen everywhere.
        let mut client = Command::new("nsenter");
        client.arg(format!("--net={}", near.path().display()));
        client.args(["sshfs", "-f", "-o", &format!("directport={port}")]);
        let client = client.arg(format!("{FAR}:{}", there.display())).arg(&here).stdin(Stdio::null()).spawn();
        let mut client = client.unwrap();
        let (connection, _) = listener.accept().unwrap();
        // The client does so for its own packets.
        connection.set_nodelay(true).unwrap();
        let connection = OwnedFd::from(connection);
        let server = Command::new(SERVER).stdin(connection.try_clone().unwrap()).stdout(connection).spawn();
        let mount = match server {
            Ok(server) => Self { here, client, server },
            Err(error) => {
                let _ = client.kill();
                let _ = client.wait();
                panic!("{SERVER} does not start: {error}");
            }
        };
        super::until("the folder is mounted", || mounted(&mount.here).is_some());
        mount
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Without its process the mount is dead, and whoever waited in it gets an error. Only asking it to unmount would wait
        // with them.
        for child in [&mut self.client, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = Command::new("fusermount3").args(["-u", "-z", "-q"]).arg(&self.here).status();
    }
}

/// The line of the system's table for what is mounted there.
fn mounted(path: &Path) -> Option<String> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let path = path.to_str().unwrap();
    table.lines().find(|line| line.split(' ').nth(4) == Some(path)).map(str::to_owned)
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
