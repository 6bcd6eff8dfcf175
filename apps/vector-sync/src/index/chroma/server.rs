//! What is asked of a Chroma server: the second version of its HTTP interface.

use super::address::Settings;
use crate::chunk::Chunk;
use crate::index::{Entry, Hit, IndexError, WriteError};
use crate::manifest::Sum;
use crate::tenant::Tenant;
use reqwest::{Client, Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The longest answer.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// How often a request is sent: all that is asked here may be asked again.
const TRIES: u32 = 3;

/// The pause after the first try; the next ones are four times as long each. One that the server asks for may be this long.
const PAUSE: Duration = Duration::from_millis(150);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How many records are sent or fetched at once.
pub(super) const PAGE: usize = 500;

/// How many names of collections are remembered with their ids.
const IDS_MAX: usize = 256;

/// One server.
pub(super) struct Server {
    /// For people.
    place: String,
    collections: String,
    client: Client,
    ids: Mutex<HashMap<String, String>>,
}

/// Why the server did not do it.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no such collection.
    Gone,
    /// No answer came; it may have been done.
    Unanswered(String),
    /// It was not done.
    Index(IndexError),
}

/// What stands beside each vector.
#[derive(Debug, Serialize, Deserialize)]
struct Beside {
    tenant: String,
    epoch: u64,
    document: String,
    number: u32,
    heading: String,
    key: Sum,
}

/// A record without its vector.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) tenant: String,
    pub(super) epoch: u64,
    pub(super) document: String,
    pub(super) number: u32,
    pub(super) key: Sum,
}

#[derive(Deserialize)]
struct Collection {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Page {
    metadatas: Option<Vec<Beside>>,
}

#[derive(Deserialize)]
struct Found {
    documents: Option<Vec<Vec<Option<String>>>>,
    metadatas: Option<Vec<Vec<Beside>>>,
    distances: Option<Vec<Vec<f32>>>,
}

impl Server {
    pub(super) fn new(settings: &Settings) -> Result<Self, IndexError> {
        Ok(Self {
            place: format!("chroma:{}", settings.server),
            collections: format!(
                "{}/api/v2/tenants/default_tenant/databases/default_database/collections",
                settings.server
            ),
            client: settings.client()?,
            ids: Mutex::default(),
        })
    }

    /// Makes a collection. One of this name that is there already is this one, made by an earlier try.
    pub(super) async fn make(&self, name: &str) -> Result<(), Trouble> {
        let body = json!({ "name": name, "configuration": { "hnsw": { "space": "cosine" } } });
        match self.ask(Method::POST, &self.collections, Some(body), "making a collection").await {
            Ok(_) => Ok(()),
            Err(Refusal::Status(StatusCode::CONFLICT, _)) => Ok(()),
            Err(refusal) => Err(self.trouble(refusal, "making a collection")),
        }
    }

    /// Removes a collection, if it is there.
    pub(super) async fn remove(&self, name: &str) -> Result<(), Trouble> {
        self.known().remove(name);
        match self.ask(Method::DELETE, &self.at(name), None, "removing a collection").await {
            Ok(_) | Err(Refusal::Status(StatusCode::NOT_FOUND, _)) => Ok(()),
            Err(refusal) => Err(self.trouble(refusal, "removing a collection")),
        }
    }

    /// The names of all collections that begin so.
    pub(super) async fn names(&self, start: &str) -> Result<Vec<String>, Trouble> {
        const DOING: &str = "listing the collections";
        let (mut names, mut offset) = (Vec::new(), 0);
        loop {
            let url = format!("{}?limit={PAGE}&offset={offset}", self.collections);
            let said = self.ask(Method::GET, &url, None, DOING).await;
            let page: Vec<Collection> = self.read(&said.map_err(|refusal| self.trouble(refusal, DOING))?, DOING)?;
            let is_last = page.len() < PAGE;
            offset += page.len();
            names.extend(page.into_iter().map(|each| each.name).filter(|name| name.starts_with(start)));
            if is_last {
                return Ok(names);
            }
        }
    }

    /// Writes records; those of the same documents are replaced.
    pub(super) async fn upsert(
        &self,
        name: &str,
        (tenant, epoch): (&Tenant, u64),
        entries: &[Entry],
    ) -> Result<(), Trouble> {
        for entries in entries.chunks(PAGE) {
            let beside = |entry: &Entry| Beside {
                tenant: tenant.to_string(),
                epoch,
                document: entry.chunk.document.clone(),
                number: entry.chunk.number,
                heading: entry.chunk.heading.clone(),
                key: entry.key,
            };
            let id = |entry: &Entry| {
                Sum::of(&[entry.chunk.document.as_bytes(), &entry.chunk.number.to_le_bytes()]).to_string()
            };
            let body = json!({
                "ids": entries.iter().map(id).collect::<Vec<_>>(),
                "embeddings": entries.iter().map(|entry| &entry.vector).collect::<Vec<_>>(),
                "documents": entries.iter().map(|entry| &entry.chunk.text).collect::<Vec<_>>(),
                "metadatas": entries.iter().map(beside).collect::<Vec<_>>(),
            });
            self.of(name, "upsert", body, "writing into a collection").await?;
        }
        Ok(())
    }

    /// The records from this one on, in an order of the server's own; fewer than a page when there are no more.
    pub(super) async fn page(&self, name: &str, offset: usize) -> Result<Vec<Record>, Trouble> {
        const DOING: &str = "reading a collection back";
        let body = json!({ "limit": PAGE, "offset": offset, "include": ["metadatas"] });
        let page: Page = self.read(&self.of(name, "get", body, DOING).await?, DOING)?;
        let record = |Beside { tenant, epoch, document, number, key, .. }: Beside| Record {
            tenant,
            epoch,
            document,
            number,
            key,
        };
        Ok(page.metadatas.unwrap_or_default().into_iter().map(record).collect())
    }

    /// The nearest records.
    pub(super) async fn nearest(&self, name: &str, vector: &[f32], limit: usize) -> Result<Vec<Hit>, Trouble> {
        const DOING: &str = "searching a collection";
        if limit == 0 {
            return Ok(Vec::new());
        }
        let include = ["documents", "metadatas", "distances"];
        let body = json!({ "query_embeddings": [vector], "n_results": limit, "include": include });
        let found: Found = self.read(&self.of(name, "query", body, DOING).await?, DOING)?;
        let first = |lists: Option<Vec<Vec<_>>>| lists.unwrap_or_default().into_iter().next().unwrap_or_default();
        let beside: Vec<Beside> = found.metadatas.unwrap_or_default().into_iter().next().unwrap_or_default();
        let distances = found.distances.unwrap_or_default().into_iter().next().unwrap_or_default();
        let texts: Vec<Option<String>> = first(found.documents);
        if texts.len() != beside.len() || texts.len() != distances.len() {
            return Err(self.foreign(DOING, "its lists have several lengths"));
        }
        let hit = |((beside, text), distance): ((Beside, Option<String>), f32)| {
            let Beside { epoch, document, number, heading, .. } = beside;
            let chunk = Chunk { document, number, heading, text: text.unwrap_or_default() };
            Hit { chunk, epoch, score: 1.0 - distance }
        };
        Ok(beside.into_iter().zip(texts).zip(distances).map(hit).collect())
    }

    /// Asks a collection for something.
    async fn of(&self, name: &str, what: &str, body: Value, doing: &'static str) -> Result<Vec<u8>, Trouble> {
        for is_remembered in [true, false] {
            let id = self.id(name, is_remembered).await?;
            let url = format!("{}/{id}/{what}", self.collections);
            match self.ask(Method::POST, &url, Some(body.clone()), doing).await {
                // Its id may be that of an earlier one of the name.
                Err(Refusal::Status(StatusCode::NOT_FOUND, _)) => {
                    self.known().remove(name);
                }
                said => return said.map_err(|refusal| self.trouble(refusal, doing)),
            }
        }
        Err(Trouble::Gone)
    }

    /// A collection is asked by its id.
    async fn id(&self, name: &str, may_remember: bool) -> Result<String, Trouble> {
        const DOING: &str = "looking a collection up";
        let known = self.known().get(name).cloned();
        if let Some(id) = known.filter(|_| may_remember) {
            return Ok(id);
        }
        let said = match self.ask(Method::GET, &self.at(name), None, DOING).await {
            Err(Refusal::Status(StatusCode::NOT_FOUND, _)) => return Err(Trouble::Gone),
            said => said.map_err(|refusal| self.trouble(refusal, DOING))?,
        };
        let Collection { id, .. } = self.read(&said, DOING)?;
        let mut known = self.known();
        if known.len() >= IDS_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), id.clone());
        Ok(id)
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.collections)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: for<'de> Deserialize<'de>>(&self, body: &[u8], doing: &'static str) -> Result<T, Trouble> {
        serde_json::from_slice(body).map_err(|error| self.foreign(doing, &error.to_string()))
    }

    fn foreign(&self, doing: &'static str, why: &str) -> Trouble {
        let why = format!("its answer is not that of a Chroma server of version 1 ({why}): check the address");
        Trouble::Index(IndexError::Failed { place: self.place.clone(), doing, why })
    }
}

/// Why a request has not brought what it asked for.
enum Refusal {
    /// The server says so.
    Status(StatusCode, String),
    /// It was never sent.
    Unsent(String),
    /// No whole answer came.
    Unanswered(String),
    TooLong,
}

impl Server {
    /// Sends a request until it is answered, a few times.
    async fn ask(
        &self,
        method: Method,
        url: &str,
        body: Option<Value>,
        doing: &'static str,
    ) -> Result<Vec<u8>, Refusal> {
        let body = body.map(|body| body.to_string());
        let mut pause = PAUSE;
        let mut unanswered = None;
        for rest in (0..TRIES).rev() {
            let (refusal, wanted) = match self.once(&method, url, body.clone()).await {
                Ok(said) => return Ok(said),
                Err(refused) => refused,
            };
            tracing::debug!(place = self.place, doing, rest, "a request was not answered, or is to be repeated");
            match refusal {
                Refusal::Status(status, _) if !is_passing(status) => return Err(refusal),
                Refusal::TooLong => return Err(refusal),
                Refusal::Unanswered(why) => unanswered = Some(why),
                Refusal::Status(..) | Refusal::Unsent(_) if rest == 0 && unanswered.is_none() => return Err(refusal),
                Refusal::Status(..) | Refusal::Unsent(_) => {}
            }
            if rest > 0 {
                rest_for(wanted.unwrap_or(pause)).await;
                pause *= 4;
            }
        }
        // One that was sent may have been done, whatever became of the others.
        Err(Refusal::Unanswered(unanswered.unwrap_or_default()))
    }

    async fn once(
        &self,
        method: &Method,
        url: &str,
        body: Option<String>,
    ) -> Result<Vec<u8>, (Refusal, Option<Duration>)> {
        let mut request = self.client.request(method.clone(), url);
        if let Some(body) = body {
            request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body);
        }
        let lost = |error: reqwest::Error| match error.is_connect() {
            true => (Refusal::Unsent(innermost(&error)), None),
            false => (Refusal::Unanswered(innermost(&error)), None),
        };
        let mut response = request.send().await.map_err(lost)?;
        let status = response.status();
        let wanted = response.headers().get(reqwest::header::RETRY_AFTER);
        let wanted = wanted.and_then(|value| value.to_str().ok()?.parse().ok()).map(Duration::from_secs);
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(lost)? {
            if body.len() + piece.len() > BYTES_MAX {
                return Err((Refusal::TooLong, None));
            }
            body.extend_from_slice(&piece);
        }
        if status.is_success() {
            return Ok(body);
        }
        Err((Refusal::Status(status, said(&body)), wanted.map(|wanted| wanted.min(PAUSE_MAX))))
    }

    fn trouble(&self, refusal: Refusal, doing: &'static str) -> Trouble {
        let place = self.place.clone();
        match refusal {
            Refusal::Status(StatusCode::NOT_FOUND, why) => {
                let why = format!("{why}: there is no Chroma server of version 1 at this address");
                Trouble::Index(IndexError::Failed { place, doing, why })
            }
            Refusal::Status(status, why) if is_passing(status) => {
                Trouble::Index(IndexError::Unreachable { place, why: format!("it answers {status} ({why})") })
            }
            Refusal::Status(status, why) => {
                let why = format!("it answers {status} ({why}); look at the server, and at its log");
                Trouble::Index(IndexError::Failed { place, doing, why })
            }
            Refusal::Unsent(why) => Trouble::Index(IndexError::Unreachable { place, why }),
            Refusal::Unanswered(why) => Trouble::Unanswered(format!("{doing} in {place}: {why}")),
            Refusal::TooLong => {
                let why = format!("its answer has more than {BYTES_MAX} bytes: ask for less");
                Trouble::Index(IndexError::Failed { place, doing, why })
            }
        }
    }

    /// For who only reads.
    pub(super) fn unread(&self, trouble: Trouble) -> IndexError {
        let place = self.place.clone();
        match trouble {
            Trouble::Gone => self.gone(),
            Trouble::Unanswered(why) => IndexError::Unreachable { place, why },
            Trouble::Index(error) => error,
        }
    }

    /// For who writes.
    pub(super) fn unwritten(&self, trouble: Trouble) -> WriteError {
        match trouble {
            Trouble::Unanswered(why) => WriteError::Unknown(why),
            trouble => self.unread(trouble).into(),
        }
    }

    fn gone(&self) -> IndexError {
        let why = "a generation's collection is not there, though its record is: somebody else has removed it, or the server \
                   was put back. Roll back to a version that is whole, or sync anew";
        IndexError::Failed { place: self.place.clone(), doing: "using a collection", why: why.to_owned() }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Server({})", self.place)
    }
}

/// A server, or one in front of it, that is starting, ending or busy.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}

/// The server's own words, cut short. They name collections, and no documents.
fn said(body: &[u8]) -> String {
    let message =
        serde_json::from_slice::<Value>(body).ok().and_then(|said| Some(said.get("message")?.as_str()?.to_owned()));
    message.unwrap_or_else(|| "without a word".to_owned()).chars().take(300).collect()
}

/// What really went wrong: the outer errors only say that a request failed.
fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer in time".to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

async fn rest_for(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a pause between attempts may well stop during suspend")]
    tokio::time::sleep(span).await;
}
