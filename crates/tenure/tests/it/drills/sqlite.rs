use super::{Drill, Written};

/// An operator takes the resource away from a worker that goes on. Nothing is broken: what the other drills are measured
/// against.
#[test]
fn an_operator_takes_it_away() {
    let mut drill = Drill::new("sqlite-taken-away", "SQLite: an operator takes the resource away");
    let url = format!("sqlite:{}?create=true&max_ttl=2s", drill.path("tenure.db").display());
    let mut alice = drill.worker("alice", &url);
    drill.takes(&mut alice);
    assert!(matches!(drill.writes(&mut alice), Written::Accepted));
    let mut bob = drill.worker("bob", &url);
    drill.tell("an operator takes it away from alice");
    let revoke = tenure::core::decide::Request::Revoke {
        resource: tenure::ResourceName::new(super::RESOURCE).unwrap(),
        only: None,
        actor: "operator".parse().unwrap(),
        reason: "drill".parse().unwrap(),
    };
    tenure::blocking::wait_for(bob.tenure.authority().execute(&revoke)).unwrap().unwrap();
    drill.takes(&mut bob);
    drill.loses(&alice);
    drill.ends(alice, bob, &url);
}
