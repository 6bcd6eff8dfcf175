//! etcd: one node or a cluster.

mod member;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::OnceLock;

use rustix::process::Signal;

use crate::http::Connection;
use crate::installed::program;
use crate::island::{Island, Site};
use crate::patience::{PATIENCE, eventually};
use crate::ports::on_free_ports;
use crate::process::{ask, tool};
#[cfg(doc)]
use crate::tls::Certificates;
use member::{Member, Status};

/// An etcd cluster, often of one member. Members are numbered from 0.
#[derive(Debug)]
pub struct Etcd {
    members: Vec<Member>,
}

impl Etcd {
    /// Starts one node.
    #[must_use]
    pub fn start() -> Self {
        on_free_ports("etcd", |ports: [u16; 2]| Self::run(&ports))
    }

    /// Starts one node that also speaks TLS: see [`tls_url`](Self::tls_url).
    #[must_use]
    pub fn with_tls() -> Self {
        on_free_ports("etcd", |[port, peer, tls]: [u16; 3]| {
            let member = Member::new(0, port, peer, Site::usual());
            Self { members: vec![member.speaking_tls(tls)] }.started()
        })
    }

    /// Starts a cluster of three. A member that is gone is noticed within half a second or so.
    #[must_use]
    pub fn cluster() -> Self {
        on_free_ports("a cluster of etcd", |ports: [u16; 6]| Self::run(&ports))
    }

    /// As [`cluster`](Self::cluster), with member 0 on an island: it can be cut off from the other two, and its clients
    /// still reach it. It leads.
    #[must_use]
    pub fn cluster_with(island: &Island) -> Self {
        let sites = [island.there(), Island::here(), Island::here()];
        let cluster = on_free_ports("a cluster of etcd", |ports: [u16; 6]| Self::run_at(&ports, &sites));
        cluster.lead(0);
        cluster
    }

    /// The node that all tests of this process share. Keep to keys of your own, and do not harm it.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Etcd> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn run(ports: &[u16]) -> Result<Self, String> {
        Self::run_at(ports, &vec![Site::usual(); ports.len() / 2])
    }

    fn run_at(ports: &[u16], sites: &[Site]) -> Result<Self, String> {
        let members: Vec<Member> = ports
            .chunks_exact(2)
            .zip(sites)
            .enumerate()
            .map(|(n, (ports, site))| Member::new(n, ports[0], ports[1], site.clone()))
            .collect();
        Self { members }.started()
    }

    fn started(self) -> Result<Self, String> {
        // No member answers before a majority runs.
        self.launch();
        for member in &self.members {
            member.wait()?;
        }
        Ok(self)
    }

    fn launch(&self) {
        let all = self.initial_cluster();
        for member in &self.members {
            member.launch(&all, self.pace());
        }
    }

    /// Milliseconds between two signs of life. One alone waits for nobody; three on two busy cores need some time.
    fn pace(&self) -> u32 {
        if self.members.len() == 1 { 10 } else { 50 }
    }

    /// `name=peer address` of every member, as etcd wants to be told.
    fn initial_cluster(&self) -> String {
        let mut all = String::new();
        for member in &self.members {
            let comma = if all.is_empty() { "" } else { "," };
            let _ = write!(all, "{comma}{}={}", member.name, member.peer_url());
        }
        all
    }

    /// The address of each member: `127.0.0.1:port`, unless it is on an island.
    #[must_use]
    pub fn endpoints(&self) -> Vec<SocketAddr> {
        self.members.iter().map(Member::addr).collect()
    }

    /// `etcd://` with the addresses of all members.
    #[must_use]
    pub fn url(&self) -> String {
        let all: Vec<String> = self.endpoints().iter().map(ToString::to_string).collect();
        format!("etcd://{}", all.join(","))
    }

    /// `etcds://` with the addresses at which it speaks TLS. [`Certificates::shared`] vouches for it.
    #[must_use]
    pub fn tls_url(&self) -> String {
        let all: Vec<String> = self.members.iter().filter_map(Member::tls_addr).map(|addr| addr.to_string()).collect();
        assert!(!all.is_empty(), "this server does not speak TLS");
        format!("etcds://{}", all.join(","))
    }

    /// What `etcdctl` (API version 3) says to a command, such as `["get", "key"]`, asking all members that run; it
    /// panics when the command fails.
    #[expect(clippy::must_use_candidate, reason = "a command that writes says nothing of use")]
    pub fn ctl(&self, args: &[&str]) -> String {
        self.try_ctl(args).unwrap_or_else(|said| panic!("`{}` failed: {said}\n{}", args.join(" "), self.log(0)))
    }

    /// As [`ctl`](Self::ctl).
    ///
    /// # Errors
    ///
    /// What it said when the command failed.
    pub fn try_ctl(&self, args: &[&str]) -> Result<String, String> {
        let address = |member: &Member| member.addr().to_string();
        let running = self.members.iter().filter(|member| member.process().runs());
        let mut all: Vec<String> = running.map(address).collect();
        if all.is_empty() {
            // It would ask at its usual port, where a stranger may be.
            all = self.members.iter().map(address).collect();
        }
        etcdctl(&all, args)
    }

    /// The end of a member's log.
    #[must_use]
    pub fn log(&self, member: usize) -> String {
        self.members[member].process().log()
    }

    /// Kills a member. What it wrote stays.
    pub fn kill(&self, member: usize) {
        self.members[member].process().kill();
    }

    /// Stops a member in order.
    pub fn stop(&self, member: usize) {
        self.members[member].process().stop(Signal::TERM);
    }

    /// Stops a member's process where it is (SIGSTOP).
    pub fn pause(&self, member: usize) {
        self.members[member].process().pause();
    }

    /// Lets it go on.
    pub fn resume(&self, member: usize) {
        self.members[member].process().resume();
    }

    /// Starts a member again on its ports with its files, after an orderly stop when it still runs; it answers when
    /// this returns. A majority must be there.
    pub fn restart(&self, member: usize) {
        let (all, pace) = (self.initial_cluster(), self.pace());
        let member = &self.members[member];
        if member.process().runs() {
            member.process().stop(Signal::TERM);
        }
        member.launch(&all, pace);
        member.wait().unwrap_or_else(|log| panic!("a member did not start again:\n{log}"));
    }

    /// The member that leads: most of the cluster says so. Waits until there is one; a paused or killed one is none.
    #[must_use]
    pub fn leader(&self) -> usize {
        eventually("the cluster has one that leads", || {
            let said: Vec<Option<Status>> = self.members.iter().map(Member::status).collect();
            let majority = self.members.len() / 2 + 1;
            (0..self.members.len()).find(|&n| {
                let id = said[n].as_ref().map(|status| &status.member);
                let votes = said.iter().flatten().filter(|status| Some(&status.leading) == id);
                id.is_some() && votes.count() >= majority
            })
        })
    }

    /// Gives the lead to a member, and waits until it has it.
    pub fn lead(&self, member: usize) {
        eventually("the member leads", || {
            if self.leader() == member {
                return Some(());
            }
            let id: u64 = self.members[member].status()?.member.parse().ok()?;
            let _ = self.try_ctl(&["move-leader", &format!("{id:x}")]);
            None
        });
    }

    /// The revision that the first member that answers has reached.
    #[must_use]
    pub fn revision(&self) -> u64 {
        eventually("a member answers", || self.members.iter().find_map(Member::status)).revision
    }

    /// Raises the revision by at least `by`, by writing: the bump that an operator does by hand after a restore. One
    /// revision is one write, some thousands a second. Old revisions are compacted, so that a watch from one is refused.
    pub fn advance(&self, by: u64) {
        const WRITERS: u64 = 32;
        let addr = self.members[self.leader()].addr();
        std::thread::scope(|scope| {
            for n in 0..WRITERS {
                scope.spawn(move || write(addr, n, by.div_ceil(WRITERS).max(2)));
            }
        });
        self.ctl(&["compaction", &self.revision().to_string()]);
    }

    /// The cluster's id, as a member's answer spells it (decimal).
    #[must_use]
    pub fn cluster_id(&self) -> String {
        eventually("a member answers", || self.members.iter().find_map(Member::status)).cluster
    }

    /// Saves a snapshot to a file, as an operator would.
    pub fn snapshot_save(&self, path: &Path) {
        let first = self.members.iter().find(|member| member.process().runs()).expect("a member runs");
        // It takes one endpoint only.
        let path = path.to_str().expect("the path is text");
        let saved = etcdctl(&[first.addr().to_string()], &["snapshot", "save", path]);
        saved.unwrap_or_else(|said| panic!("no snapshot was saved:\n{said}"));
    }

    /// Kills all members, gives each the snapshot in a new data folder, and starts them on the same ports.
    ///
    /// The revision is again that of the snapshot, and numbers that were given out after it are given out again. The
    /// cluster's id is the same. [`advance`](Self::advance) is how to make up for it: etcd 3.4 has no bump of its own.
    pub fn snapshot_restore(&self, path: &Path) {
        let all = self.initial_cluster();
        for member in &self.members {
            member.process().kill();
            member.restore(path, &all);
        }
        self.launch();
        for member in &self.members {
            member.wait().unwrap_or_else(|log| panic!("a restored member did not start:\n{log}"));
        }
    }
}

/// Writes and removes a key, `revisions` times in all, over one connection.
fn write(addr: SocketAddr, n: u64, revisions: u64) {
    let mut connection = Connection::open(addr, PATIENCE).expect("the member answers");
    // Base 64, as the gateway wants it: "advance" and three characters more.
    let key = format!("YWR2YW5jZS{:02}", n % 100);
    let write = format!(r#"{{"key":"{key}"}}"#);
    for left in (1..=revisions).rev() {
        let path = if left == 1 && revisions > 1 { "/v3/kv/deleterange" } else { "/v3/kv/put" };
        let said = connection.post(path, &write).expect("the member answers");
        assert!(said.contains("revision"), "not written: {said}");
    }
}

fn etcdctl(endpoints: &[String], args: &[&str]) -> Result<String, String> {
    let mut command = tool(&program("etcdctl", "etcd-client"), None);
    command.arg(format!("--endpoints={}", endpoints.join(","))).args(args).env("ETCDCTL_API", "3");
    ask(command, PATIENCE).result()
}
