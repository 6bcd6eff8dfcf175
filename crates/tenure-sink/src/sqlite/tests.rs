use super::*;
use rusqlite::{StatementStatus, params_from_iter};

#[test]
fn no_statement_is_prepared_anew_at_each_use() {
    // The planner looked at the value of a parameter in a join, so that SQLite prepared the statement again whenever the
    // cache had cleared its bindings: each check cost more than the write that it guarded.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.sqlite");
    SqliteSink::create(&path, SinkId::new("shop").unwrap(), Rule::Sealed).unwrap();
    let connection = Connection::open(&path).unwrap();
    for sql in [schema::STANDING, schema::NAMESPACE, schema::FIND, schema::TAKE_WRITE_LOCK] {
        for round in 0..3 {
            let mut statement = connection.prepare_cached(sql).unwrap();
            let values: Vec<String> = (0..statement.parameter_count()).map(|at| format!("{round} {at}")).collect();
            let mut rows = statement.query(params_from_iter(values)).unwrap();
            while rows.next().unwrap().is_some() {}
        }
        let prepared_anew = connection.prepare_cached(sql).unwrap().get_status(StatementStatus::RePrepare);
        assert_eq!(prepared_anew, 0, "{sql}");
    }
}

#[test]
fn the_fence_is_found_by_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.sqlite");
    SqliteSink::create(&path, SinkId::new("shop").unwrap(), Rule::Sealed).unwrap();
    let connection = Connection::open(&path).unwrap();
    for (sql, values) in [(schema::STANDING, vec!["r"]), (schema::FIND, vec!["r", "one"])] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map(params_from_iter(values), |row| row.get(3)).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        assert!(steps.iter().all(|step| step.starts_with("SEARCH")), "{sql}: {steps:?}");
    }
}

/// Under the rule `held` each check reads the authority as well.
#[test]
fn the_authority_is_read_by_keys_and_its_statement_is_prepared_once() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(include_str!("../../../tenure-authority/src/store/sqlite/first.sql")).unwrap();
    let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", held::HELD)).unwrap();
    let steps: Vec<String> = explained.query_map(["r"], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
    // The authority's own record is one row.
    let searches = |step: &String| step.starts_with("SEARCH") || step.contains("SCAN m") || !step.contains("SCAN");
    assert!(steps.iter().all(searches), "{steps:?}");
    for name in ["one", "two", "three"] {
        let mut statement = connection.prepare_cached(held::HELD).unwrap();
        assert!(statement.query([name]).unwrap().next().unwrap().is_none());
    }
    let prepared_anew = connection.prepare_cached(held::HELD).unwrap().get_status(StatementStatus::RePrepare);
    assert_eq!(prepared_anew, 0);
}
