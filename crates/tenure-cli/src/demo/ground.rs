//! On which authority the incident is played, and in which time.

use super::DemoError;
use super::receiver::{Kind, Receiver};

use crate::access::open_shared;
use crate::owner::Who;
use std::time::Duration;
use tenure::authority::{Authority, random_bits, store};
use tenure::blocking::wait_for;
use tenure::core::decide::{Refusal, Reply, Request};
use tenure::core::fence::Forgetting;
use tenure::core::{Actor, Reason, ResourceName};

/// Where the incident is played.
#[derive(Debug)]
pub(super) enum Ground {
    /// A SQLite file of each scene's own, on a clock that the director moves.
    Own,
    /// An authority that others may use, in real time.
    Shared(Shared),
}

/// An authority that others may use: the demo keeps to names of its own, and gives them back.
#[derive(Debug)]
pub(super) struct Shared {
    /// With its password.
    pub(super) url: String,
    /// What all names of this run begin with.
    name: String,
    authority: Authority,
}

/// How long a lease of a shared authority lasts: short, since it is waited for.
pub(super) const TTL: Duration = Duration::from_secs(2);

/// How often a retirement may be driven on.
const TURNS_MAX: usize = 16;

impl Ground {
    /// The resource of a scene.
    pub(super) fn resource(&self, scene: &str) -> String {
        match self {
            Self::Own => super::worker::RESOURCE.to_owned(),
            Self::Shared(shared) => shared.resource(scene),
        }
    }
}

impl Shared {
    pub(super) fn open(url: &str) -> Result<Self, DemoError> {
        let authority = open_shared(url)?;
        let name = format!("demo/{:08x}", random_bits().map_err(crate::problem::Problem::from)? >> 96);
        Ok(Self { url: store::shared(url), name, authority })
    }

    /// The address without its password.
    pub(super) fn shown(&self) -> String {
        store::shown(&self.url)
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The name with which all resources of this run begin.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn resource(&self, scene: &str) -> String {
        format!("{}/{scene}", self.name)
    }

    /// Retires what was held in a scene. The error says what is left, and why.
    pub(super) fn clear(&self, scene: &str, receiver: &str, kind: Kind) -> Result<(), String> {
        let resource = self.resource(scene);
        self.retire(&resource, receiver, kind).map_err(|why| format!("{resource} ({why})"))
    }

    fn retire(&self, resource: &str, receiver: &str, kind: Kind) -> Result<(), String> {
        let resource = ResourceName::new(resource).map_err(|error| error.to_string())?;
        let actor = Actor::new(Who::here(Some("demo")).process().to_string()).map_err(|error| error.to_string())?;
        let retire = Request::Retire { resource: resource.clone(), actor: actor.clone() };
        let mut answer = self.ask(&retire)?;
        if let Err(Refusal::WrongPhase { .. }) = answer {
            // A demo that broke off: whoever held it is gone, and nobody but the demo knows the name.
            let reason = Reason::new("the demo broke off").map_err(|error| error.to_string())?;
            let revoke = Request::Revoke { resource: resource.clone(), only: None, actor, reason };
            self.ask(&revoke)?.map_err(|refusal| refusal.to_string())?;
            answer = self.ask(&retire)?;
        }
        for _ in 0..TURNS_MAX {
            let cut = match answer.map_err(|refusal| refusal.to_string())? {
                Reply::Retired => return Ok(()),
                Reply::Retiring { cut, .. } => cut,
                other => return Err(format!("the authority answered {other:?}")),
            };
            let receiver = Receiver::at(receiver, kind).map_err(|error| error.to_string())?;
            let sink = receiver.sink().map_err(|error| error.to_string())?.ok_or("an unknown receiver is enrolled")?;
            let told = match wait_for(sink.forget(&resource, cut)).map_err(|error| error.to_string())? {
                Forgetting::Forget { .. } => {
                    Request::Forgotten { resource: resource.clone(), cut, sink: sink.id().clone() }
                }
                Forgetting::Above { epoch, .. } => {
                    Request::ForgetRefused { resource: resource.clone(), cut, row: epoch }
                }
            };
            answer = self.ask(&told)?;
        }
        Err("its receiver's epochs keep rising".to_owned())
    }

    fn ask(&self, request: &Request) -> Result<Result<Reply, Refusal>, String> {
        wait_for(self.authority.execute(request)).map_err(|error| error.to_string())
    }
}
