//! PostgreSQL passes the suite: by Rust and by SQL, under every rule, directly and behind a pooler.

use super::database::Database;
use super::plain::Plain;
use tenure_core::fence::Rule;
use tenure_servers::{PgBouncer, Postgres};
use tenure_sink::conformance::run_all;

#[test]
fn postgres_passes_the_suite_under_the_sealed_rule() {
    run_all(|| Box::new(Database::create(Rule::Sealed)));
}

#[test]
fn postgres_passes_the_suite_under_the_high_water_rule() {
    run_all(|| Box::new(Database::create(Rule::HighWater)));
}

#[test]
fn plain_sql_passes_the_suite_under_the_sealed_rule() {
    run_all(|| Box::new(Plain::create(Rule::Sealed)));
}

#[test]
fn plain_sql_passes_the_suite_under_the_high_water_rule() {
    run_all(|| Box::new(Plain::create(Rule::HighWater)));
}

#[test]
fn postgres_passes_the_suite_under_the_held_rule() {
    run_all(|| Box::new(Database::create(Rule::Held)));
}

#[test]
fn plain_sql_passes_the_suite_under_the_held_rule() {
    run_all(|| Box::new(Plain::create(Rule::Held)));
}

#[test]
fn postgres_passes_the_suite_behind_a_pooler() {
    let bouncer = PgBouncer::with_pool(Postgres::shared(), 12);
    run_all(|| Box::new(Database::pooled(&bouncer, Rule::Sealed)));
}
