use super::{Drill, Written};
use tenure_servers::Etcd;

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
