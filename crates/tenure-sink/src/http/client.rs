//! A sink behind [`Routes`](super::Routes), as a holder sees it.

mod settings;

use super::problem::{Kind, Problem};
use super::wire::{
    self, About, Describe, Described, Forget, ForgetAnswer, List, Listed, Page, ROWS_MAX, Reopened, Seal, SealAnswer,
};
use super::{TENURE_TOKEN, wire::Wrong};
use crate::home::Home;
use crate::{Answer, Description, Rows, Sink, SinkError};
use http::header::{AUTHORIZATION, HeaderValue};
use reqwest::Response;
use serde::Serialize;
use serde::de::DeserializeOwned;
use settings::Settings;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, ResourceName, SinkId, Token};

/// The longest answer. A full page of rows, each with a name of 512 bytes and a few receivers, is well below it.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// The sealing side of a sink behind HTTP. Cheap to clone.
///
/// It has a thread of its own for its connections, so that its futures may be awaited anywhere. What was sent goes on when
/// the future is dropped: the change is made, or not made, as the contract has it.
///
/// A request that was not answered may have been done. All that is asked here may be asked again.
#[derive(Clone)]
pub struct HttpSink(Arc<Inner>);

struct Inner {
    settings: Settings,
    client: reqwest::Client,
    home: Home,
    id: SinkId,
    rule: Rule,
    signed: bool,
}

impl HttpSink {
    /// Asks the receiver at the address who it is.
    ///
    /// The address is `http://HOST:PORT/PATH` or `https://…`, with the path under which the receiver has its
    /// [`Routes`](super::Routes). Parameters, each with its default:
    ///
    /// | parameter | meaning | unless said |
    /// |---|---|---|
    /// | `wait` | how long an answer is waited for | `10s` |
    /// | `tls_ca` | a file with the certificates to trust instead of the system's | |
    /// | `secret` | a file with the operator's secret, which only `forget`, `reopen` and `rows` need | |
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError::Address`] when the address makes no sense; [`SinkError::Unreachable`] when nobody answers there;
    /// [`SinkError::Missing`] and [`SinkError::Foreign`] when it is no receiver who answers.
    pub fn open(url: &str) -> Result<Self, SinkError> {
        let settings = Settings::of(url)?;
        let client = settings.client()?;
        let home = Home::start("tenure-http-sink").map_err(|error| SinkError::Failed {
            place: settings.place.clone(),
            doing: "starting a thread for the connections",
            why: error.to_string(),
        })?;
        let asked = (client.clone(), settings.clone());
        let about = home.block_on(async move {
            let (client, settings) = asked;
            let request = client.get(format!("{}/", settings.place));
            settings.answer::<About>(request, "asking").await
        });
        let about = about.unwrap_or_else(|| Err(settings.unreachable("its thread has ended".to_owned())))?;
        if about.tenure_sink != wire::VERSION {
            let (place, found) = (settings.place, i64::try_from(about.tenure_sink).unwrap_or(i64::MAX));
            let known = i64::try_from(wire::VERSION).unwrap_or(i64::MAX);
            return Err(SinkError::Schema { place, found, known, advice: "use the same version at both ends" });
        }
        let id = SinkId::new(&about.id).map_err(|error| settings.foreign(error.to_string()))?;
        let rule = rule_of(&about.rule).ok_or_else(|| settings.foreign(format!("it has the rule {:?}", about.rule)))?;
        Ok(Self(Arc::new(Inner { settings, client, home, id, rule, signed: about.signed })))
    }

    /// Posts to one of the routes, on the sink's own thread.
    fn post<A, T>(
        &self,
        path: &'static str,
        signed: Option<&str>,
        question: &impl Serialize,
    ) -> Answer<'static, Result<T, SinkError>>
    where
        A: DeserializeOwned + Send + 'static,
        T: TryFrom<A, Error = Wrong> + Send + 'static,
    {
        let (inner, settings) = (Arc::clone(&self.0), &self.0.settings);
        let body = serde_json::to_string(question).map_err(|error| settings.failed("asking", error.to_string()));
        let signed = signed.map(HeaderValue::from_str).transpose().map(|signed| {
            signed.map(|mut signed| {
                // Whoever prints the request does not print this.
                signed.set_sensitive(true);
                signed
            })
        });
        let signed = signed.map_err(|_| settings.failed("asking", "the signed grant is no header".to_owned()));
        let operator = matches!(path, "forget" | "reopen" | "rows");
        Box::pin(async move {
            let (body, signed) = (body?, signed?);
            let home = inner.home.clone();
            let asked = Arc::clone(&inner);
            let done = home.run(async move {
                let settings = &asked.settings;
                let mut request = asked.client.post(format!("{}/{path}", settings.place));
                request = request.header(http::header::CONTENT_TYPE, "application/json").body(body);
                if let Some(signed) = signed {
                    request = request.header(TENURE_TOKEN, signed);
                }
                if let Some(secret) = settings.secret.as_ref().filter(|_| operator) {
                    request = request.header(AUTHORIZATION, secret.clone());
                }
                let answer = settings.answer::<A>(request, path).await?;
                T::try_from(answer).map_err(|why| settings.foreign(why))
            });
            done.await.unwrap_or_else(|| Err(inner.settings.unreachable("its thread has ended".to_owned())))
        })
    }
}

impl Settings {
    async fn answer<A: DeserializeOwned>(
        &self,
        request: reqwest::RequestBuilder,
        doing: &'static str,
    ) -> Result<A, SinkError> {
        let response = request.send().await.map_err(|error| self.unreachable(innermost(&error)))?;
        let status = response.status();
        let body = self.body(response).await?;
        if status.is_success() {
            return serde_json::from_slice(&body)
                .map_err(|_| self.foreign("its answers are not a receiver's".to_owned()));
        }
        let place = self.place.clone();
        Err(match Problem::parse(&body) {
            Some(problem) => self.problem(problem, doing),
            None if status.as_u16() == 404 => SinkError::Missing { place },
            // A proxy between, or a server that is starting or ending.
            None if matches!(status.as_u16(), 429 | 502..=504) => self.unreachable(format!("status {status}")),
            None => self.failed(doing, format!("it answers with status {status}")),
        })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, SinkError> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(innermost(&error)))? {
            if body.len() + piece.len() > BYTES_MAX {
                return Err(self.foreign(format!("its answer has more than {BYTES_MAX} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    fn problem(&self, problem: Problem, doing: &'static str) -> SinkError {
        let place = self.place.clone();
        match problem.kind {
            Kind::Busy => SinkError::Busy { place, waited: problem.waited.unwrap_or_default() },
            Kind::Unreachable => SinkError::Unreachable { place, why: problem.detail },
            Kind::TokenRequired | Kind::Unverified | Kind::Elsewhere => {
                SinkError::Unverified { place, why: problem.detail }
            }
            Kind::NeverSealed => SinkError::NeverSealed { place },
            Kind::NotFound => SinkError::Missing { place },
            Kind::OperatorOnly => self.failed(doing, format!("{}; give its file with ?secret=FILE", problem.detail)),
            _ => self.failed(doing, problem.detail),
        }
    }

    fn unreachable(&self, why: String) -> SinkError {
        SinkError::Unreachable { place: self.place.clone(), why }
    }

    fn foreign(&self, why: String) -> SinkError {
        SinkError::Foreign { place: self.place.clone(), why }
    }

    fn failed(&self, doing: &'static str, why: String) -> SinkError {
        SinkError::Failed { place: self.place.clone(), doing, why }
    }
}

/// What really went wrong: the outer errors only say that a request failed. The address is left out of it.
fn innermost(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it does not answer in time".to_owned();
    }
    let mut innermost: &dyn Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

impl fmt::Debug for HttpSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSink")
            .field("place", &self.0.settings.place)
            .field("id", &self.0.id)
            .finish_non_exhaustive()
    }
}

impl Sink for HttpSink {
    fn id(&self) -> &SinkId {
        &self.0.id
    }

    fn rule(&self) -> Rule {
        self.0.rule
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        self.post::<Described, _>("describe", None, &Describe { resource: resource.to_string() })
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        self.post::<SealAnswer, _>("seal", None, &asked(token, generation, enrolled))
    }

    fn asks_signature(&self) -> bool {
        self.0.signed
    }

    fn seal_signed<'a>(
        &'a self,
        signed: &'a str,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        self.post::<SealAnswer, _>("seal", Some(signed), &asked(token, generation, enrolled))
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        self.post::<ForgetAnswer, _>("forget", None, &Forget { resource: resource.to_string(), cut: cut.get() })
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        let mut after = after.cloned();
        Box::pin(async move {
            let mut all = Rows { rows: Vec::new(), floor: None };
            // The receiver may give fewer at once than are asked for, and says whether there are more.
            loop {
                let piece = limit.saturating_sub(all.rows.len()).clamp(1, ROWS_MAX);
                let question = List { after: after.as_ref().map(ToString::to_string), limit: piece };
                let Page { listed, more } = self.post::<Listed, _>("rows", None, &question).await?;
                let is_last = !more.unwrap_or(listed.rows.len() >= piece);
                after = listed.rows.last().map(|(resource, _)| resource.clone());
                all.floor = listed.floor;
                all.rows.extend(listed.rows);
                if is_last || all.rows.len() >= limit {
                    all.rows.truncate(limit);
                    return Ok(all);
                }
            }
        })
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        self.post::<Reopened, _>("reopen", None, &serde_json::json!({}))
    }
}

fn rule_of(name: &str) -> Option<Rule> {
    Rule::ALL.into_iter().find(|rule| rule.name() == name)
}

fn asked(token: &Token, generation: &Generation, enrolled: &BTreeSet<SinkId>) -> Seal {
    Seal { token: token.to_string(), generation: generation.to_string(), enrolled: wire::written(enrolled) }
}

impl TryFrom<Reopened> for Generation {
    type Error = Wrong;
    fn try_from(reopened: Reopened) -> Result<Self, Wrong> {
        wire::generation(&reopened.generation)
    }
}
