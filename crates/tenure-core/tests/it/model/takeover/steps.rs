//! What happens in a world of authorities, holders and sinks, one step at a time.

use super::super::store::{Executed, ModelStore};
use super::sink::{Fencing, Sink};
use super::{ForgetMessage, Grant, SealMessage, State, Takeover, Without, operator, resource, sink_id, sink_index};
use std::collections::BTreeSet;
use tenure_core::decide::{Change, Refusal, Reply, Request, SinkRefusal};
use tenure_core::fence::{Admission, Forgetting, HeldRow, still_held};
use tenure_core::holder::{HeldLease, LeasePhase, LeaseStep};
use tenure_core::record::{LeaseRecord, Owner, Phase, Seen, SessionRecord, SessionState};
use tenure_core::{
    GrantId, InstanceId, Instant, Loss, Over, OwnerName, SessionId, SinkId, StoreIdentity, Token, Ttl, Verdict,
    invariants,
};

impl State {
    pub(super) fn lease(&self) -> Option<&LeaseRecord> {
        self.store.lease(&resource())
    }

    pub(super) fn execute(&mut self, request: &Request) -> Result<Reply, Refusal> {
        let before = self.lease().cloned();
        let Executed { answer, swaps } = self.store.execute(request, self.now);
        let mut last = before;
        for swap in swaps {
            let Change::Lease(after) = swap.change else { continue };
            if let Some(before) = &last {
                self.broken.moved_back |= !invariants::leases_move_one_way(before, &after);
                if let Request::Announce { excused, .. } = request
                    && (before.phase == Phase::Sealing && after.phase == Phase::Held)
                {
                    self.broken.announced_unsealed |= !invariants::announced_means_sealed(&after, excused);
                }
            }
            last = Some(after);
        }
        if let Some(LeaseRecord { phase: Phase::Retiring { cut, forgotten }, sinks, .. }) = self.lease() {
            let waiting = sinks.keys().filter(|sink| !forgotten.contains(*sink));
            let granted = self.grants.len();
            let messages: Vec<_> =
                waiting.map(|sink| ForgetMessage { sink: sink_index(sink), cut: *cut, granted }).collect();
            self.forgets.extend(messages);
        }
        answer
    }

    pub(super) fn token(&self, grant: usize) -> Token {
        self.grants[grant].lease.token().unwrap().clone()
    }

    /// The newest one that has the sink registered, as far as was announced.
    pub(super) fn newest_announced(&self, sink: usize) -> Option<usize> {
        self.grants.iter().rposition(|grant| grant.announced && !grant.excused.contains(&sink))
    }

    /// The takeover was announced without these sinks.
    fn announced(&mut self, model: &Takeover, holder: usize, without: &BTreeSet<SinkId>) {
        let grant = &mut self.grants[holder];
        grant.lease.handle_announced();
        grant.announced = true;
        let last = model.sinks - 1;
        let named = if model.excuses { BTreeSet::from([last]) } else { BTreeSet::new() };
        let without: BTreeSet<usize> = without.iter().map(sink_index).collect();
        self.broken.excused_unnamed |= !without.is_subset(&named);
        if model.without != Some(Without::SealOfTheExcused) {
            grant.excused = without.intersection(&named).copied().collect();
        }
    }

    pub(super) fn end_former_session(&mut self) {
        if let Some(id) = self.lease().filter(|lease| lease.is_granted()).map(|lease| lease.session) {
            let (actor, reason) = operator();
            let ended = self.execute(&Request::RevokeSession { id, actor, reason });
            assert_eq!(ended, Ok(Reply::Ended));
        }
    }

    pub(super) fn grant(&mut self, model: &Takeover, kind: usize) -> bool {
        let number = self.grants.len();
        let session = SessionId::from_bits(number as u128 + 1);
        let grant = GrantId::from_bits(if model.without == Some(Without::GrantIds) { 7 } else { number as u128 + 1 });
        let adapters = model.adapters[kind].clone();
        let ids: BTreeSet<_> = if model.fencing.is_sealed() {
            adapters.iter().map(|sink| sink_id(*sink)).collect()
        } else {
            BTreeSet::new()
        };
        self.end_former_session();
        let owner = Owner { name: OwnerName::new("w").unwrap(), instance: InstanceId::from_bits(number as u128) };
        let opened = self.execute(&Request::Open {
            id: session,
            owner,
            on_this_host: false,
            ttl: Ttl::MIN,
            asked_at: self.now,
            seen: Seen::default(),
        });
        match opened {
            Ok(_) => {}
            // The quarantine that the request has set off is news.
            Err(Refusal::Quarantined { .. }) => return true,
            Err(other) => panic!("{other:?}"),
        }
        let mut lease = HeldLease::new(resource(), grant, ids.clone());
        let asked = self.execute(&Request::Acquire { resource: resource(), grant, session, sinks: ids });
        let Ok(Reply::Granted(granted)) = asked else { return false };
        let announced = granted.announced;
        lease.handle_granted(granted);
        let incarnation = self.store.authority.record.incarnation;
        let gone_back =
            |snapshot: &ModelStore| self.restores > 0 && incarnation <= snapshot.authority.record.incarnation;
        self.broken.i7 |= model.notices && self.snapshot.as_deref().is_some_and(gone_back);
        let excused = BTreeSet::new();
        self.grants.push(Grant { lease, session, adapters, announced, excused, life: self.restores });
        true
    }

    pub(super) fn step(&mut self, model: &Takeover, holder: usize, step: &LeaseStep) {
        let (token, session) = (self.token(holder), self.grants[holder].session);
        let reseals = self.grants[holder].announced;
        let request = match step {
            LeaseStep::Describe(id) => {
                let sink = &self.sinks[sink_index(id)];
                let (generation, enrolled) = (sink.generation(model), sink.enrolled(model));
                let lease = &mut self.grants[holder].lease;
                lease.handle_described(id, generation, enrolled);
                // Refused by name: it cannot seal what it has no adapter for.
                if lease.without_adapter().is_some() {
                    lease.lose(Loss::SealRefused);
                }
                return;
            }
            LeaseStep::Bind(generations) if reseals && model.without == Some(Without::BindBeforeReseal) => {
                return self.grants[holder].lease.handle_bound(generations);
            }
            LeaseStep::Enrol(sinks) => Request::Enrol { token, sinks: sinks.clone() },
            LeaseStep::Bind(generations) => Request::Bind { token, session, generations: generations.clone() },
            LeaseStep::Mark(generations) => Request::Sealed { token, generations: generations.clone() },
            LeaseStep::Announce { excused } => Request::Announce { token, session, excused: excused.clone() },
            LeaseStep::Report(shown) => Request::Refused { token, shown: *shown },
            LeaseStep::Release(token) => Request::Release { token: token.clone() },
            LeaseStep::Acquire { .. } | LeaseStep::Seal { .. } | LeaseStep::Complete(_) => return,
        };
        let answer = self.execute(&request);
        let lease = &mut self.grants[holder].lease;
        match (step, answer) {
            (LeaseStep::Report(_) | LeaseStep::Release(_), _) => lease.handle_given_up(),
            (_, Err(_)) => lease.lose(Loss::SealRefused),
            (LeaseStep::Enrol(sinks), Ok(_)) => lease.handle_enrolled(sinks),
            (LeaseStep::Bind(generations), Ok(_)) => lease.handle_bound(generations),
            (LeaseStep::Mark(generations), Ok(_)) => {
                lease.handle_marked(generations);
                for sink in generations.keys() {
                    self.grants[holder].excused.remove(&sink_index(sink));
                }
            }
            (LeaseStep::Announce { excused }, Ok(_)) => self.announced(model, holder, excused),
            (_, Ok(_)) => {}
        }
    }

    pub(super) fn announce_early(&mut self, model: &Takeover, holder: usize) -> bool {
        let lease = &self.grants[holder].lease;
        let enough = match model.without {
            Some(Without::SealsAtAllSinks | Without::NamesOfTheExcused) => {
                let registered = |sink: &Sink| sink.row.as_ref().is_some_and(|row| row.grant == lease.grant());
                self.sinks.iter().any(registered)
            }
            _ => holder > 0 && *self.grants[holder - 1].lease.phase() == LeasePhase::Released,
        };
        let all = self.lease().map(|lease| lease.sinks.keys().cloned().collect()).unwrap_or_default();
        let (token, session) = (self.token(holder), self.grants[holder].session);
        if !enough || self.execute(&Request::Announce { token, session, excused: all }).is_err() {
            return false;
        }
        let without = self.grants[holder].lease.unsealed_sinks();
        self.announced(model, holder, &without);
        true
    }

    pub(super) fn deliver_seal(&mut self, model: &Takeover, message: &SealMessage) {
        let token = self.token(message.grant);
        let answer = self.sinks[message.sink].seal(model, &token, &message.generation, &message.enrolled);
        let lease = &mut self.grants[message.grant].lease;
        lease.handle_seal(&sink_id(message.sink), &message.generation, answer.into());
        if lease.without_adapter().is_some() {
            lease.lose(Loss::SealRefused);
        }
    }

    pub(super) fn write(&mut self, model: &Takeover, grant: usize, sink: usize) -> bool {
        let token = self.token(grant);
        let newest_announced = self.newest_announced(sink);
        let judged = self.sinks[sink].judge(model, &token);
        if matches!(judged, Admission::Refuse(_)) || self.held(model, &token).is_err() {
            return false;
        }
        self.broken.h1 |= model.fencing == Fencing::Held && !self.stands(&token);
        let target = &mut self.sinks[sink];
        if let Admission::Raise(row) = judged {
            target.row = Some(row);
        }
        self.broken.i1 |= !invariants::i1_epochs_never_fall(target.last, token.epoch);
        self.broken.i2 |= !invariants::i2_nothing_older_after_announce(grant, newest_announced);
        self.broken.i9 |= !invariants::i9_forgotten_stays_closed(grant, target.forgot);
        target.last = target.last.max(Some(token.epoch));
        true
    }

    /// What a sink in the authority's own database reads and judges beside its fence.
    pub(super) fn held(&self, model: &Takeover, token: &Token) -> Result<(), Over> {
        if model.fencing != Fencing::Held || model.without == Some(Without::LeaseRow) {
            return Ok(());
        }
        let session = self.lease().and_then(|lease| self.store.session(lease.session)).cloned();
        let session = session.map(|session| match model.without {
            Some(Without::SessionState) => SessionRecord { state: SessionState::Live, ..session },
            _ => session,
        });
        let row = self.lease().map(|lease| HeldRow::of(lease, session.as_ref(), &self.store.authority.record));
        let now = self.now.as_nanos() - u64::from(model.without == Some(Without::HalfOpen));
        still_held(row.as_ref(), token, Instant::from_nanos(now))
    }

    /// Whether the grant of a token stands, told by the records alone: for the watch on what the sink has judged.
    fn stands(&self, token: &Token) -> bool {
        self.lease().is_some_and(|lease| {
            lease.token() == *token
                && matches!(lease.phase, Phase::Sealing | Phase::Held)
                && self.store.is_live(lease.session)
                && self.store.session(lease.session).is_some_and(|session| self.now < session.deadline)
        })
    }

    pub(super) fn renew(&mut self, holder: usize) {
        let id = self.grants[holder].session;
        let Some(n) = self.store.session(id).map(|session| session.renew_seq) else { return };
        let _ = self.execute(&Request::Renew { id, n, seen: Seen::default() });
        // The number only tells one renewal from its repetition, which is another model's.
        if let Some(versioned) = self.store.sessions.get_mut(&id) {
            versioned.record.renew_seq = 0;
        }
    }

    pub(super) fn hear(&mut self, model: &Takeover, grant: usize, sink: usize) {
        let token = self.token(grant);
        let target = &self.sinks[sink];
        let Admission::Refuse(verdict) = target.judge(model, &token) else { return };
        let shown = target.row.as_ref().map(|row| SinkRefusal { epoch: row.epoch, grant: Some(row.grant) });
        let lease = &mut self.grants[grant].lease;
        match (verdict, shown) {
            (Verdict::Unsealed, _) if lease.may_write() => lease.handle_unsealed(&sink_id(sink)),
            (Verdict::Stale { current, .. }, shown) => {
                lease.handle_refused(shown.unwrap_or(SinkRefusal { epoch: current, grant: None }), false);
            }
            (Verdict::Conflict { .. }, Some(shown)) => lease.handle_refused(shown, true),
            _ => {}
        }
    }

    pub(super) fn seal_added(&mut self, model: &Takeover, holder: usize) {
        let added = model.sinks - 1;
        let token = self.token(holder);
        let generation = self.sinks[added].generation(model);
        let _ = self.sinks[added].seal(model, &token, &generation, &BTreeSet::from([sink_id(added)]));
    }

    pub(super) fn forget(&mut self, model: &Takeover, message: &ForgetMessage) {
        let ForgetMessage { sink, cut, granted } = *message;
        let request = match self.sinks[sink].forget(model, cut, granted) {
            Forgetting::Forget { .. } => Request::Forgotten { resource: resource(), cut, sink: sink_id(sink) },
            Forgetting::Above { epoch, .. } => Request::ForgetRefused { resource: resource(), cut, row: epoch },
        };
        // A late one is refused by the authority, and nobody minds.
        let _ = self.execute(&request);
    }

    pub(super) fn restore(&mut self, model: &Takeover) {
        self.restores += 1;
        if let Some(snapshot) = &self.snapshot {
            self.store = (**snapshot).clone();
        }
        if model.notices {
            self.store.observed = StoreIdentity::new(format!("restore {}", self.restores)).unwrap();
        }
    }

    pub(super) fn take_quiet_steps(&mut self, model: &Takeover) {
        for holder in 0..self.grants.len() {
            let is_quiet = |step: &LeaseStep| match step {
                LeaseStep::Describe(_) => model.failovers == 0,
                LeaseStep::Mark(_) => true,
                _ => false,
            };
            while let Some(step) = model.steps(&self.grants[holder].lease).into_iter().find(is_quiet) {
                self.step(model, holder, &step);
            }
        }
    }

    /// Whatever a holder wants sealed is on its way at once, and stays so.
    pub(super) fn send_seals(&mut self) {
        for (number, grant) in self.grants.iter().enumerate() {
            for step in grant.lease.next_steps() {
                if let LeaseStep::Seal { sink, generation, enrolled } = step {
                    let sink = sink_index(&sink);
                    self.seals.insert(SealMessage { grant: number, sink, generation, enrolled });
                }
            }
        }
    }
}
