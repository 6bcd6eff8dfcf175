//! Every clause of the contract, each in a schema of its own.

use super::{pass, store};
use crate::stores::Pair;
use std::cell::Cell;
use std::sync::Arc;
use tenure_authority::Store;
use tenure_authority::conformance::{Subject, run_all};
use tenure_servers::{PgBouncer, Postgres};

/// Gives each clause a new schema of the database.
fn clauses(database: &str, make: impl Fn(&str) -> Arc<dyn Store>) {
    let number = Cell::new(0);
    run_all(&|| {
        number.set(number.get() + 1);
        let url = format!("{database}?schema=clause_{}&create=true&max_ttl=2m", number.get());
        Subject { store: make(&url), pass: Box::new(pass), exact: false }
    });
}

#[test]
fn the_postgres_store_keeps_the_contract() {
    clauses(&Postgres::shared().database(), store);
}

/// Each transaction may run on another connection of the server, and nothing stays in a session.
#[test]
fn it_keeps_the_contract_behind_a_pooler_in_transaction_mode() {
    let server = Postgres::shared();
    let pooler = PgBouncer::start(server);
    clauses(&pooler.url_of(&server.database()), store);
}

/// Reads go to one connected store and swaps to another, as from two machines.
#[test]
fn two_connected_stores_keep_the_contract_together() {
    clauses(&Postgres::shared().database(), |url| Arc::new(Pair { reads: store(url), writes: store(url) }));
}
