use super::{Drill, Written};
use std::time::Duration;
use tenure_servers::{Proxy, Redis, Sentinels, eventually};

/// A primary, a replica and three Sentinels.
struct Watched {
    primary: Redis,
    replica: Redis,
    sentinels: Sentinels,
    url: String,
}

impl Watched {
    fn start(drill: &mut Drill) -> Self {
        let primary = Redis::options().appendonly(true).appendfsync("always").start();
        let replica = primary.replica();
        let sentinels = Sentinels::start(3, &primary, 2, Duration::from_secs(1), Duration::from_secs(3));
        let all: Vec<_> = sentinels.addrs().iter().map(ToString::to_string).collect();
        let url = format!("redis+sentinel://{}/{}?create=true&max_ttl=3s", all.join(","), Sentinels::NAME);
        drop(drill.worker("setup", &url));
        primary.wait_for(1);
        Self { primary, replica, sentinels, url }
    }
}

/// The primary dies with a grant that never reached its replica. The same epoch is granted again; the sealed receiver has
/// the first one, so it is a conflict there, and never a second writer.
#[test]
fn the_primary_is_killed_with_the_last_grant() {
    let mut drill = Drill::new("redis-killed", "Redis: the primary is killed, and its replica lacks the last grant");
    let watched = Watched::start(&mut drill);
    let mut alice = drill.worker("alice", &watched.url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    alice.release();
    watched.primary.wait_for(1);
    watched.primary.leave_behind(&watched.replica);
    drill.tell("alice has released it; the replica has seen that, and sees nothing more");
    let mut carol = drill.worker("carol", &watched.url);
    drill.takes(&mut carol);
    assert!(matches!(drill.writes(&mut carol), Written::Accepted));
    let old = watched.sentinels.primary();
    watched.primary.kill();
    watched.replica.resume();
    drill.tell("the primary is killed");
    let new = watched.sentinels.wait_for_change(old);
    assert_eq!(new, watched.replica.addr());
    drill.tell("the Sentinels name the replica");
    let mut bob = drill.worker("bob", &watched.url);
    drill.takes(&mut bob);
    assert!(bob.token().epoch > carol.token().epoch);
    drill.loses(&carol);
    drill.ends(carol, bob, &watched.url);
}

/// The primary is stopped, another is named, and it wakes up: for some seconds it still acknowledges. Whoever asks it
/// directly gets the same epoch as the one that the new primary gave, and cannot seal it.
#[test]
fn the_primary_is_stopped_and_wakes_up() {
    let mut drill = Drill::new("redis-stopped", "Redis: the primary is stopped, replaced, and wakes up");
    let watched = Watched::start(&mut drill);
    let mut alice = drill.worker("alice", &watched.url);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    watched.primary.wait_for(1);
    // So that it is not made a replica as soon as it wakes up.
    let old = watched.sentinels.primary();
    watched.primary.pause();
    drill.tell("the primary is stopped");
    let new = watched.sentinels.wait_for_change(old);
    assert_eq!(new, watched.replica.addr());
    drill.tell("the Sentinels name the replica");
    let mut bob = drill.worker("bob", &watched.url);
    drill.takes(&mut bob);
    assert!(matches!(drill.writes(&mut bob), Written::Accepted));
    drill.loses(&alice);
    (0..3).for_each(|n| watched.sentinels.pause(n));
    watched.primary.resume();
    drill.tell("the old primary wakes up, and nobody has told it yet");
    let direct = format!("{}?max_ttl=3s", watched.primary.url());
    let mut dave = drill.worker("dave", &direct);
    let told = dave.take(Duration::ZERO, |_| ()).err().map(|error| error.to_string());
    drill.tell(format_args!("dave asks the old primary: {}", told.as_deref().unwrap_or("granted")));
    assert!(matches!(drill.writes(&mut bob), Written::Accepted) || dave.has_lease());
    drop(dave);
    (0..3).for_each(|n| watched.sentinels.resume(n));
    let demoted = || watched.primary.cli(&["role"]).starts_with("slave").then_some(());
    eventually("the old primary follows", demoted);
    drill.tell("the Sentinels have made it a replica");
    drill.ends(alice, bob, &watched.url);
}

/// The old primary is cut off from its replica and from the Sentinels, and a worker still reaches it. It goes on granting and
/// renewing, and nobody on its side can know better. On the other side the same epoch is granted again: the sealed receiver
/// tells the two apart.
#[test]
fn the_primary_is_cut_off_and_goes_on_acknowledging() {
    let title = "Redis: the primary is cut off with one worker, and goes on acknowledging";
    let mut drill = Drill::new("redis-partition", title);
    let primary = Redis::options().appendonly(true).appendfsync("always").start();
    // The replica and the Sentinels reach the primary through it, and nobody else does.
    let cable = Proxy::to(primary.port());
    let replica = Redis::options().appendonly(true).appendfsync("always").start();
    replica.cli(&["replicaof", "127.0.0.1", &cable.port().to_string()]);
    primary.wait_for(1);
    let (down_after, timeout) = (Duration::from_secs(1), Duration::from_secs(3));
    let sentinels = Sentinels::through(cable.port(), 3, &primary, 2, down_after, timeout);
    let all: Vec<_> = sentinels.addrs().iter().map(ToString::to_string).collect();
    let majority = format!("redis+sentinel://{}/{}?create=true&max_ttl=3s", all.join(","), Sentinels::NAME);
    let minority = format!("{}?max_ttl=3s", primary.url());
    let mut alice = drill.worker("alice", &majority);
    drill.takes(&mut alice);
    drill.writes(&mut alice);
    alice.release();
    drop(alice);
    primary.wait_for(1);
    let old = sentinels.primary();
    cable.freeze();
    drill.tell("alice has released it, and the primary is cut off");
    let mut carol = drill.worker("carol", &minority);
    drill.takes(&mut carol);
    assert!(matches!(drill.writes(&mut carol), Written::Accepted));
    assert_eq!(sentinels.wait_for_change(old), replica.addr());
    drill.tell("the Sentinels name the replica");
    let mut bob = drill.worker("bob", &majority);
    drill.takes(&mut bob);
    assert!(bob.token().epoch > carol.token().epoch);
    assert!(carol.lost().is_none() && carol.checks(), "the minority has heard of nothing");
    drill.tell("carol still believes: the old primary renews and affirms her grant");
    assert!(!matches!(drill.writes(&mut carol), Written::Accepted), "two writers");
    drill.loses(&carol);
    assert!(matches!(drill.writes(&mut bob), Written::Accepted));
    cable.heal();
    drill.tell("the primary is reached again");
    eventually("the old primary follows", || primary.cli(&["role"]).starts_with("slave").then_some(()));
    drill.tell("the Sentinels have made it a replica");
    drill.ends(carol, bob, &majority);
}
