use super::apart::is_apart;
use super::{Drill, Written};
use tenure_servers::{Etcd, Island};

const NEW: &str = "?create=true&max_ttl=3s";

/// The member that leads is stopped, and the holder knows no other. It stops at its own deadline; another worker asks the
/// members that are left.
#[test]
fn the_member_that_leads_is_stopped() {
    let mut drill = Drill::new("etcd-leader", "etcd: the leader is stopped, and the holder knows no other member");
    let cluster = Etcd::cluster();
    let leader = cluster.leader();
    drop(drill.worker("setup", &format!("{}{NEW}", cluster.url())));
    let mut alice = drill.worker("alice", &format!("etcd://{}", cluster.endpoints()[leader]));
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    cluster.pause(leader);
    drill.tell("the leader is stopped");
    let mut bob = drill.worker("bob", &cluster.url());
    drill.takes(&mut bob);
    drill.loses(&alice);
    cluster.resume(leader);
    drill.tell("the old leader goes on");
    drill.ends(alice, bob, &cluster.url());
}

/// The member that leads is cut off from the two others, and its client still reaches it. It cannot renew alone: the holder
/// stops at its own deadline, and another worker asks the two.
#[test]
fn a_member_is_cut_off() {
    if !is_apart("drills::etcd::a_member_is_cut_off", &["--net"]) {
        return;
    }
    let mut drill = Drill::new("etcd-partition", "etcd: the leader is cut off with the holder");
    let island = Island::new();
    let cluster = Etcd::cluster_with(&island);
    drop(drill.worker("setup", &format!("{}{NEW}", cluster.url())));
    let mut alice = drill.worker("alice", &format!("etcd://{}", cluster.endpoints()[0]));
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    island.cut();
    drill.tell("the leader is cut off from the other members; alice still reaches it");
    let mut bob = drill.worker("bob", &cluster.url());
    drill.takes(&mut bob);
    drill.loses(&alice);
    assert!(matches!(drill.writes(&mut bob), Written::Accepted));
    island.mend();
    let has_followed = || cluster.try_ctl(&["endpoint", "health", "--cluster"]).ok();
    tenure_servers::eventually("the member has come back", has_followed);
    drill.tell("the members reach each other again, and the old leader follows");
    drill.ends(alice, bob, &cluster.url());
}

/// A snapshot is put back that does not know the newest grant: the revision runs backwards, and the cluster has the same
/// id as before.
#[test]
fn a_snapshot_is_restored() {
    restored("etcd-restored", "etcd: a snapshot is put back that lacks the last grant", 0);
}

/// The same, and the operator has raised the revision above all that was ever given.
#[test]
fn a_snapshot_is_restored_with_a_higher_revision() {
    restored("etcd-bumped", "etcd: a snapshot is put back, and its revision raised by hand", 2_000);
}

fn restored(slug: &'static str, title: &'static str, bump: u64) {
    let mut drill = Drill::new(slug, title);
    let server = Etcd::start();
    let url = format!("{}{NEW}", server.url());
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    alice.release();
    let snapshot = drill.path("snapshot");
    server.snapshot_save(&snapshot);
    drill.tell("alice has released it, and a snapshot is made");
    let mut carol = drill.worker("carol", &url);
    drill.takes(&mut carol);
    assert!(matches!(drill.writes(&mut carol), Written::Accepted));
    server.snapshot_restore(&snapshot);
    drill.tell("the snapshot is put back");
    if bump > 0 {
        server.advance(bump);
        drill.tell("its revision is raised");
    }
    let mut bob = drill.worker("bob", &url);
    drill.takes(&mut bob);
    assert!(bob.token().epoch > carol.token().epoch);
    drill.loses(&carol);
    drill.ends(carol, bob, &url);
}
