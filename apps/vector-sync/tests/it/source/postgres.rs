//! Queries of a real server.

use super::{names, read, refused};
use futures_util::StreamExt as _;
use tenure_servers::Postgres;
use tokio_postgres::NoTls;
use vector_sync::source::{Format, PostgresSource, Source, SourceError};

/// A database with a table of documents.
async fn database(rows: &str) -> String {
    let url = Postgres::shared_with_vectors().database();
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("create table pages (path text, body text, kind text)").await.unwrap();
    if !rows.is_empty() {
        client.batch_execute(&format!("insert into pages values {rows}")).await.unwrap();
    }
    url
}

fn source(url: &str, query: &str) -> PostgresSource {
    PostgresSource::new(url, query, 1000).unwrap()
}

#[tokio::test]
async fn rows_are_documents_in_the_order_of_their_names() {
    let url =
        database("('b', 'two', 'markdown'), ('a/z', 'three', null), ('a-b', '', 'html'), ('B', '<p>', 'rst')").await;
    let found = read(&source(&url, "select path, body, kind from pages -- all of them\n;")).await;
    let found: Vec<_> = found.into_iter().map(|found| found.unwrap()).collect();
    let known = [
        ("B", "<p>", Format::Rst),
        ("a-b", "", Format::Html),
        ("a/z", "three", Format::Text),
        ("b", "two", Format::Markdown),
    ];
    for (document, (id, text, format)) in found.iter().zip(known) {
        assert_eq!((document.id.as_str(), document.text.as_str(), document.format), (id, text, format));
    }
    // Without a format it is text, and a name may be a number.
    assert_eq!(names(&source(&url, "select length(path), max(body) from pages group by 1")).await, ["1", "3"]);
}

#[tokio::test]
async fn rows_that_cannot_be_used_are_named_and_the_others_follow() {
    let long = "x".repeat(1001);
    let rows = format!(
        "('a', 'x', null), ('a', 'y', null), ('b', null, null), ('c', 'x', 'pdf'), ('d', '{long}', null), ('e', 'x', null), ('', 'x', null), (null, 'x', null)"
    );
    let url = database(&rows).await;
    let known = [
        "! a row: it has no name: give each row one, or leave it out of the query",
        "a",
        "! a: several rows have this name: give each row its own",
        "! b: its text is null: leave it out of the query, or take ''",
        "! c: \"pdf\" is no format: write markdown, html, rst or text",
        "! d: it has 1001 bytes, and at most 1000 are read: split it, or allow more with --max-document",
        "e",
        "! a row: it has no name: give each row one, or leave it out of the query",
    ];
    assert_eq!(names(&source(&url, "select path, body, kind from pages")).await, known);
}

#[tokio::test]
async fn a_query_that_is_no_good_is_refused_with_what_to_do() {
    let url = database("('a', 'x', null)").await;
    let wrong = [
        ("select path from pages", "gives 1 columns"),
        ("select path, body, kind, 1 from pages", "gives 4 columns"),
        ("select path, 7 from pages", "int4 where a text should be"),
        ("select path, body::bytea from pages", "bytea where a text should be"),
        ("select path, body from sites", "\"sites\" does not exist"),
        ("select path, body from pages where false", "gives no row"),
        ("selec", "syntax error"),
        ("select 1/0, 'x'", "division by zero"),
        ("select path, body from pages; drop table pages", "syntax error"),
        // Whatever it calls, nothing is written.
        ("select setval('numbers', 7), 'x'", "does not exist"),
        ("with gone as (delete from pages returning *) select path, body from gone", "WITH clause"),
    ];
    for (query, why) in wrong {
        let said = refused(&source(&url, query)).await;
        assert!(said.contains(why), "{query}: {said}");
    }
    assert_eq!(names(&source(&url, "select path, body from pages")).await, ["a"]);
}

/// A query may call what writes. The transaction does not let it.
#[tokio::test]
async fn nothing_is_written_whatever_the_query_calls() {
    let url = database("('a', 'x', null)").await;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
        .batch_execute("create function take() returns text language sql as 'delete from pages returning body'")
        .await
        .unwrap();
    let said = refused(&source(&url, "select 'a', take()")).await;
    assert!(said.contains("read-only transaction"), "{said}");
    assert_eq!(client.query_one("select count(*) from pages", &[]).await.unwrap().get::<_, i64>(0), 1);
}

/// Rows come as they are asked for: a table may be larger than memory.
#[tokio::test]
async fn rows_are_not_gathered() {
    let url = database("").await;
    // Half a gigabyte, if all of it were taken.
    let query = "select number::text, repeat('x', 900) from generate_series(1, 600000) number";
    let source = source(&url, query);
    let mut documents = source.documents();
    let before = resident();
    for _ in 0..1000 {
        documents.next().await.unwrap().unwrap();
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < 100 << 20, "{grown} bytes more");
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_so() {
    let source = source("postgres://nobody:secret@127.0.0.1:1/none", "select 'a', 'b'");
    assert_eq!(source.place(), "postgres://nobody@127.0.0.1:1/none");
    let found: Vec<_> = source.documents().collect().await;
    let [Err(SourceError::Place { why, .. })] = found.as_slice() else { panic!("{found:?}") };
    assert!(why.contains("refused"), "{why}");
    assert!(!format!("{source:?} {found:?}").contains("secret"));
}
