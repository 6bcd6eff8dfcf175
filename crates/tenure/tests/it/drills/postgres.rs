use super::{Drill, TTL, Written};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use tenure_servers::{PgBouncer, Postgres, Proxy, eventually};

/// What a new store is made with: a quarantine lasts as long as the longest ttl.
const NEW: &str = "?create=true&max_ttl=3s";

/// A primary with an address that leads to whoever is the primary, and a standby that has the store.
struct Pair {
    primary: Postgres,
    standby: Postgres,
    address: Proxy,
    url: String,
}

impl Pair {
    fn start(drill: &mut Drill) -> Self {
        let primary = Postgres::start();
        let address = Proxy::to(primary.port());
        let url = format!("{}{NEW}", address.url(&primary.database()));
        // Makes the store, so that the standby has it.
        drop(drill.worker("setup", &url));
        let standby = primary.standby();
        primary.wait_for(&standby);
        Self { primary, standby, address, url }
    }

    fn fail_over(&self, drill: &mut Drill) {
        self.address.cut();
        self.primary.kill();
        self.standby.promote();
        self.address.lead_to(self.standby.port());
        self.address.heal();
        drill.tell("the primary is killed, the standby is promoted, and the address leads to it");
    }
}

/// An asynchronous standby is promoted that never heard of the newest grant. The same epoch is granted a second time; the
/// sealed receiver has the first one, so it is a conflict there, and the next epoch lies above both.
#[test]
fn a_standby_is_promoted_without_the_last_grant() {
    let mut drill = Drill::new("postgres-standby", "PostgreSQL: a standby is promoted without the last grant");
    let pair = Pair::start(&mut drill);
    let mut alice = drill.worker("alice", &pair.url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    alice.release();
    pair.primary.wait_for(&pair.standby);
    drill.tell("alice has released it; the standby has seen that, and sees nothing more");
    pair.standby.cut_link();
    let mut carol = drill.worker("carol", &pair.url);
    drill.takes(&mut carol);
    assert!(matches!(drill.writes(&mut carol), Written::Accepted));
    pair.fail_over(&mut drill);
    let mut bob = drill.worker("bob", &pair.url);
    drill.takes(&mut bob);
    assert!(bob.token().epoch > carol.token().epoch);
    drill.loses(&carol);
    drill.ends(carol, bob, &pair.url);
}

/// Two standbys are promoted apart: both have the same system identifier and the same new timeline, and each has an
/// operator who believes that it is the primary. Only the receiver tells the grants apart.
#[test]
fn two_standbys_are_promoted_apart() {
    let mut drill = Drill::new("postgres-two-standbys", "PostgreSQL: two standbys are promoted apart");
    let Pair { primary, standby: left, url, address: _address } = Pair::start(&mut drill);
    let right = primary.standby();
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    alice.release();
    primary.wait_for(&left);
    primary.wait_for(&right);
    primary.kill();
    left.promote();
    right.promote();
    drill.tell("the primary is killed, and both standbys are promoted");
    let at = |server: &Postgres| url.replacen(&port_of(&url), &server.port().to_string(), 1);
    let (left_url, right_url) = (at(&left), at(&right));
    let mut bob = drill.worker("bob", &left_url);
    drill.tell("bob asks the one");
    drill.takes(&mut bob);
    assert!(matches!(drill.writes(&mut bob), Written::Accepted));
    let mut carol = drill.worker("carol", &right_url);
    drill.tell("carol asks the other");
    drill.takes(&mut carol);
    assert!(carol.token().epoch > bob.token().epoch, "the receiver showed it bob's grant");
    assert!(matches!(drill.writes(&mut carol), Written::Accepted));
    assert!(!matches!(drill.writes(&mut bob), Written::Accepted), "its own authority still names it");
    drill.loses(&bob);
    drill.ends(bob, carol, &right_url);
}

/// The server is killed in the midst of requests and stays away for longer than a ttl. Nothing that it has answered is
/// gone; what it has not answered is asked again.
#[test]
fn a_server_is_killed_and_comes_back() {
    let mut drill = Drill::new("postgres-restart", "PostgreSQL: the server is killed in the midst of requests");
    let server = Postgres::start();
    let url = format!("{}{NEW}", server.database());
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    let rival = drill.worker("rival", &url);
    // Somebody asks all the time, so that the kill meets a transaction.
    let busy = rival.busy();
    server.kill();
    drill.tell("the server is killed");
    drill.loses(&alice);
    busy.end();
    server.restart();
    drill.tell("the server is back");
    let mut bob = drill.worker("bob", &url);
    drill.takes(&mut bob);
    assert_eq!(bob.token().epoch.get(), alice.token().epoch.get() + 1, "nothing was lost");
    drill.ends(alice, bob, &url);
}

/// Somebody has left a `psql` open that has locked the records of the holder. The renewal cannot be made: the holder stops at
/// its own deadline, and the refusal names the process in the way.
#[test]
fn a_forgotten_transaction_locks_the_records() {
    let mut drill = Drill::new("postgres-idle", "PostgreSQL: a forgotten transaction locks the holder's records");
    let server = Postgres::start();
    let url = format!("{}{NEW}", server.database());
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    let plain = url.split('?').next().unwrap();
    let forgotten = Forgotten::holding(plain, "SELECT 1 FROM tenure.session, tenure.lease FOR UPDATE");
    drill.tell("somebody's psql has locked the records and is idle in its transaction");
    drill.loses(&alice);
    let mut bob = drill.worker("bob", &url);
    let told = bob.take(TTL * 3, |_| ()).expect_err("her session cannot be ended").to_string();
    drill.tell(format_args!("bob is told: {told}"));
    drop(forgotten);
    drill.tell("the psql is ended");
    drill.takes(&mut bob);
    drill.ends(alice, bob, &url);
}

/// Everything goes through a pooler that gives each transaction another connection.
#[test]
fn a_pooler_stands_between() {
    let mut drill = Drill::new("postgres-pooler", "PostgreSQL: through PgBouncer in transaction mode, restarted");
    let server = Postgres::start();
    let pooler = PgBouncer::start(&server);
    let url = format!("{}{NEW}", pooler.url_of(&server.database()));
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    pooler.restart();
    drill.tell("the pooler is restarted");
    eventually("alice has renewed since", || alice.checks().then_some(()));
    pooler.pause();
    drill.tell("the pooler is stopped");
    drill.loses(&alice);
    pooler.resume();
    let mut bob = drill.worker("bob", &url);
    drill.takes(&mut bob);
    drill.ends(alice, bob, &url);
}

/// A `psql` that is left open within a transaction. It ends when it is dropped.
struct Forgotten(Child);

impl Forgotten {
    fn holding(url: &str, sql: &str) -> Self {
        let mut psql = Command::new("psql")
            .args(["-XAtq", "-d", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = psql.stdin.as_mut().unwrap();
        writeln!(stdin, "BEGIN;\n{sql};").unwrap();
        stdin.flush().unwrap();
        let idle = "select count(*) from pg_stat_activity where state = 'idle in transaction'";
        let waits = || (tenure_servers::postgres::psql(url, idle).as_deref() == Ok("1")).then_some(());
        eventually("the transaction is open", waits);
        Self(psql)
    }
}

impl Drop for Forgotten {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn port_of(url: &str) -> String {
    let after = url.rsplit_once(':').unwrap().1;
    after.chars().take_while(char::is_ascii_digit).collect()
}
