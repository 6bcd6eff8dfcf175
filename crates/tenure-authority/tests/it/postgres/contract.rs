//! Every clause of the contract, each in a schema of its own.

use super::{pass, store};
use crate::stores::Pair;
use std::cell::Cell;
use std::sync::Arc;
use tenure_authority::Store;
use tenure_authority::conformance::{Subject, run_all};
use tenure_servers::postgres::psql;
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

/// What is changed alone has functions of its own in the server. Here the functions of many do it.
#[test]
fn the_functions_of_many_keep_the_contract() {
    let database = Postgres::shared().database();
    clauses(&database, |url| {
        let store = store(url);
        super::looked(&store).expect("a new store");
        let schema = url.split(['=', '&']).nth(1).expect("the schema comes first");
        for (one, many, alone) in [("put_lease", "put_leases", 1), ("renew_one", "renew", 2)] {
            let ask = |sql: &str| {
                psql(&database, &format!("select {sql} from pg_proc where oid = '{schema}.{one}'::regproc"))
                    .expect("SQL")
            };
            let count: usize = ask("pronargs").parse().expect("a number");
            let given = |n| match n {
                n if n <= alone => format!("${n}"),
                // Whether it relies on the session that it renews.
                5 if one == "renew_one" => "array[case when $5 then $3 end]".to_owned(),
                n => format!("array[${n}]"),
            };
            let given: Vec<_> = (1..=count).map(given).collect();
            let sql = format!(
                "create or replace function {schema}.{one}({}) returns {} language sql as \
                 'select * from {schema}.{many}({})'",
                ask("pg_get_function_arguments(oid)"),
                ask("pg_get_function_result(oid)"),
                given.join(", ")
            );
            psql(&database, &sql).expect("SQL");
        }
        store
    });
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
