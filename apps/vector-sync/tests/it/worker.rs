//! A round in a process of its own, to be stopped, woken and killed.

use crate::site::{Said, Site, outcome};
use serde_json::Value;
use std::io::Read;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

/// A worker. It is killed with this value.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
}

impl Worker {
    /// Starts a round of a tenant, with this in its environment.
    pub(crate) fn start(site: &Site, tenant: &str, more: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut words = site.sync(tenant);
        words.extend(more.iter().map(|word| (*word).to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = site.command(&words);
        command.envs(environment.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Read at once: a worker that fills a pipe would wait for ever.
        let (out, err) = (child.stdout.take().map(read), child.stderr.take().map(read));
        Self { child, out, err }
    }

    /// Waits until it stops itself at its point.
    pub(crate) fn is_stopped(&mut self) {
        let stat = format!("/proc/{}/stat", self.child.id());
        tenure_servers::eventually("the worker stops at its point", || {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended: {:?}", self.said());
            let stat = std::fs::read_to_string(&stat).unwrap();
            stat.rsplit_once(") ").unwrap().1.starts_with('T').then_some(())
        });
    }

    /// Lets it go on.
    pub(crate) fn wake(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn said(&mut self) -> Said {
        let status = self.child.wait().unwrap().code().unwrap_or(-1);
        let text = |thread: Option<JoinHandle<String>>| thread.map(|thread| thread.join().unwrap()).unwrap_or_default();
        Said { status, out: text(self.out.take()), err: text(self.err.take()) }
    }

    /// Waits for its end: its status, and how its round ended, if it says so.
    pub(crate) fn ends(mut self) -> (Said, Option<Value>) {
        let said = self.said();
        let outcome = outcome(&said.out);
        (said, outcome)
    }
}

fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    })
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
