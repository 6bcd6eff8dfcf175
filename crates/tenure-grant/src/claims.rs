//! What a signed grant says.

use crate::error::{SignError, VerifyError};
use crate::wall::UnixTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;
use tenure_core::{Epoch, GrantId, ResourceName, SinkId, StoreIdentity, Token};

/// How long a signature is good for after it was made. A holder signs anew at each use, so that this bounds only a text
/// that was stolen, and the time for which a retired key must still be known.
pub const LIFETIME: Duration = Duration::from_mins(5);

/// How far the signer's clock may go ahead of the verifier's: a signature is good from so long before it was made. It is
/// the signer who makes the allowance, where it can be seen; a verifier needs no leeway of its own.
pub const ALLOWANCE: Duration = Duration::from_mins(1);

/// The version of the claims. Another one is refused.
const VERSION: u64 = 1;

/// What a signed grant says, once its signature was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claims {
    /// Who granted it: the `iss`.
    pub authority: StoreIdentity,
    /// What was granted: resource (`sub`), epoch (`epoch`), grant (`jti`).
    pub token: Token,
    /// The receivers for which it was signed: the `aud`.
    pub sinks: BTreeSet<SinkId>,
    /// When it was signed: the `iat`.
    pub issued: UnixTime,
    /// From when it may be shown: the `nbf`.
    pub not_before: UnixTime,
    /// Until when it may be shown: the `exp`, half-open. It says nothing about whose turn it is.
    pub expires: UnixTime,
}

/// As it is written. Order and names are the format; `aud` is always a list.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Payload {
    v: u64,
    iss: String,
    sub: String,
    aud: Vec<String>,
    jti: String,
    epoch: u64,
    iat: u64,
    nbf: u64,
    exp: u64,
}

/// What is read first: a later version may hold other claims.
#[derive(Deserialize)]
struct Version {
    v: u64,
}

impl Claims {
    /// The claims of a grant that is signed now.
    pub(crate) fn now(authority: StoreIdentity, token: Token, sinks: BTreeSet<SinkId>, now: UnixTime) -> Self {
        Self { authority, token, sinks, issued: now, not_before: now.before(ALLOWANCE), expires: now.after(LIFETIME) }
    }

    pub(crate) fn write(&self) -> Result<Vec<u8>, SignError> {
        let payload = Payload {
            v: VERSION,
            iss: self.authority.to_string(),
            sub: self.token.resource.to_string(),
            aud: self.sinks.iter().map(ToString::to_string).collect(),
            jti: self.token.grant.to_string(),
            epoch: self.token.epoch.get(),
            iat: self.issued.as_secs(),
            nbf: self.not_before.as_secs(),
            exp: self.expires.as_secs(),
        };
        serde_json::to_vec(&payload).map_err(|error| SignError::Claims { why: error.to_string() })
    }

    /// Reads what was signed. The messages hold no values: they are not the verifier's to show.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, VerifyError> {
        let malformed = |error: &serde_json::Error| VerifyError::Malformed {
            part: "payload",
            why: format!("it does not hold the claims of a grant (column {})", error.column()),
        };
        let Version { v } = serde_json::from_slice(payload).map_err(|error| malformed(&error))?;
        if v != VERSION {
            return Err(VerifyError::Version { found: v, known: VERSION });
        }
        let payload: Payload = serde_json::from_slice(payload).map_err(|error| malformed(&error))?;
        let wrong = |name: &'static str| move |why: String| VerifyError::Claim { name, why };
        let claims = Self {
            authority: StoreIdentity::new(&payload.iss).map_err(|error| wrong("iss")(error.to_string()))?,
            token: Token {
                resource: ResourceName::new(&payload.sub).map_err(|error| wrong("sub")(error.to_string()))?,
                epoch: Epoch::new(payload.epoch).map_err(|error| wrong("epoch")(error.to_string()))?,
                grant: payload.jti.parse::<GrantId>().map_err(|error| wrong("jti")(error.to_string()))?,
            },
            sinks: sinks(&payload.aud).map_err(wrong("aud"))?,
            issued: UnixTime::from_secs(payload.iat),
            not_before: UnixTime::from_secs(payload.nbf),
            expires: UnixTime::from_secs(payload.exp),
        };
        claims.check_times()?;
        Ok(claims)
    }

    fn check_times(&self) -> Result<(), VerifyError> {
        let wrong = |why: &str| Err(VerifyError::Claim { name: "exp", why: why.to_owned() });
        if self.issued < self.not_before || self.expires <= self.issued {
            return wrong("nbf, iat and exp do not follow each other");
        }
        // A key that was retired so long ago need not be known any more.
        if self.expires.since(self.not_before) > LIFETIME + ALLOWANCE {
            return wrong("it is good for longer than a signature may be");
        }
        Ok(())
    }

    /// Refuses it outside its time. No leeway: the signer made the allowance.
    pub(crate) fn check_now(&self, now: UnixTime) -> Result<(), VerifyError> {
        if now < self.not_before {
            return Err(VerifyError::NotYet { by: self.not_before.since(now) });
        }
        if now >= self.expires {
            return Err(VerifyError::Expired { by: now.since(self.expires) });
        }
        Ok(())
    }
}

fn sinks(names: &[String]) -> Result<BTreeSet<SinkId>, String> {
    let mut sinks = BTreeSet::new();
    for name in names {
        if !sinks.insert(SinkId::new(name).map_err(|error| error.to_string())?) {
            return Err("a receiver is named twice".to_owned());
        }
    }
    Ok(sinks)
}
