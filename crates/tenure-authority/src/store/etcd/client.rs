//! Talking with the members: which one, for how long, and what a failure says about a write.

use super::fault::Fault;
use super::message::{Answered, Txn, answered};
use super::settings::Settings;
use super::tls;
use crate::StoreError;
use serde::Deserialize;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

/// The members of one cluster, asked one at a time: whichever answered last is asked first.
pub(super) struct Client {
    http: reqwest::Client,
    settings: Settings,
    at: AtomicUsize,
    token: Mutex<Option<String>>,
}

/// A connection that is not there after this is none.
const CONNECT: Duration = Duration::from_secs(1);

/// How long one member is waited for while there are others: a stopped one is left soon.
const ATTEMPT: Duration = Duration::from_millis(1_500);

/// How long the only member is waited for; it may stand on a slow disk.
pub(super) const LONE_ATTEMPT: Duration = Duration::from_secs(5);

/// How often each member is asked before the store counts as unavailable. An election takes about as long as one round
/// over three stopped ones.
const ROUNDS: usize = 3;

impl Client {
    pub(super) fn new(settings: Settings) -> Result<Self, StoreError> {
        let http = reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .http1_only()
            .connect_timeout(CONNECT)
            .tls_backend_preconfigured(tls::config(&settings)?)
            .build()
            .map_err(|error| StoreError::Unavailable(format!("no connections can be made: {error}")))?;
        Ok(Self { http, settings, at: AtomicUsize::new(0), token: Mutex::default() })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A transaction that only reads: any member may be asked again.
    pub(super) async fn read(&self, txn: &Txn) -> Result<Answered, Fault> {
        self.ask_txn(txn).await
    }

    /// A transaction that may be made twice, and late.
    pub(super) async fn ask_txn(&self, txn: &Txn) -> Result<Answered, Fault> {
        let text = self.ask("/v3/kv/txn", &txn.body()).await?;
        answered(&text).ok_or_else(|| Fault::nonsense(&text))
    }

    /// A transaction that writes: another member is only tried when this one certainly has not got it.
    pub(super) async fn write(&self, txn: &Txn) -> Result<Answered, Fault> {
        let text = self.tell("/v3/kv/txn", &txn.body()).await?;
        answered(&text).ok_or_else(|| Fault::nonsense(&text))
    }

    /// Asks until a member answers. For what may be asked twice.
    pub(super) async fn ask(&self, path: &str, body: &str) -> Result<String, Fault> {
        let mut last = Fault::NotSent(String::new());
        for attempt in 0..ROUNDS * self.settings.members.len() {
            if attempt > 0 && attempt % self.settings.members.len() == 0 {
                pause(Duration::from_millis(100)).await;
            }
            match self.attempt(path, body).await {
                Err(fault) if !fault.is_final() => last = fault,
                answer => return answer,
            }
        }
        Err(last)
    }

    /// Asks every member of the address, all at once, and once.
    pub(super) async fn ask_each(&self, path: &str, body: &str) -> Vec<Result<String, Fault>> {
        let once = |at| async move {
            self.login(at).await?;
            self.once(at, path, body).await
        };
        all((0..self.settings.members.len()).map(once)).await
    }

    /// As [`ask`](Self::ask), for what must not be done twice.
    pub(super) async fn tell(&self, path: &str, body: &str) -> Result<String, Fault> {
        let mut last = Fault::NotSent(String::new());
        for _ in 0..self.settings.members.len() {
            match self.attempt(path, body).await {
                Err(Fault::NotSent(why)) => last = Fault::NotSent(why),
                answer => return answer,
            }
        }
        Err(last)
    }

    /// Begins an answer that has no end, from the member that answered last.
    pub(super) async fn stream(&self, path: &str, body: String) -> Result<reqwest::Response, Fault> {
        let at = self.at.load(Ordering::Relaxed);
        self.login(at).await?;
        let sent = tokio::time::timeout(ATTEMPT, self.request(at, path, body).send()).await;
        let answer = match sent {
            Ok(sent) => sent.map_err(|error| Fault::of(&error)),
            Err(_) => Err(Fault::Lost("it does not answer".to_owned())),
        };
        match answer {
            Ok(response) if response.status().is_success() => Ok(response),
            Ok(response) => {
                let status = response.status();
                let fault = self.said(status, &response.text().await.unwrap_or_default());
                self.forget_token(&fault);
                Err(self.turn(at, fault))
            }
            Err(fault) => Err(self.turn(at, fault)),
        }
    }

    /// The next one logs in again when the token's time is over.
    fn forget_token(&self, fault: &Fault) {
        if fault.is_unauthenticated() {
            *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    async fn attempt(&self, path: &str, body: &str) -> Result<String, Fault> {
        let at = self.at.load(Ordering::Relaxed);
        let is_first = self.login(at).await?;
        match self.once(at, path, body).await {
            // The token's time is over; nothing was done under it.
            Err(fault) if fault.is_unauthenticated() && self.settings.user.is_some() && !is_first => {
                self.forget_token(&fault);
                self.login(at).await?;
                self.once(at, path, body).await
            }
            answer => answer,
        }
    }

    async fn once(&self, at: usize, path: &str, body: &str) -> Result<String, Fault> {
        let answer = async {
            let response = self.request(at, path, body.to_owned()).timeout(self.patience()).send().await?;
            let status = response.status();
            Ok((status, response.text().await?))
        };
        match answer.await {
            Ok((status, text)) if status.is_success() => Ok(text),
            Ok((status, text)) => Err(self.turn(at, self.said(status, &text))),
            Err(error) => Err(self.turn(at, Fault::of(&error))),
        }
    }

    fn request(&self, at: usize, path: &str, body: String) -> reqwest::RequestBuilder {
        let member = self.settings.members.get(at % self.settings.members.len()).map_or("", String::as_str);
        let request = self.http.post(format!("{member}{path}")).body(body);
        match &*self.token.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(token) => request.header("authorization", token),
            None => request,
        }
    }

    fn patience(&self) -> Duration {
        if self.settings.members.len() > 1 { ATTEMPT } else { LONE_ATTEMPT }
    }

    fn said(&self, status: reqwest::StatusCode, text: &str) -> Fault {
        #[derive(Deserialize)]
        struct Said {
            #[serde(alias = "error")]
            message: String,
            #[serde(default)]
            code: u32,
        }
        // Both names may be there, with the same text.
        let both: Option<serde_json::Value> = serde_json::from_str(text).ok();
        let said = both.and_then(|mut both| {
            if both.get("message").is_some() {
                both.as_object_mut().map(|fields| fields.remove("error"));
            }
            serde_json::from_value::<Said>(both).ok()
        });
        match said {
            Some(said) => Fault::Said { code: said.code, message: said.message },
            None => Fault::Lost(format!("{} answered {status}: is it etcd 3.4 or newer?", self.settings.shown)),
        }
    }

    /// After a failure that another member may not have, that one is next.
    fn turn(&self, at: usize, fault: Fault) -> Fault {
        if !fault.is_final() {
            // Another call may have turned already.
            let _ = self.at.compare_exchange(at, at.wrapping_add(1), Ordering::Relaxed, Ordering::Relaxed);
        }
        fault
    }

    /// Whether a token was drawn just now.
    async fn login(&self, at: usize) -> Result<bool, Fault> {
        #[derive(Deserialize)]
        struct Login {
            token: String,
        }
        let Some((user, password)) = &self.settings.user else { return Ok(false) };
        if self.token.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(false);
        }
        let body = serde_json::json!({ "name": user, "password": password }).to_string();
        let text = match self.once(at, "/v3/auth/authenticate", &body).await {
            Ok(text) => text,
            // A user was named, but the server asks for none.
            Err(Fault::Said { message, .. }) if message.contains("authentication is not enabled") => return Ok(true),
            // Whatever was to be done under it was not sent.
            Err(Fault::Lost(why)) => return Err(Fault::NotSent(why)),
            Err(fault) => return Err(fault),
        };
        let login: Login = serde_json::from_str(&text).map_err(|_| Fault::NotSent("it gave no token".to_owned()))?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(login.token);
        Ok(true)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.settings.shown)
    }
}

/// Does all at once, and returns what came of each in their order.
pub(super) async fn all<T, F: Future<Output = T>>(work: impl IntoIterator<Item = F>) -> Vec<T> {
    let mut work: Vec<_> = work.into_iter().map(|one| (Box::pin(one), None)).collect();
    poll_fn(|context| {
        for (one, done) in work.iter_mut().filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(answer) = one.as_mut().poll(context) {
                *done = Some(answer);
            }
        }
        if work.iter().all(|(_, done)| done.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    work.into_iter().filter_map(|(_, done)| done).collect()
}

/// Between two attempts; nothing is decided by it.
pub(super) async fn pause(span: Duration) {
    #[expect(clippy::disallowed_methods, reason = "a pause between attempts may well stop during suspend")]
    tokio::time::sleep(span).await;
}
