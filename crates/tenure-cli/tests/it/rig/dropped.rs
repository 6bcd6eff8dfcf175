//! Silence as a network makes it: the packets between a file and whoever writes it are lost.
//!
//! Two network namespaces with a cable between them. The far one offers a folder over SFTP, the near one mounts it. The host's
//! own network is not touched, and no address of it can collide. What the far end answers is real; when the cable is cut,
//! nobody is told, and the near end sends its packets again and again, as TCP does, for a quarter of an hour.
//!
//! A process that is inside a call to the file then cannot be ended at all, not even by SIGKILL, and its parent waits for it
//! in vain until the silence ends: that is what Linux does with a file system that does not answer. Mend the cable, or drop
//! the rig, before you wait for such a process. Reading may still be answered, from what this host remembers of the file.

use super::cable::{Cable, FAR};
use super::{FileRig, Rig};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const SERVER: &str = "/usr/lib/openssh/sftp-server";

/// A folder behind a cable that can be cut.
pub(crate) struct Dropped {
    // In the order in which they must go: nobody may be in the folder when it is removed.
    mount: Mount,
    cable: Cable,
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
        let cable = Cable::lay();
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("near"), dir.path().join("far"));
        std::fs::create_dir(&here).unwrap();
        std::fs::create_dir(&there).unwrap();
        let mount = Mount::of(&there, here, &cable, &cable.listen());
        Self { mount, cable, dir }
    }

    /// Cuts the cable at its far end: what is sent from now on is lost, in both directions.
    pub(crate) fn drop_packets(&mut self) {
        self.cable.cut();
    }

    /// Whether anything of it is left in the system: of this one, when it has been dropped.
    pub(crate) fn traces(&self) -> impl Fn() -> Vec<String> + use<> {
        let ([near, far], dir) = (self.cable.paths(), self.dir.path().to_owned());
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

impl FileRig for Dropped {
    fn path(&self) -> PathBuf {
        self.mount.here.join("authority.db")
    }
}

impl Rig for Dropped {
    fn authority_url(&self) -> String {
        self.file_url()
    }

    fn silence(&mut self) {
        self.drop_packets();
    }

    fn mend(&mut self) {
        self.cable.mend();
    }
}

/// What is missing here beside what a cable needs, with the one command that brings it.
fn missing() -> Option<&'static str> {
    let tools = [("sshfs", "--version"), ("fusermount3", "--version")];
    let are_there = tools.into_iter().all(|(tool, version)| super::cable::runs(tool, version));
    if !are_there || !Path::new(SERVER).exists() {
        return Some("apt-get install --yes iproute2 openssh-sftp-server sshfs");
    }
    let fuse = Path::new("/dev/fuse").exists();
    (!fuse).then_some("this kernel mounts no file system of a process, /dev/fuse is not there: modprobe fuse")
}

/// A mounted folder, and the two processes that carry it. All is gone when this is dropped.
struct Mount {
    here: PathBuf,
    client: Child,
    server: Child,
}

impl Mount {
    fn of(there: &Path, here: PathBuf, cable: &Cable, listener: &TcpListener) -> Self {
        let port = listener.local_addr().unwrap().port();
        let mut client = cable.near("sshfs");
        client.args(["-f", "-o", &format!("directport={port}")]);
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
