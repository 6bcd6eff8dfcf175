use super::super::DemoError;
use super::{Place, id, name_of, outcome};
use std::error::Error;
use std::sync::Arc;
use tenure::blocking::wait_for;
use tenure::core::fence::Rule;
use tenure::sink::{ApplyError, PostgresSink, Sink, digest_of, one_value_per_epoch};
use tenure::{Outcome, Token, Verdict};

/// A schema of a PostgreSQL database, with the document's table and the fence's own.
#[derive(Debug)]
pub(super) struct Schema {
    url: String,
    name: String,
}

/// What PostgreSQL's driver complains about.
type Complaint = Box<dyn Error + Send + Sync>;

impl Schema {
    pub(super) fn at(url: &str) -> Result<Self, DemoError> {
        Ok(Self { url: url.to_owned(), name: name_of(url, "schema=")? })
    }

    /// Without a rule there is a fence as well, and nobody asks it.
    fn open(&self, rule: Option<Rule>) -> Result<PostgresSink, DemoError> {
        Ok(PostgresSink::create(&self.url, id()?, rule.unwrap_or(Rule::HighWater))?)
    }

    fn replace(&self) -> String {
        format!(
            "INSERT INTO {}.document (resource, epoch, value) VALUES ($1, $2, $3) \
             ON CONFLICT (resource) DO UPDATE SET epoch = excluded.epoch, value = excluded.value",
            self.name
        )
    }
}

impl Place for Schema {
    fn create(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        let client = wait_for(self.open(rule)?.client())?;
        let sql = format!(
            "CREATE TABLE {}.document (resource text PRIMARY KEY, epoch bigint NOT NULL, value text NOT NULL)",
            self.name
        );
        wait_for(client.batch_execute(&sql)).map_err(|error| failed(&error))
    }

    fn sink(&self, rule: Rule) -> Result<Arc<dyn Sink>, DemoError> {
        Ok(Arc::new(self.open(Some(rule))?))
    }

    fn write(&self, rule: Option<Rule>, token: &Token, value: &str) -> Result<Verdict, DemoError> {
        let sink = self.open(rule)?;
        let (fence, replace) = (sink.fence()?, self.replace());
        let (resource, epoch) = (token.resource.as_str(), token.epoch.as_i64());
        wait_for(async {
            let mut client = sink.client().await?;
            let mut tx = client.transaction().await.map_err(|error| failed(&error))?;
            let verdict = if rule.is_none() {
                tx.execute(&replace, &[&resource, &epoch, &value]).await.map_err(|error| failed(&error))?;
                Verdict::Written
            } else {
                let operation = one_value_per_epoch(token.epoch);
                let digest = digest_of(value.as_bytes());
                let judged = fence.apply(&mut tx, token, &operation, &digest, async |tx| {
                    tx.execute(&replace, &[&resource, &epoch, &value]).await?;
                    Ok::<Outcome, Complaint>(outcome(value))
                });
                judged.await.map_err(|error| match error {
                    ApplyError::Effect(error) => failed(&*error),
                    ApplyError::Sink(error) => DemoError::Sink(error),
                })?
            };
            tx.commit().await.map_err(|error| failed(&error))?;
            Ok(verdict)
        })
    }

    fn document(&self, rule: Option<Rule>, resource: &str) -> Result<Option<(i64, String)>, DemoError> {
        let client = wait_for(self.open(rule)?.client())?;
        let sql = format!("SELECT epoch, value FROM {}.document WHERE resource = $1", self.name);
        let row = wait_for(client.query_opt(&sql, &[&resource])).map_err(|error| failed(&error))?;
        Ok(row.map(|row| (row.get(0), row.get(1))))
    }

    fn clear(&self, rule: Option<Rule>) -> Result<(), DemoError> {
        let client = wait_for(self.open(rule)?.client())?;
        wait_for(client.batch_execute(&format!("DROP SCHEMA {} CASCADE", self.name))).map_err(|error| failed(&error))
    }
}

/// The driver's own text is "db error"; what the server said is the cause of it.
fn failed(error: &(dyn Error + 'static)) -> DemoError {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        said = format!("{said}: {error}");
        cause = error.source();
    }
    DemoError::Server(said)
}
