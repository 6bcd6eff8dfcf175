//! A receiver behind HTTP passes the suite, under both rules, with every seal and every write signed.

use super::raw::{self, Reply};
use super::service::Service;
use crate::id;
use std::collections::BTreeSet;
use std::sync::Arc;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Digest, Epoch, Generation, OperationId, Outcome, Replayed, ResourceName, SinkId, Token, Verdict};
use tenure_grant::Signer;
use tenure_sink::conformance::{Capabilities, Held, SinkUnderTest, run_all};
use tenure_sink::http::{HttpSink, Kind};
use tenure_sink::{Answer, Description, Found, Lookup, Rows, Sink, SinkError};

#[test]
fn a_receiver_behind_http_passes_the_suite_under_the_sealed_rule() {
    run_all(|| Box::new(Behind::new(Arc::new(Service::start(Rule::Sealed)))));
}

#[test]
fn a_receiver_behind_http_passes_the_suite_under_the_high_water_rule() {
    run_all(|| Box::new(Behind::new(Arc::new(Service::start(Rule::HighWater)))));
}

struct Behind {
    service: Arc<Service>,
    sink: Signing,
}

/// The suite seals without a signature, as a holder's keeper does not.
#[derive(Debug)]
struct Signing {
    sink: HttpSink,
    signer: Signer,
}

impl Sink for Signing {
    fn id(&self) -> &SinkId {
        self.sink.id()
    }

    fn rule(&self) -> Rule {
        self.sink.rule()
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        self.sink.describe(resource)
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let mut names = enrolled.clone();
        names.insert(self.id().clone());
        let signed = self.signer.sign(token, &names).unwrap();
        Box::pin(async move { self.sink.seal_signed(signed.as_str(), token, generation, enrolled).await })
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        self.sink.forget(resource, cut)
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        self.sink.rows(after, limit)
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        self.sink.reopen()
    }
}

impl Behind {
    fn new(service: Arc<Service>) -> Self {
        let sink = Signing { sink: service.sink(), signer: service.signer.clone() };
        Self { service, sink }
    }
}

/// The verdict that a response is.
fn verdict(reply: &Reply) -> Result<Verdict, SinkError> {
    if reply.status == 200 {
        return Ok(match reply.header("tenure-replay") {
            None => Verdict::Written,
            Some(_) => Verdict::Replay(Replayed {
                epoch: reply.header("tenure-epoch").unwrap().parse().unwrap(),
                outcome: Outcome::new(&reply.body).unwrap(),
            }),
        });
    }
    let problem = reply.problem();
    match problem.verdict() {
        Some(verdict) => Ok(verdict),
        None if problem.kind == Kind::Busy => {
            Err(SinkError::Busy { place: "shop".to_owned(), waited: problem.waited.unwrap_or_default() })
        }
        None => panic!("{reply:?}"),
    }
}

impl SinkUnderTest for Behind {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn capabilities(&self) -> Capabilities {
        // It is SQLite behind it.
        Capabilities { seals_past_a_stopped_writer: false }
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        Box::new(Self::new(Arc::clone(&self.service)))
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        let url = format!("http://{}/nothing", self.service.address);
        (HttpSink::open(&url).err(), HttpSink::open(&url).is_ok())
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        verdict(&self.service.post("/shop", token, operation, &[], value))
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        let reply = self.service.post("/shop", token, operation, &[("x-fails", "1")], "half");
        assert_eq!((reply.status, reply.body.as_str()), (500, "the effect failed"));
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        let reply = self.service.post("/lookup", token, Some(operation), &[], "");
        if reply.status == 204 {
            return Ok(Ok(Lookup::Absent));
        }
        if reply.status != 200 {
            return verdict(&reply).map(Err);
        }
        let mut parts = reply.body.splitn(3, ' ');
        let mut part = || parts.next().unwrap();
        let epoch = part().parse().unwrap();
        let hex = part();
        let mut digest = [0; 32];
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
        }
        Ok(Ok(Lookup::Found(Found { epoch, digest: Digest(digest), outcome: Outcome::new(part()).unwrap() })))
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        self.service.value(resource)
    }

    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        let reply = self.service.post("/hold", token, None, &[], "");
        assert_eq!(reply.status, 200, "{reply:?}");
        Box::new(Open { service: &self.service, id: reply.body })
    }
}

struct Open<'a> {
    service: &'a Service,
    id: String,
}

impl Held for Open<'_> {
    fn finish(self: Box<Self>, value: &str) -> Result<Verdict, String> {
        let reply = raw::send(self.service.address, "POST", &format!("/finish/{}", self.id), &[], value.as_bytes());
        if reply.status == 200 { Ok(Verdict::Written) } else { Err(reply.body) }
    }
}

#[test]
fn what_it_is_is_asked_when_it_is_opened() {
    let service = Service::start(Rule::HighWater);
    let sink = service.sink();
    assert_eq!((sink.id(), sink.rule(), sink.asks_signature()), (&id(), Rule::HighWater, false));
    let service = Service::start(Rule::Sealed);
    assert!(service.sink().asks_signature());
    let opened = tenure_sink::connect(&service.url()).unwrap();
    assert_eq!(opened.id(), &id());
}
