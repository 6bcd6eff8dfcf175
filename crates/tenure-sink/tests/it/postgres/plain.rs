//! The SQL door: nothing but the text of statements, as any program in any language would send it.

use super::database::{Database, Open, connect};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::{FenceRow, Forgetting, Rule, Sealing};
use tenure_core::{
    Digest, Ending, Epoch, Generation, GrantId, OperationId, Outcome, Over, OwnerName, Replayed, ResourceName, SinkId,
    Token, Verdict,
};
use tenure_sink::conformance::{Capabilities, Held, SetAuthority, SinkUnderTest};
use tenure_sink::{Answer, Description, Found, Lookup, Rows, Sink, SinkError};
use tokio_postgres::error::DbError;
use tokio_postgres::{Client, SimpleQueryMessage};

/// A sink that is spoken to in text.
pub(super) struct Plain {
    database: Database,
    sink: PlainSink,
}

impl Plain {
    pub(super) fn create(rule: Rule) -> Self {
        Self::of(Database::create(rule))
    }

    fn of(database: Database) -> Self {
        let (url, runtime) = (database.url.clone(), database.runtime.handle().clone());
        let (id, rule) = (database.sink.id().clone(), database.sink.rule());
        Self { database, sink: PlainSink { url, runtime, id, rule, client: Arc::default() } }
    }

    /// Runs the statements of a transaction; whoever is refused gets an error, and rolls back.
    fn transaction<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Refused>,
    ) -> Result<Result<T, Verdict>, SinkError> {
        self.database.transaction(async |client| {
            ask(client, "BEGIN").await.unwrap();
            let done = match work(client).await {
                Ok(done) => ask(client, "COMMIT").await.map(|_| done),
                Err(refused) => Err(refused),
            };
            match done {
                Ok(done) => Ok(Ok(done)),
                Err(refused) => {
                    let _ = ask(client, "ROLLBACK").await;
                    refused.verdict().map(Err)
                }
            }
        })
    }
}

/// One row, a text or nothing for each column.
type Columns = Vec<Option<String>>;

/// An error, as every driver shows it.
#[derive(Debug)]
struct Refused {
    code: String,
    message: String,
    detail: String,
}

impl Refused {
    fn of(error: &tokio_postgres::Error) -> Self {
        let said: Option<&DbError> = error.as_db_error();
        let message = said.map_or_else(|| error.to_string(), |said| said.message().to_owned());
        let detail = said.and_then(DbError::detail).unwrap_or_default().to_owned();
        Self { code: said.map_or("08006", |said| said.code().code()).to_owned(), message, detail }
    }

    /// The numbers that follow the word `epoch`.
    fn epochs(&self) -> Vec<Epoch> {
        let after = self.message.split("epoch ").skip(1);
        let numbers = after.filter_map(|text| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<i64>().ok());
        numbers.map(|number| Epoch::try_from(number).unwrap()).collect()
    }

    fn verdict(&self) -> Result<Verdict, SinkError> {
        match (self.code.as_str(), &self.epochs()[..]) {
            ("TN101", [presented, current]) => Ok(Verdict::Stale { presented: *presented, current: *current }),
            ("TN102", _) => Ok(Verdict::Unsealed),
            ("TN103", [.., current]) => Ok(Verdict::Conflict { current: *current }),
            ("TN106", [presented, ..]) => Ok(Verdict::Over(self.over(*presented))),
            _ => Err(self.error()),
        }
    }

    /// What is said of a grant that is over, in the words for people.
    fn over(&self, presented: Epoch) -> Over {
        let said = self.message.split("the authority says that ").nth(1).unwrap();
        let words = [
            ("its deadline passed", "expired"),
            ("another grant has followed it", "superseded"),
            ("it was given back or taken away", "free"),
            ("it knows nothing of the resource", "unknown"),
        ];
        let name = words.iter().find(|(words, _)| *words == said).map(|(_, name)| *name);
        let name = name.or_else(|| said.strip_prefix("it is over: ")).unwrap();
        let between = |from: &str, to: &str| {
            let rest = self.detail.split(from).nth(1)?;
            rest.split(to).next().map(str::to_owned)
        };
        Over {
            presented,
            current: between("The newest grant is epoch ", " ").map(|epoch| epoch.parse().unwrap()),
            why: Ending::from_name(name).unwrap(),
            holder: between(" of '", "'").map(|name| OwnerName::new(&name).unwrap()),
            ago: between("It has been so for ", " s.").map(|s| Duration::from_secs_f64(s.parse().unwrap())),
        }
    }

    fn error(&self) -> SinkError {
        let place = "the database".to_owned();
        match self.code.as_str() {
            // The last one: a seal ended a session that a busy machine kept from going on.
            "40001" | "40P01" | "55P03" | "57P01" => SinkError::Repeat { place, why: self.message.clone() },
            "TN105" => SinkError::NeverSealed { place },
            "3F000" => SinkError::Missing { place },
            _ => SinkError::Failed { place, doing: "asking", why: format!("{} {}", self.code, self.message) },
        }
    }
}

async fn ask(client: &Client, sql: &str) -> Result<Vec<Columns>, Refused> {
    let answer = client.simple_query(sql).await.map_err(|error| Refused::of(&error))?;
    let rows = answer.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect()),
        _ => None,
    });
    Ok(rows.collect())
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn shown(token: &Token) -> String {
    format!("{}, {}, '{}'", literal(token.resource.as_str()), token.epoch, token.grant)
}

fn put(token: &Token, value: &str) -> String {
    let (resource, value) = (literal(token.resource.as_str()), literal(value));
    format!("INSERT INTO shop VALUES ({resource}, {value}) ON CONFLICT (resource) DO UPDATE SET value = excluded.value")
}

fn apply(token: &Token, operation: &OperationId, value: &str) -> String {
    format!(
        "SELECT * FROM tenure.apply({}, {}, sha256(convert_to({}, 'UTF8')), {})",
        shown(token),
        literal(operation.as_str()),
        literal(value),
        literal(&format!("wrote {value}"))
    )
}

impl SinkUnderTest for Plain {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { seals_past_a_stopped_writer: true }
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        Box::new(Self::of(self.database.anew()))
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        // In SQL, that is a schema which is not there.
        let asked = self.database.transaction(async |client| ask(client, "SELECT missing.describe('r')").await);
        (asked.err().map(|refused| refused.error()), false)
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        let written = self.transaction(async |client| {
            let verdict = match operation {
                None => {
                    ask(client, &format!("SELECT tenure.admit({})", shown(token))).await?;
                    Verdict::Written
                }
                Some(operation) => match &ask(client, &apply(token, operation, value)).await?[0][..] {
                    [Some(verdict), _, _] if verdict == "written" => Verdict::Written,
                    [Some(verdict), Some(epoch), Some(outcome)] if verdict == "replay" => Verdict::Replay(Replayed {
                        epoch: epoch.parse().unwrap(),
                        outcome: Outcome::new(outcome).unwrap(),
                    }),
                    other => panic!("{other:?}"),
                },
            };
            if verdict == Verdict::Written {
                ask(client, &put(token, value)).await?;
            }
            Ok(verdict)
        })?;
        Ok(written.unwrap_or_else(|verdict| verdict))
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        self.database.transaction(async |client| {
            let check = match operation {
                None => format!("SELECT tenure.admit({})", shown(token)),
                Some(operation) => apply(token, operation, "half"),
            };
            for sql in ["BEGIN", &check, &put(token, "half"), "ROLLBACK"] {
                ask(client, sql).await.unwrap();
            }
        });
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        self.transaction(async |client| {
            let sql = format!(
                "SELECT applied_in, encode(digest, 'hex'), outcome FROM tenure.lookup({}, {})",
                shown(token),
                literal(operation.as_str())
            );
            let rows = ask(client, &sql).await?;
            Ok(rows.first().map_or(Lookup::Absent, |row| {
                let text = |at: usize| row[at].as_deref().unwrap();
                let mut digest = [0; 32];
                for (at, byte) in digest.iter_mut().enumerate() {
                    *byte = u8::from_str_radix(&text(1)[at * 2..at * 2 + 2], 16).unwrap();
                }
                let (epoch, outcome) = (text(0).parse().unwrap(), Outcome::new(text(2)).unwrap());
                Lookup::Found(Found { epoch, digest: Digest(digest), outcome })
            }))
        })
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        self.database.value(resource)
    }

    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        Box::new(Open::begin(&self.database, token))
    }

    fn authority(&self) -> Option<&dyn SetAuthority> {
        self.database.authority()
    }
}

/// The sealing side in text.
#[derive(Debug)]
struct PlainSink {
    url: String,
    runtime: tokio::runtime::Handle,
    id: SinkId,
    rule: Rule,
    client: Arc<tokio::sync::Mutex<Option<Client>>>,
}

impl PlainSink {
    fn ask<'a, T: Send + 'static>(
        &'a self,
        sql: String,
        read: impl FnOnce(&[Columns]) -> T + Send + 'static,
    ) -> Answer<'a, Result<T, SinkError>> {
        let (url, kept) = (self.url.clone(), Arc::clone(&self.client));
        let work = async move {
            let mut kept = kept.lock().await;
            let client = match kept.take() {
                Some(client) => client,
                None => connect(&url).await,
            };
            let rows = ask(kept.insert(client), &sql).await.map_err(|refused| refused.error())?;
            Ok(read(&rows))
        };
        let working = self.runtime.spawn(work);
        Box::pin(async { working.await.unwrap() })
    }
}

fn epoch(text: Option<&String>) -> Option<Epoch> {
    text.map(|text| text.parse().unwrap())
}

fn grant(text: Option<&String>) -> GrantId {
    text.unwrap().replace('-', "").parse().unwrap()
}

fn fence(row: &[Option<String>]) -> Option<FenceRow> {
    let generation = Generation::new(row[2].as_deref()?).unwrap();
    Some(FenceRow {
        epoch: epoch(row[0].as_ref())?,
        grant: grant(row[1].as_ref()),
        generation,
        seal_no: row[3].as_ref()?.parse().unwrap(),
        enrolled: row[4].as_ref()?.split_terminator('\n').map(|name| SinkId::new(name).unwrap()).collect(),
    })
}

const DESCRIPTION: &str = "generation, floor, resource, epoch, grant_id, sealed_generation, seal_no, \
                           array_to_string(enrolled, E'\\n')";

fn description(row: &[Option<String>]) -> (Option<ResourceName>, Description) {
    let generation = Generation::new(row[0].as_deref().unwrap()).unwrap();
    let described = Description { generation, floor: epoch(row[1].as_ref()), row: fence(&row[3..]) };
    (row[2].as_ref().map(|name| ResourceName::new(name).unwrap()), described)
}

impl Sink for PlainSink {
    fn id(&self) -> &SinkId {
        &self.id
    }

    fn rule(&self) -> Rule {
        self.rule
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        let sql = format!("SELECT {DESCRIPTION} FROM tenure.describe({})", literal(resource.as_str()));
        self.ask(sql, |rows| description(&rows[0]).1)
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let mut names = String::new();
        for (at, name) in enrolled.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(names, "{comma}{}", literal(name.as_str())).unwrap();
        }
        let sql = format!(
            "SELECT sealing, floor, epoch, grant_id, generation, seal_no, array_to_string(enrolled, E'\\n') \
             FROM tenure.seal({}, {}, ARRAY[{names}]::text[], '900 ms')",
            shown(token),
            literal(generation.as_str())
        );
        self.ask(sql, |rows| {
            let row = &rows[0];
            match row[0].as_deref().unwrap() {
                "sealed" => Sealing::Seal(fence(&row[2..]).unwrap()),
                "wrong-generation" => {
                    Sealing::WrongGeneration { current: Generation::new(row[4].as_deref().unwrap()).unwrap() }
                }
                "stale" => Sealing::Stale { epoch: epoch(row[2].as_ref()).unwrap(), grant: grant(row[3].as_ref()) },
                "conflict" => {
                    Sealing::Conflict { epoch: epoch(row[2].as_ref()).unwrap(), grant: grant(row[3].as_ref()) }
                }
                "below-floor" => Sealing::BelowFloor { floor: epoch(row[1].as_ref()).unwrap() },
                other => panic!("{other}"),
            }
        })
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        let sql = format!("SELECT * FROM tenure.forget({}, {cut})", literal(resource.as_str()));
        self.ask(sql, |rows| {
            let row = &rows[0];
            match row[0].as_deref().unwrap() {
                "forgotten" => Forgetting::Forget { floor: epoch(row[1].as_ref()).unwrap() },
                _ => Forgetting::Above { epoch: epoch(row[2].as_ref()).unwrap(), grant: grant(row[3].as_ref()) },
            }
        })
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        let after = literal(after.map_or("", ResourceName::as_str));
        let sql = format!("SELECT {DESCRIPTION} FROM tenure.rows({after}, {limit})");
        self.ask(sql, |rows| {
            let all: Vec<_> = rows.iter().map(|row| description(row)).collect();
            let floor = all.first().and_then(|(_, described)| described.floor);
            Rows {
                rows: all.into_iter().filter_map(|(name, described)| Some((name?, described.row?))).collect(),
                floor,
            }
        })
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        self.ask("SELECT tenure.reopen('a test')".to_owned(), |rows| {
            Generation::new(rows[0][0].as_deref().unwrap()).unwrap()
        })
    }
}
