use crate::{Answer, Description, Rows, Sink, SinkError};
use std::collections::BTreeSet;
use std::future::ready;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, ResourceName, SinkId, Token};
use tenure_grant::Verifier;

/// A sink that seals signed grants alone, so that nobody raises its fence by showing a large epoch.
///
/// # What is not guaranteed
///
/// * It guards the seal and not the way around it: whoever can write to the sink's own store can write into its fence. Put
///   it where holders cannot go any other way, behind [`http::Routes`](crate::http) for one.
/// * Under [`Rule::HighWater`] it is the writes that raise the fence, and those do not come by here.
/// * Forgetting and reopening are an operator's, and are not signed.
///
/// The signature must name this sink and all receivers that the seal enrols, so that none is enrolled whom the holder did
/// not name.
#[derive(Debug)]
pub struct SignedOnly<S> {
    sink: S,
    verifier: Verifier,
}

impl<S: Sink> SignedOnly<S> {
    /// In front of a sink.
    pub const fn new(sink: S, verifier: Verifier) -> Self {
        Self { sink, verifier }
    }

    /// The sink behind it.
    pub const fn get_ref(&self) -> &S {
        &self.sink
    }

    /// What it verifies with.
    pub const fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    fn verify(&self, signed: &str, token: &Token, enrolled: &BTreeSet<SinkId>) -> Result<(), SinkError> {
        let id = self.sink.id();
        let wrong = |why: String| SinkError::Unverified { place: id.to_string(), why };
        let claims = match self.verifier.verify_token(signed, id, token) {
            Ok(claims) => claims,
            Err(error) if error.is_receivers() => {
                return Err(SinkError::Failed {
                    place: id.to_string(),
                    doing: "verifying a signed grant",
                    why: error.to_string(),
                });
            }
            Err(error) => return Err(wrong(error.to_string())),
        };
        match enrolled.iter().find(|other| !claims.sinks.contains(*other)) {
            Some(other) => {
                Err(wrong(format!("the receiver {other} would be enrolled, and the signed grant does not name it")))
            }
            None => Ok(()),
        }
    }
}

impl<S: Sink> Sink for SignedOnly<S> {
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
        _token: &'a Token,
        _generation: &'a Generation,
        _enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let place = self.sink.id().to_string();
        Box::pin(ready(Err(match self.sink.rule() {
            Rule::HighWater => SinkError::NeverSealed { place },
            Rule::Sealed | Rule::Held => SinkError::Unverified { place, why: UNSIGNED.to_owned() },
        })))
    }

    fn asks_signature(&self) -> bool {
        self.sink.rule().is_sealed()
    }

    fn seal_signed<'a>(
        &'a self,
        signed: &'a str,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        match self.verify(signed, token, enrolled) {
            Ok(()) => self.sink.seal_signed(signed, token, generation, enrolled),
            Err(error) => Box::pin(ready(Err(error))),
        }
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

    fn may_lose(&self) -> Option<&'static str> {
        self.sink.may_lose()
    }

    fn warnings(&self) -> Answer<'_, Result<Vec<String>, SinkError>> {
        self.sink.warnings()
    }
}

/// What is said to a candidate that has no keys.
pub(crate) const UNSIGNED: &str = "it seals signed grants alone, and this one is not signed. Give the connection the authority's keys (Builder::keys)";
