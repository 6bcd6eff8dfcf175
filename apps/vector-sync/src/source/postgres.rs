//! A query of a PostgreSQL database.

mod link;

use super::{Document, Format, Source, SourceError};
use crate::manifest::Sum;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use link::Rows;
use tenure::authority::store::shown;
use tokio_postgres::types::Type;
use tokio_postgres::{Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What a query gives: in each row a name, a text and, if it says so, the text's format (`markdown`, `html`, `rst` or
/// `text`; without it, `text`).
///
/// The query runs in one transaction that cannot write, so that all documents are as of one moment. Rows come as they are
/// asked for; a text that is too large stays in the database.
pub struct PostgresSource {
    place: String,
    config: Config,
    tls: MakeRustlsConnect,
    query: String,
    max_document: u64,
}

impl PostgresSource {
    /// Reads the address, `postgres://USER:PASSWORD@HOST:PORT/DATABASE` with the parameters of the driver and `tls_ca=FILE`.
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// [`SourceError::Place`] when address or query make no sense.
    pub fn new(url: &str, query: &str, max_document: u64) -> Result<Self, SourceError> {
        let place = shown(url);
        let wrong = |why: String| SourceError::Place { place: place.clone(), why };
        let (config, tls) = link::settings(url).map_err(wrong)?;
        let query = query.trim().trim_end_matches(';').trim_end();
        if query.is_empty() {
            return Err(wrong(
                "a query is missing: give one such as `select path, body, 'markdown' from pages`".to_owned(),
            ));
        }
        Ok(Self { place: place.clone(), config, tls, query: query.to_owned(), max_document })
    }

    fn wrong(&self, why: impl Into<String>) -> SourceError {
        SourceError::Place { place: self.place.clone(), why: why.into() }
    }

    async fn begin(&self) -> Result<Rows, SourceError> {
        let link = link::connect(&self.config, self.tls.clone()).await.map_err(|why| self.wrong(why))?;
        // A query that ends in a comment does not take the bracket with it.
        let inner = format!("select * from (\n{}\n) as documents", self.query);
        let statement = link.prepare(&inner).await.map_err(|why| self.wrong(format!("the query is no good: {why}")))?;
        let kinds: Vec<&Type> = statement.columns().iter().map(tokio_postgres::Column::type_).collect();
        if !(2..=3).contains(&kinds.len()) {
            let found = kinds.len();
            return Err(
                self.wrong(format!("the query gives {found} columns: let it give name, text and, if need be, format"))
            );
        }
        if let Some(kind) = kinds[1..].iter().find(|kind| !is_text(kind)) {
            return Err(self.wrong(format!("the query gives {kind} where a text should be: cast it to text")));
        }
        let (names, format) =
            if kinds.len() == 3 { ("id, body, format", "format::text") } else { ("id, body", "null::text") };
        let sql = format!(
            "select id::text collate \"C\", case when octet_length(body) <= {} then body::text end, octet_length(body)::bigint,
             {format} from ({inner}) as documents ({names}) order by 1",
            self.max_document
        );
        link.rows(&sql).await.map_err(|why| self.wrong(format!("the query failed: {why}")))
    }

    fn document(&self, row: &Row, last: Option<&str>) -> Result<Document, SourceError> {
        let unreadable = |error: tokio_postgres::Error| error.to_string();
        let id: Result<Option<String>, _> = row.try_get(0);
        let broken = |document: &str, why: String| Err(SourceError::Document { document: document.to_owned(), why });
        let id = match id {
            Ok(Some(id)) if !id.is_empty() => id,
            Ok(_) => {
                return broken("a row", "it has no name: give each row one, or leave it out of the query".to_owned());
            }
            Err(error) => return broken("a row", format!("its name cannot be read: {}", unreadable(error))),
        };
        if last == Some(id.as_str()) {
            return broken(&id, "several rows have this name: give each row its own".to_owned());
        }
        let (text, size, format) = match (row.try_get(1), row.try_get(2), row.try_get(3)) {
            (Ok(text), Ok(size), Ok(format)) => (text, size, format),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return broken(&id, unreadable(error)),
        };
        let (text, size, format): (Option<String>, Option<i64>, Option<String>) = (text, size, format);
        let text = match (text, size) {
            (Some(text), _) => text,
            (None, None) => return broken(&id, "its text is null: leave it out of the query, or take ''".to_owned()),
            (None, Some(size)) => {
                let most = self.max_document;
                let why = format!(
                    "it has {size} bytes, and at most {most} are read: split it, or allow more with --max-document"
                );
                return broken(&id, why);
            }
        };
        let format = match format.as_deref().unwrap_or("text") {
            "markdown" => Format::Markdown,
            "text" => Format::Text,
            name => match Format::of_ending(name) {
                Some(format) => format,
                None => {
                    let why = format!("{name:?} is no format: write markdown, html, rst or text");
                    return broken(&id, why);
                }
            },
        };
        let content = Sum::of(&[text.as_bytes()]);
        Ok(Document { id, format, text, content })
    }
}

impl Source for PostgresSource {
    fn place(&self) -> &str {
        &self.place
    }

    fn documents(&self) -> BoxStream<'_, Result<Document, SourceError>> {
        let reading = Reading { rows: None, is_over: false, has_found: false, last: None };
        stream::unfold(reading, |mut reading| async {
            if reading.is_over {
                return None;
            }
            if reading.rows.is_none() {
                match self.begin().await {
                    Ok(rows) => reading.rows = Some(rows),
                    Err(error) => {
                        reading.is_over = true;
                        return Some((Err(error), reading));
                    }
                }
            }
            match reading.rows.as_mut()?.next().await {
                Ok(Some(row)) => {
                    let document = self.document(&row, reading.last.as_deref());
                    reading.last = row.try_get(0).unwrap_or_default();
                    reading.has_found = true;
                    Some((document, reading))
                }
                Ok(None) => {
                    reading.is_over = true;
                    let nothing = "the query gives no row: look whether it asks for what was meant";
                    (!reading.has_found).then(|| (Err(self.wrong(nothing)), reading))
                }
                Err(why) => {
                    reading.is_over = true;
                    Some((Err(self.wrong(format!("reading it broke off: {why}"))), reading))
                }
            }
        })
        .boxed()
    }
}

struct Reading {
    rows: Option<Rows>,
    is_over: bool,
    has_found: bool,
    /// The name of the row before.
    last: Option<String>,
}

fn is_text(kind: &Type) -> bool {
    [Type::TEXT, Type::VARCHAR, Type::BPCHAR, Type::NAME, Type::UNKNOWN, Type::XML].contains(kind)
}

impl std::fmt::Debug for PostgresSource {
    /// The connection's settings hold a password.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "PostgresSource({})", self.place)
    }
}
