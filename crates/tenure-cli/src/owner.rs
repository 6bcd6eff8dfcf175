//! Who asks, as people read it: `name@host`, and for one run of a command `name@host/pid`.

use crate::run::tree::Process;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fmt;

/// A name and a host, perhaps with the process that holds. The protocol does not look into it: it only lets a refusal say
/// who and where, and lets a run that is started again know its predecessor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// `name@host`.
    pub(crate) place: String,
    /// The process at that place.
    pub(crate) pid: Option<u32>,
}

impl Who {
    /// This user on this host, or `name` on this host. A name with an `@` says its own place; the process number of an
    /// outer run is dropped.
    pub(crate) fn here(name: Option<&str>) -> Self {
        let place = match name.map(|name| Self::parse(name).place) {
            Some(place) if place.contains('@') => place,
            Some(name) => format!("{name}@{}", host()),
            None => format!("{}@{}", user(), host()),
        };
        Self { place, pid: None }
    }

    /// The same for this process. In a namespace of its own its number means nothing to others, and is left out.
    pub(crate) fn process(self) -> Self {
        Self { pid: sees_the_hosts_processes().then(std::process::id), ..self }
    }

    /// Reads what an owner's name says.
    pub(crate) fn parse(name: &str) -> Self {
        let pid = name.rsplit_once('/').and_then(|(place, pid)| Some((place, pid.parse().ok()?)));
        match pid {
            Some((place, pid)) => Self { place: place.to_owned(), pid: Some(pid) },
            None => Self { place: name.to_owned(), pid: None },
        }
    }

    /// Whether it names this host, so that its process can be looked for here.
    pub(crate) fn is_on_this_host(&self) -> bool {
        self.place.rsplit_once('@').is_some_and(|(_, there)| there == host())
    }

    /// Whether its process is there; `None` when that cannot be known from here.
    pub(crate) fn is_running(&self) -> Option<bool> {
        let pid = self.pid.filter(|_| self.is_on_this_host() && sees_the_hosts_processes())?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        // Asked of the system, since /proc may hide what belongs to others; but the system also knows the dead whom nobody
        // has buried yet.
        let is_there = matches!(pid.map(test_kill_process), Some(Ok(()) | Err(Errno::PERM)));
        Some(is_there && pid.and_then(Process::read).is_none_or(|process| process.is_alive()))
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        self.pid.map_or(Ok(()), |pid| write!(f, "/{pid}"))
    }
}

/// Whether numbers of processes are those of the host, and not of a container.
fn sees_the_hosts_processes() -> bool {
    // PROC_PID_INIT_INO of the kernel's proc_ns.h: the first namespace has this number on every machine.
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|name| name.as_os_str() == "pid:[4026531836]")
}

/// This machine's name, as in its prompt.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    printable(name).unwrap_or_else(|| "localhost".to_owned())
}

fn user() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok());
    name.and_then(printable).unwrap_or_else(|| match rustix::process::getuid() {
        uid if uid.is_root() => "root".to_owned(),
        uid => format!("uid-{}", uid.as_raw()),
    })
}

fn printable(name: String) -> Option<String> {
    (!name.is_empty() && !name.chars().any(char::is_control)).then_some(name)
}

#[cfg(test)]
mod tests;
