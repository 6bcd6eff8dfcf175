use tenure_servers::{Etcd, eventually};

#[test]
fn what_was_written_outlives_a_kill_and_a_stop() {
    let etcd = Etcd::start();
    etcd.ctl(&["put", "key", "1"]);
    etcd.kill(0);
    assert!(etcd.try_ctl(&["get", "key", "--command-timeout=300ms"]).is_err());
    etcd.restart(0);
    assert_eq!(etcd.ctl(&["get", "key", "--print-value-only"]), "1");
    etcd.stop(0);
    etcd.restart(0);
    assert_eq!(etcd.ctl(&["get", "key", "--print-value-only"]), "1");
}

/// Numbers that were given out after the snapshot are given out again after it is restored, under the same cluster id:
/// nothing that etcd says tells the two lives apart.
#[test]
fn a_restored_snapshot_runs_backwards_under_the_same_id() {
    let etcd = Etcd::start();
    let dir = tempfile::tempdir().unwrap();
    let snapshot = dir.path().join("snapshot");
    etcd.ctl(&["put", "key", "1"]);
    etcd.snapshot_save(&snapshot);
    let (revision, id) = (etcd.revision(), etcd.cluster_id());
    etcd.ctl(&["put", "key", "2"]);
    etcd.snapshot_restore(&snapshot);
    assert_eq!(etcd.ctl(&["get", "key", "--print-value-only"]), "1");
    assert_eq!((etcd.revision(), etcd.cluster_id()), (revision, id));
    etcd.advance(1000);
    assert!(etcd.revision() >= revision + 1000);
    assert_eq!(etcd.ctl(&["get", "--prefix", "", "--keys-only"]), "key");
    assert!(etcd.try_ctl(&["get", "key", "--rev", &(revision + 1).to_string()]).unwrap_err().contains("compacted"));
}

#[test]
fn a_cluster_goes_on_without_the_one_that_led() {
    let etcd = Etcd::cluster();
    assert_eq!(etcd.endpoints().len(), 3);
    etcd.ctl(&["put", "key", "1"]);
    let first = etcd.leader();
    etcd.pause(first);
    let second = eventually("another one leads", || Some(etcd.leader()).filter(|&now| now != first));
    etcd.resume(first);
    etcd.kill(second);
    let third = etcd.leader();
    assert_ne!(third, second);
    assert_eq!(etcd.ctl(&["get", "key", "--print-value-only"]), "1");
    etcd.restart(second);
}
