use super::raw::{self, Reply};
use crate::id;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use axum::{Router, response::IntoResponse};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::fence::Rule;
use tenure_core::{OperationId, Outcome, ResourceName, StoreIdentity, Token};
use tenure_grant::{PublicKeys, Signer, SigningKey, Verifier, WallClock};
use tenure_sink::http::{HttpSink, Routes, TokenLayer, answer, answer_error, written_key};
use tenure_sink::{ApplyError, Lookup, Sink, SinkError, SqliteFence, SqliteSink, digest_of};

pub(crate) const SECRET: &str = "an operator's secret of the tests";

/// How long the service's fence waits for another writer.
const WAIT: Duration = Duration::from_millis(300);

/// A real server on the loopback, over a real database. It ends when it is dropped.
pub(crate) struct Service {
    folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) signer: Signer,
    /// The wall clock of the verifier.
    pub(crate) time: Arc<AtomicU64>,
    rule: Rule,
    runtime: Option<tokio::runtime::Runtime>,
}

/// A transaction that is open: where the value goes, and where it is told what came of it.
type Open = (Sender<String>, Receiver<Result<(), String>>);

/// What the handlers work with.
struct Shop {
    path: PathBuf,
    rule: Rule,
    held: Mutex<HashMap<String, Open>>,
}

pub(crate) const NOW: u64 = 1_800_000_000;

impl Service {
    pub(crate) fn start(rule: Rule) -> Self {
        Self::with(rule, |router, _, _| router)
    }

    /// With more routes of the test's own.
    pub(crate) fn with(rule: Rule, more: impl FnOnce(Router, &SqliteSink, TokenLayer) -> Router) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("shop.sqlite");
        let sink = SqliteSink::create(&path, id(), rule).unwrap().with_wait(WAIT);
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE shop (resource TEXT PRIMARY KEY, value)").unwrap();
        std::fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
        let time = Arc::new(AtomicU64::new(NOW));
        let clock = || WallClock::Manual(Arc::clone(&time));
        let key = SigningKey::generate().unwrap();
        let verifier = Verifier::new(PublicKeys::new([key.public().clone()])).with_clock(clock());
        let signer = Signer::of_key(key, StoreIdentity::new("prod").unwrap())
            .with_clock(WallClock::Manual(Arc::new(NOW.into())));
        let tokens = TokenLayer::new(verifier.clone(), id());
        let shop = Arc::new(Shop { path, rule, held: Mutex::default() });
        let router = Router::new()
            .route("/shop", post(write).layer(tokens.clone()))
            .route("/lookup", post(lookup).layer(tokens.clone().wants_operation()))
            .route("/hold", post(hold).layer(tokens.clone()))
            .route("/finish/{id}", post(finish))
            .route(
                "/of/{resource}",
                post(write).layer(
                    tokens.clone().resource(|parts| ResourceName::new(parts.uri.path().rsplit('/').next()?).ok()),
                ),
            )
            .with_state(shop)
            .nest_service("/tenure", Routes::new(Arc::new(sink.clone()), verifier).operator(SECRET));
        let router = more(router, &sink, tokens);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
        Self { folder, address, signer, time, rule, runtime: Some(runtime) }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/tenure?secret={}", self.address, self.folder.path().join("secret").display())
    }

    pub(crate) fn sink(&self) -> HttpSink {
        HttpSink::open(&self.url()).unwrap()
    }

    /// The database behind it, past HTTP.
    pub(crate) fn database(&self) -> SqliteSink {
        SqliteSink::open(self.folder.path().join("shop.sqlite"), id(), self.rule).unwrap()
    }

    pub(crate) fn value(&self, resource: &ResourceName) -> Option<String> {
        let connection = Connection::open(self.folder.path().join("shop.sqlite")).unwrap();
        let get = "SELECT value FROM shop WHERE resource = ?1";
        connection.query_row(get, [resource.as_str()], |row| row.get(0)).optional().unwrap()
    }

    pub(crate) fn signed(&self, token: &Token) -> String {
        self.signer.sign(token, &BTreeSet::from([id()])).unwrap().as_str().to_owned()
    }

    /// As a holder sends it.
    pub(crate) fn post(
        &self,
        path: &str,
        token: &Token,
        operation: Option<&OperationId>,
        more: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let signed = self.signed(token);
        let key = operation.map(|operation| written_key(operation).to_str().unwrap().to_owned());
        let mut headers = vec![("tenure-token", signed.as_str())];
        headers.extend(key.as_ref().map(|key| ("idempotency-key", key.as_str())));
        headers.extend(more);
        raw::send(self.address, "POST", path, &headers, body.as_bytes())
    }

    pub(crate) fn seal(&self, token: &Token) {
        let sealed = crate::seal(&self.database(), token).unwrap();
        assert!(matches!(sealed, tenure_core::fence::Sealing::Seal(_)), "{sealed:?}");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

type Answered = Response<String>;

fn said(status: StatusCode, body: impl Into<String>) -> Answered {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
}

fn set(tx: &Transaction<'_>, resource: &ResourceName, value: &str) -> rusqlite::Result<()> {
    let put = "INSERT INTO shop VALUES (?1, ?2) ON CONFLICT (resource) DO UPDATE SET value = excluded.value";
    tx.execute(put, params![resource.as_str(), value]).map(drop)
}

impl Shop {
    /// One transaction of a request.
    fn transact(&self, work: impl FnOnce(Transaction<'_>, SqliteFence) -> Result<Answered, SinkError>) -> Answered {
        let mut connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(Duration::from_millis(20)).unwrap();
        let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let done = match begun {
            Ok(tx) => work(tx, SqliteFence::new(self.rule)),
            Err(_) => Err(SinkError::Busy { place: "shop".to_owned(), waited: Duration::from_millis(20) }),
        };
        done.unwrap_or_else(|error| answer_error(&error))
    }
}

async fn blocking(work: impl FnOnce() -> Answered + Send + 'static) -> Answered {
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn write(
    State(shop): State<Arc<Shop>>,
    Extension(token): Extension<Token>,
    operation: Option<Extension<OperationId>>,
    headers: HeaderMap,
    body: Bytes,
) -> Answered {
    let fails = headers.contains_key("x-fails");
    assert!(!headers.contains_key("tenure-token"), "the signed grant is taken out");
    let value = String::from_utf8(body.to_vec()).unwrap();
    blocking(move || {
        shop.transact(|tx, fence| {
            let verdict = match operation {
                None => match fence.admit(&tx, &token)? {
                    Err(verdict) => verdict,
                    Ok(_) => {
                        set(&tx, &token.resource, &value).unwrap();
                        if fails {
                            return Ok(said(StatusCode::INTERNAL_SERVER_ERROR, "the effect failed"));
                        }
                        tenure_core::Verdict::Written
                    }
                },
                Some(Extension(operation)) => {
                    let outcome = Outcome::new(format!("wrote {value}")).unwrap();
                    let applied = fence.apply(&tx, &token, &operation, &digest_of(value.as_bytes()), |tx| {
                        set(tx, &token.resource, &value).unwrap();
                        if fails { Err("the effect failed") } else { Ok(outcome) }
                    });
                    match applied {
                        Ok(verdict) => verdict,
                        Err(ApplyError::Sink(error)) => return Err(error),
                        Err(ApplyError::Effect(why)) => {
                            tx.commit().unwrap();
                            return Ok(said(StatusCode::INTERNAL_SERVER_ERROR, why));
                        }
                    }
                }
            };
            tx.commit().unwrap();
            Ok(answer(&verdict, &token).unwrap_or_else(|| said(StatusCode::OK, format!("wrote {value}"))))
        })
    })
    .await
}

async fn lookup(
    State(shop): State<Arc<Shop>>,
    Extension(token): Extension<Token>,
    Extension(operation): Extension<OperationId>,
) -> Answered {
    blocking(move || {
        shop.transact(|tx, fence| {
            let found = fence.lookup(&tx, &token, &operation)?;
            tx.commit().unwrap();
            Ok(match found {
                Err(verdict) => answer(&verdict, &token).unwrap(),
                Ok(Lookup::Absent) => said(StatusCode::NO_CONTENT, ""),
                Ok(Lookup::Found(found)) => {
                    let digest: String = found.digest.0.iter().map(|byte| format!("{byte:02x}")).collect();
                    said(StatusCode::OK, format!("{} {digest} {}", found.epoch, found.outcome))
                }
            })
        })
    })
    .await
}

/// Checks the token in a transaction that stays open until it is finished.
async fn hold(State(shop): State<Arc<Shop>>, Extension(token): Extension<Token>) -> Answered {
    let ((go_on, value), (tell, told)) = (channel::<String>(), channel());
    let (admitted, was_admitted) = tokio::sync::oneshot::channel();
    let path = shop.path.clone();
    let rule = shop.rule;
    let name = token.to_string();
    std::thread::spawn(move || {
        let connection = Connection::open(path).unwrap();
        // A deferred transaction, the one that does not block the seal by itself.
        let tx = Transaction::new_unchecked(&connection, TransactionBehavior::Deferred).unwrap();
        drop(SqliteFence::new(rule).admit(&tx, &token).unwrap().unwrap());
        admitted.send(()).unwrap();
        let Ok(value) = value.recv() else { return };
        let done = set(&tx, &token.resource, &value).and_then(|()| tx.commit());
        let _ = tell.send(done.map_err(|error| error.to_string()));
    });
    was_admitted.await.unwrap();
    let id = name.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    shop.held.lock().unwrap().insert(id.clone(), (go_on, told));
    said(StatusCode::OK, id)
}

async fn finish(State(shop): State<Arc<Shop>>, Path(id): Path<String>, value: String) -> Answered {
    let (go_on, told) = shop.held.lock().unwrap().remove(&id).unwrap();
    blocking(move || {
        go_on.send(value).unwrap();
        match told.recv().unwrap() {
            Ok(()) => said(StatusCode::OK, "written"),
            Err(why) => said(StatusCode::INTERNAL_SERVER_ERROR, why),
        }
    })
    .await
}

/// What a handler of a test may answer with.
pub(crate) fn response(status: u16, body: impl Into<String>) -> axum::response::Response {
    said(StatusCode::from_u16(status).unwrap(), body).into_response()
}

/// The fence of a resource, as it stands in the database.
pub(crate) fn row(service: &Service, resource: &ResourceName) -> Option<tenure_core::fence::FenceRow> {
    tenure_sink::conformance::answered(service.database().describe(resource)).unwrap().row
}

pub(crate) fn later(service: &Service, seconds: i64) {
    let now = NOW.checked_add_signed(seconds).unwrap();
    service.time.store(now, Ordering::Release);
}
