use std::collections::BTreeSet;
use tenure_authority::store::connect_on;
use tenure_authority::{Authority, BootClock, Clock, random_bits};
use tenure_core::decide::{Reply, Request};
use tenure_core::record::{Owner, Seen};
use tenure_core::{GrantId, InstanceId, OwnerName, ResourceName, SessionId, Ttl};
use tokio::runtime::Runtime;

/// An authority on the engine.
pub(crate) struct Ours {
    authority: Authority,
    session: SessionId,
}

/// One caller with a session and a resource of its own choice.
pub(crate) struct Caller {
    authority: Authority,
    session: SessionId,
    resource: ResourceName,
    n: u64,
}

impl Ours {
    pub(crate) fn open(runtime: &Runtime, url: &str) -> Self {
        let store = connect_on(url, Clock::Boot(BootClock), runtime.handle()).expect("an address");
        let authority = Authority::new(store);
        let session = runtime.block_on(opened(&authority));
        Self { authority, session }
    }

    /// Callers of one process: they share its session.
    pub(crate) fn cyclers(&self, callers: usize) -> Vec<Caller> {
        (0..callers).map(|n| self.caller(self.session, &format!("cycle-{n}"))).collect()
    }

    /// Each with a session of its own, as so many processes behind one server.
    pub(crate) async fn renewers(&self, callers: usize) -> Vec<Caller> {
        let mut renewers = Vec::new();
        for _ in 0..callers {
            renewers.push(self.caller(opened(&self.authority).await, "unused"));
        }
        renewers
    }

    /// A holder of so many leases on one session.
    pub(crate) async fn holder_of(&self, leases: usize) -> Vec<Caller> {
        let session = opened(&self.authority).await;
        let mut holder = self.caller(session, "unused");
        let mut under_way = tokio::task::JoinSet::new();
        for n in 0..leases {
            // It may take longer than a ttl.
            if n % 1_000 == 0 {
                holder.renew().await;
            }
            let (authority, request) =
                (self.authority.clone(), acquiring(&resource(&format!("held-{leases}-{n}")), session));
            under_way.spawn(async move { authority.execute(&request).await });
            if under_way.len() >= 256 {
                granted(&under_way.join_next().await);
            }
        }
        while let Some(answer) = under_way.join_next().await {
            granted(&Some(answer));
        }
        vec![holder]
    }

    fn caller(&self, session: SessionId, name: &str) -> Caller {
        Caller { authority: self.authority.clone(), session, resource: resource(name), n: 0 }
    }
}

type Answered = Result<Result<Reply, tenure_core::decide::Refusal>, tenure_authority::AuthorityError>;

fn granted(answer: &Option<Result<Answered, tokio::task::JoinError>>) {
    assert!(matches!(answer, Some(Ok(Ok(Ok(Reply::Granted(_)))))), "{answer:?}");
}

impl Caller {
    pub(crate) async fn cycle(&mut self) {
        let request = acquiring(&self.resource, self.session);
        let token = match self.authority.execute(&request).await {
            Ok(Ok(Reply::Granted(granted))) => granted.token,
            other => unreachable!("{other:?}"),
        };
        let released = self.authority.execute(&Request::Release { token }).await;
        assert!(matches!(released, Ok(Ok(Reply::Released))), "{released:?}");
    }

    pub(crate) async fn renew(&mut self) {
        let renewal = Request::Renew { id: self.session, n: self.n, seen: Seen::default() };
        let renewed = self.authority.execute(&renewal).await;
        assert!(matches!(renewed, Ok(Ok(Reply::Renewed { .. }))), "{renewed:?}");
        self.n += 1;
    }
}

fn acquiring(resource: &ResourceName, session: SessionId) -> Request {
    Request::Acquire { resource: resource.clone(), grant: GrantId::from_bits(bits()), session, sinks: BTreeSet::new() }
}

async fn opened(authority: &Authority) -> SessionId {
    let hello = authority.execute(&Request::Hello { seen: Seen::default() }).await;
    let Ok(Ok(Reply::Hello { now, .. })) = hello else { unreachable!("{hello:?}") };
    let id = SessionId::from_bits(bits());
    let opening = Request::Open {
        id,
        owner: Owner { name: OwnerName::new("bench").expect("a name"), instance: InstanceId::from_bits(bits()) },
        on_this_host: false,
        ttl: Ttl::DEFAULT,
        asked_at: now,
        seen: Seen::default(),
    };
    let opened = authority.execute(&opening).await;
    assert!(matches!(opened, Ok(Ok(Reply::Opened { .. }))), "{opened:?}");
    id
}

fn resource(name: &str) -> ResourceName {
    ResourceName::new(name).expect("a name")
}

fn bits() -> u128 {
    random_bits().expect("random bits")
}
