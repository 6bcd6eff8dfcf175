//! One small shell beside the test process, which ends every server when the test process ends, however it ends.
//!
//! A parent-death signal would not do: it comes when the *thread* that started the server ends. A destructor would not
//! do either: statics have none that runs, and a killed process runs none.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The keeper of this process.
pub(crate) struct Keeper {
    root: PathBuf,
    pipe: Mutex<ChildStdin>,
    /// Never waited for: it outlives this process.
    _shell: Child,
}

/// The keeper of this process; it is started when it is first asked for.
pub(crate) fn keeper() -> &'static Keeper {
    static KEEPER: OnceLock<Keeper> = OnceLock::new();
    KEEPER.get_or_init(Keeper::start)
}

impl Keeper {
    fn start() -> Self {
        let root = tempfile::Builder::new().prefix("tenure-servers-").tempdir().expect("a temporary folder").keep();
        // PostgreSQL runs as another user, who must get through to a folder of its own.
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o711)).expect("the folder is ours");
        let script = root.join("keeper.sh");
        std::fs::write(&script, include_str!("keeper.sh")).expect("the folder is ours");
        let mut shell = Command::new("sh")
            .args([&script, &root])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // Neither a key that interrupts the test nor a runner that ends the test's whole group ends the keeper.
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("`sh` did not start: {error}"));
        let pipe = shell.stdin.take().expect("stdin was asked for");
        Self { root, pipe: Mutex::new(pipe), _shell: shell }
    }

    /// The folder of all servers of this process.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A command that tells the keeper its process id before it becomes `program`: no instant lies between.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner).as_fd().try_clone_to_owned();
        let pipe: OwnedFd = pipe.expect("a file can be opened");
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"echo "pid $$" >&0 && exec "$@" </dev/null"#, "tenure-servers"])
            .arg(program)
            .stdin(pipe)
            .process_group(0);
        // What a person has set for servers and tools of this kind is not meant for the tests.
        for (name, _) in std::env::vars_os() {
            if ["PG", "ETCD", "REDIS"].iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes())) {
                command.env_remove(name);
            }
        }
        command.env("HOME", &self.root);
        command
    }

    /// The process was waited for; its id may come to belong to another.
    pub(crate) fn gone(&self, pid: u32) {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a keeper nothing is left to be told.
        let _ = writeln!(pipe, "gone {pid}");
    }
}
