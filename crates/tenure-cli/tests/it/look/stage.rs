//! A real store in a temporary folder, workers that hold what the tests look at, and the command beside it.

use crate::rig::until;
use crate::site::{program, stderr};
use regex::Regex;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;
use tempfile::TempDir;
use tenure::Outcome;
use tenure::authority::{Authority, Clock};
use tenure::blocking::wait_for;
use tenure::core::decide::{Keys, Refusal, Reply, Request};
use tenure::core::record::{Owner, Seen};
use tenure::core::{
    Actor, Generation, GrantId, InstanceId, OwnerName, Reason, ResourceName, SessionId, SinkId, Token, Ttl,
};

pub(crate) const DAY: Duration = Duration::from_hours(24);

/// A folder with a store.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) authority: Authority,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}?create=true", folder.path().join("tenure.db").display());
        let store = tenure::authority::connect(&url, Clock::from_env().unwrap()).unwrap();
        Self { folder, authority: Authority::new(store) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn url(&self) -> String {
        format!("sqlite:{}", self.path("tenure.db").display())
    }

    /// The command, in an environment that holds nothing of the machine's.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(env!("CARGO_BIN_EXE_tenure"), self.folder.path());
        command.args(args).env("TZ", "UTC").env("COLUMNS", "140").env("TENURE_AUTHORITY", self.url());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the command can be started")
    }

    /// What the command writes when all is well.
    pub(crate) fn shows(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Opens the n-th session; it is never renewed.
    pub(crate) fn worker(&self, n: u64, name: &str, ttl: Duration) -> Worker<'_> {
        let id = SessionId::from_bits(0xaaaa << 64 | u128::from(n));
        let now = wait_for(self.authority.store().read(&Keys::default())).unwrap().now;
        let owner = Owner {
            name: OwnerName::new(name).unwrap(),
            instance: InstanceId::from_bits(0xbbbb << 64 | u128::from(n)),
        };
        let ttl = Ttl::new(ttl).unwrap();
        let seen = Seen::default();
        self.ask(&Request::Open { id, owner, on_this_host: false, ttl, asked_at: now, seen }).unwrap();
        Worker { stage: self, session: id, n }
    }

    pub(crate) fn ask(&self, request: &Request) -> Result<Reply, Refusal> {
        wait_for(self.authority.execute(request)).unwrap()
    }

    pub(crate) fn revoke(&self, resource: &str, why: &str) {
        let (actor, reason) = (Actor::new("operator@desk").unwrap(), Reason::new(why).unwrap());
        self.ask(&Request::Revoke { resource: name(resource), only: None, actor, reason }).unwrap();
    }

    pub(crate) fn retire(&self, resource: &str) {
        let actor = Actor::new("operator@desk").unwrap();
        self.ask(&Request::Retire { resource: name(resource), actor }).unwrap();
    }
}

/// Whoever holds something.
pub(crate) struct Worker<'stage> {
    stage: &'stage Stage,
    session: SessionId,
    n: u64,
}

impl Worker<'_> {
    /// The grant's id follows from the worker and the resource.
    pub(crate) fn acquire(&self, resource: &str, sinks: &[&str]) -> Token {
        let letters = resource.bytes().fold(0_u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(u64::from(byte)));
        let request = Request::Acquire {
            resource: name(resource),
            grant: GrantId::from_bits(u128::from(self.n) << 64 | u128::from(letters)),
            session: self.session,
            sinks: sinks.iter().map(|id| SinkId::new(id).unwrap()).collect(),
        };
        match self.stage.ask(&request) {
            Ok(Reply::Granted(granted)) => granted.token,
            other => panic!("{resource}: {other:?}"),
        }
    }

    /// Registers the grant at some of its receivers.
    pub(crate) fn seal(&self, token: &Token, sinks: &[&str]) {
        let generations =
            sinks.iter().map(|id| (SinkId::new(id).unwrap(), Generation::new(format!("{id}-1")).unwrap()));
        let generations: std::collections::BTreeMap<_, _> = generations.collect();
        let (token, session) = (token.clone(), self.session);
        self.stage.ask(&Request::Bind { token: token.clone(), session, generations: generations.clone() }).unwrap();
        self.stage.ask(&Request::Sealed { token, generations }).unwrap();
    }

    pub(crate) fn announce(&self, token: &Token) {
        let (token, session, excused) = (token.clone(), self.session, BTreeSet::new());
        self.stage.ask(&Request::Announce { token, session, excused }).unwrap();
    }

    pub(crate) fn release(&self, token: &Token) {
        self.stage.ask(&Request::Release { token: token.clone() }).unwrap();
    }

    pub(crate) fn complete(&self, token: &Token, outcome: &str) {
        let (token, session, outcome) = (token.clone(), self.session, Outcome::new(outcome).unwrap());
        self.stage.ask(&Request::Complete { token, session, outcome }).unwrap();
    }
}

/// A resource in each state. `lost` was held by two one after the other, whose sessions ended by their deadlines.
pub(crate) fn all_states() -> Stage {
    let stage = Stage::new();
    // Long enough for an opening and a grant on a busy machine.
    let short = Duration::from_millis(500);
    stage.worker(1, "carol@web3/77", short).acquire("lost", &[]);
    until("it is taken over once its deadline has passed", || stage.take_over_lost(2, short));
    until("and lost again", || stage.json(&["ls", "lost", "--expired", "--json"])["resources"][0]["epoch"] == 2);
    let alice = stage.worker(3, "alice@web1/4711", DAY);
    alice.release(&alice.acquire("free", &[]));
    let token = alice.acquire("index/tenant-7", &["documents", "file:/srv/out"]);
    alice.seal(&token, &["documents", "file:/srv/out"]);
    alice.announce(&token);
    let token = alice.acquire("index/tenant-8", &["documents", "file:/srv/out"]);
    alice.seal(&token, &["documents"]);
    alice.complete(&alice.acquire("report", &[]), "7 files");
    alice.release(&alice.acquire("old", &["documents"]));
    stage.retire("old");
    alice.release(&alice.acquire("older", &[]));
    stage.retire("older");
    alice.acquire("nightly", &[]);
    stage.revoke("nightly", "its host was taken out of the rack");
    let bob = stage.worker(4, "bob@web2", DAY);
    bob.acquire("nightly", &[]);
    stage
}

impl Stage {
    /// Takes `lost` over once its holder's deadline has passed.
    fn take_over_lost(&self, n: u64, ttl: Duration) -> bool {
        let read = wait_for(self.authority.inspect(&name("lost"))).unwrap();
        let overdue = read.view.holder.as_ref().is_some_and(|holder| read.now.reached(&holder.deadline));
        if overdue {
            assert_eq!(self.worker(n, "carol@web3/78", ttl).acquire("lost", &[]).epoch.get(), 2);
        }
        overdue
    }
}

pub(crate) fn name(resource: &str) -> ResourceName {
    ResourceName::new(resource).unwrap()
}

/// What differs from run to run is put out: times, spans, the store's own id. Runs of spaces and of bars become one, since
/// their length depends on it.
pub(crate) fn redacted(text: &str) -> String {
    let rules = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "<time>"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?|\b\d\d:\d\d:\d\d\b", "<time>"),
        (r"sqlite:[0-9a-f]{32}", "<store>"),
        (r#""([a-z_]+_(?:ms|ns))":\d+"#, "\"$1\":<n>"),
        (r"\b(\d+ d \d+ h|\d+ h \d+ min|\d+ min \d+ s|\d+(\.\d+)? s|\d+ ms)\b", "<span>"),
        (r" {2,}", "  "),
        (r"[█░]+", "<bar>"),
    ];
    let rule = |text: String, (from, to): (&str, &str)| Regex::new(from).unwrap().replace_all(&text, to).into_owned();
    rules.into_iter().fold(text.to_owned(), rule)
}
