//! What is left behind in a session of the server.

use super::made;
use crate::world::{Worker, grant};
use std::sync::Arc;
use std::time::Duration;
use tenure_servers::{PgBouncer, Postgres};

const LONG: Duration = Duration::from_secs(500);

/// How the changes of a resource came to the server, as its log has it: by a name, or without one.
fn called(server: &Postgres, url: &str) -> (usize, usize) {
    let store = made(url);
    let worker = Worker::open_for(LONG, Arc::clone(&store), 1, false);
    for n in 0..3 {
        let token = worker.acquire("r", grant(n));
        worker.release(&token);
    }
    // Its end is all of these: making the store wrote more than that before.
    let log = server.log();
    let calls = log.lines().filter(|line| line.contains(".put_lease("));
    let (kept, unnamed): (Vec<_>, Vec<_>) = calls.partition(|line| line.contains("execute s"));
    (kept.len(), unnamed.iter().filter(|line| line.contains("execute <unnamed>")).count())
}

#[test]
fn a_session_of_ones_own_keeps_the_statements_and_a_poolers_does_not() {
    let server = Postgres::options().conf("log_statement = 'all'").conf("log_parameter_max_length = 0").start();
    let database = server.database();
    let (kept, unnamed) = called(&server, &database);
    assert!(kept > 0 && unnamed == 0, "{kept} calls by name and {unnamed} without");
    let pooler = PgBouncer::start(&server);
    let (kept, unnamed) = called(&server, &pooler.url_of(&server.database()));
    assert!(kept == 0 && unnamed > 0, "{kept} calls by name and {unnamed} without, behind the pooler");
}
