use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tenure_servers::{Etcd, Postgres, Redis, eventually};

/// The command lines of the processes that run and name something, without those that only wait to be reaped.
fn that_name(what: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|each| std::fs::read(each.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| line.contains(what)).collect()
}

/// What is printed by a process that starts a server and waits.
fn start(server: &str, temp: &Path) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tenure-servers"))
        .arg(server)
        .env("TMPDIR", temp)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (child, url.trim_end().to_owned())
}

/// A folder that the user `postgres` may enter, and whose name is in every server's command line.
fn temp() -> (tempfile::TempDir, PathBuf) {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = dir.path().to_owned();
    (dir, path)
}

fn nothing_is_left(temp: &Path) {
    let name = temp.display().to_string();
    eventually("the servers' processes are gone", || that_name(&name).is_empty().then_some(()));
    eventually("the servers' files are gone", || std::fs::read_dir(temp).unwrap().next().is_none().then_some(()));
}

#[test]
fn a_server_that_is_dropped_leaves_no_process_and_no_file() {
    let (postgres, redis, etcd) = (Postgres::options().unsynced().start(), Redis::start(), Etcd::start());
    let places =
        [postgres.psql("show data_directory"), redis.cli(&["config", "get", "dir"]).lines().nth(1).unwrap().to_owned()];
    let endpoint = etcd.endpoints()[0].to_string();
    for place in &places {
        assert!(Path::new(place).exists());
    }
    assert!(!that_name(&places[0]).is_empty() && !that_name(&endpoint).is_empty());
    postgres.kill();
    redis.pause();
    drop((postgres, redis, etcd));
    for place in &places {
        assert!(that_name(place).is_empty() && !Path::new(place).exists(), "{place}");
    }
    assert!(that_name(&endpoint).is_empty());
}

/// A runner ends a test that takes too long with SIGKILL, and no destructor runs.
#[test]
fn a_killed_test_process_leaves_nothing() {
    for server in ["postgres", "redis", "etcd-cluster", "pgbouncer"] {
        let (_dir, temp) = temp();
        let (mut child, _) = start(server, &temp);
        assert!(!that_name(&temp.display().to_string()).is_empty(), "{server}");
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&temp);
    }
}

#[test]
fn shared_servers_end_with_the_test_process() {
    let (_dir, temp) = temp();
    let (mut child, _) = start("redis", &temp);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    nothing_is_left(&temp);
}
