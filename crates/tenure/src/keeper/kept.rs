use super::ask::{FIRST_PAUSE, LONGEST_PAUSE, is_worth_repeating};
use super::lookout::jittered;
use super::{Held, Shared, locked};
use crate::error::AcquireError;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_authority::{AuthorityError, Scope, TimeSource, random_bits};
use tenure_core::decide::{Refusal, Reply, Request};
use tenure_core::holder::{Gate, HeldSession, KnownGrants, Policy, RenewAnswer, SessionStep};
use tenure_core::record::{Grant, Holdings, LeaseRecord};
use tenure_core::{Epoch, GrantId, HolderClock, Instant, Loss, ResourceName, SessionId, Timing, Token};

/// A session of this process, and the task that keeps it alive.
pub(super) struct Kept {
    /// Until the keeper ends, which takes the session out of its list.
    shared: Arc<Shared>,
    pub(super) id: SessionId,
    pub(super) timing: Timing,
    pub(super) policy: Policy,
    /// The own deadline: every checkpoint of every lease on the session reads it.
    pub(super) gate: Gate,
    lost: AtomicU8,
    state: Mutex<State>,
}

/// What one try to open a session came to.
enum Opening {
    Opened(HeldSession),
    /// Once more, after at least so long.
    Again(Duration, AcquireError),
}

#[derive(Debug)]
struct State {
    held: HeldSession,
    known: KnownGrants,
    /// Leases, and wishes under way. A session that nobody uses is closed instead of renewed.
    users: usize,
    closing: bool,
    /// Differences that proved nothing, because something was under way.
    unsettled: u8,
}

/// After so many differences in a row that proved nothing the list is asked for all the same: the comparison itself
/// leaves out whatever is under way.
const UNSETTLED_MAX: u8 = 3;

impl Kept {
    /// Why the session is lost; the deadline when nobody has said anything else.
    pub(super) fn loss(&self) -> Loss {
        Loss::from_code(self.lost.load(Ordering::Acquire)).unwrap_or(Loss::DeadlinePassed)
    }

    pub(super) fn lose(&self, loss: Loss) {
        let _ = self.lost.compare_exchange(0, loss as u8, Ordering::AcqRel, Ordering::Acquire);
        self.gate.close();
    }

    /// Takes a place on the session, unless it is lost or being closed.
    fn enter(&self, now: Instant<HolderClock>) -> bool {
        let mut state = locked(&self.state);
        let open = !state.closing && self.gate.is_open(now);
        if open {
            state.users += 1;
            self.shared.enter();
        }
        open
    }

    pub(super) fn leave(&self) {
        {
            let mut state = locked(&self.state);
            state.users = state.users.saturating_sub(1);
        }
        self.shared.leave();
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn began(&self, grant: GrantId) {
        locked(&self.state).known.began(grant);
    }

    pub(super) fn settled(&self, grant: GrantId, before: Option<Epoch>, now: Option<Epoch>) {
        locked(&self.state).known.settled(grant, before, now);
    }
}

impl Shared {
    /// The session for these spans, with a place taken on it; opened when there is none.
    pub(super) async fn session(
        self: &Arc<Self>,
        resource: &ResourceName,
        timing: Timing,
        policy: Policy,
        until: Instant<HolderClock>,
    ) -> Result<Arc<Kept>, AcquireError> {
        let now = self.now().map_err(|loss| AcquireError::LostAtOnce { resource: resource.clone(), loss })?;
        if let Some(kept) = self.find(timing, policy, now) {
            return Ok(kept);
        }
        // One at a time: wishes that come together would open a session each, and each would be renewed for ever.
        let patience = until.max(now.after(timing.attempt()));
        let _turn = tokio::select! {
            biased;
            turn = self.opening.lock() => turn,
            () = self.pause_until(now, patience) => {
                let (resource, waited) = (resource.clone(), patience.since(&now));
                return Err(AcquireError::Unanswered { resource, waited, error: AuthorityError::Unknown });
            }
        };
        let now = self.now().map_err(|loss| AcquireError::LostAtOnce { resource: resource.clone(), loss })?;
        match self.find(timing, policy, now) {
            Some(kept) => Ok(kept),
            None => self.open(resource, timing, policy, until).await,
        }
    }

    fn find(&self, timing: Timing, policy: Policy, now: Instant<HolderClock>) -> Option<Arc<Kept>> {
        let sessions = locked(&self.sessions);
        sessions.iter().find(|kept| kept.timing == timing && kept.policy == policy && kept.enter(now)).cloned()
    }

    async fn open(
        self: &Arc<Self>,
        resource: &ResourceName,
        timing: Timing,
        policy: Policy,
        until: Instant<HolderClock>,
    ) -> Result<Arc<Kept>, AcquireError> {
        let began = self.now().map_err(|loss| AcquireError::LostAtOnce { resource: resource.clone(), loss })?;
        let mut pause = FIRST_PAUSE;
        loop {
            let (wanted, error) = match self.open_once(resource, timing, policy, began, until).await? {
                Opening::Opened(session) => return Ok(self.keep(session)),
                Opening::Again(wanted, error) => (wanted, error),
            };
            let left = self.now().map_or(Duration::ZERO, |now| until.since(&now));
            if left.is_zero() || wanted > left {
                return Err(error);
            }
            self.pause(wanted.max(jittered(pause)).min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn open_once(
        &self,
        resource: &ResourceName,
        timing: Timing,
        policy: Policy,
        began: Instant<HolderClock>,
        until: Instant<HolderClock>,
    ) -> Result<Opening, AcquireError> {
        let unanswered = |error: AuthorityError| AcquireError::Unanswered {
            resource: resource.clone(),
            waited: self.now().unwrap_or(began).since(&began),
            error,
        };
        let refused = |refusal| AcquireError::Refused { resource: resource.clone(), refusal };
        let id = SessionId::from_bits(random_bits()?);
        let hello = Request::Hello { seen: self.latest_seen() };
        let asked_at = match self.insist(&hello, timing.attempt(), until).await.map_err(unanswered)? {
            Ok(Reply::Hello { now, .. }) => now,
            Ok(_) => return Err(AcquireError::Closed),
            Err(refusal) => return Ok(Opening::Again(Duration::ZERO, refused(refusal))),
        };
        // Counted from before the first sending, however often it is repeated.
        let sent = self.now_in_order().map_err(|loss| AcquireError::LostAtOnce { resource: resource.clone(), loss })?;
        let request = Request::Open {
            id,
            owner: self.owner.clone(),
            on_this_host: self.is_on_the_stores_host(),
            ttl: timing.ttl(),
            asked_at,
            seen: self.latest_seen(),
        };
        let patience = until.min(sent.after(timing.belief()));
        match self.insist(&request, timing.attempt(), patience).await {
            Ok(Ok(_)) => Ok(Opening::Opened(HeldSession::opened(id, timing, policy, sent))),
            Ok(Err(refusal @ Refusal::TtlTooLong { .. })) => Err(refused(refusal)),
            Ok(Err(refusal @ Refusal::Quarantined { remaining })) => Ok(Opening::Again(remaining, refused(refusal))),
            // Too long under way: the next one may be quicker.
            Ok(Err(refusal)) => Ok(Opening::Again(Duration::ZERO, refused(refusal))),
            // It may be open without our knowing; nobody will renew it, and it ends with its ttl.
            Err(error) if is_worth_repeating(&error) => Ok(Opening::Again(Duration::ZERO, unanswered(error))),
            Err(error) => Err(unanswered(error)),
        }
    }

    /// Whether holders here end with the store's machine, and need not be waited for after it was rebooted.
    fn is_on_the_stores_host(&self) -> bool {
        let store = self.authority.store().capabilities();
        store.clock == TimeSource::Host && store.scope < Scope::Network
    }

    fn keep(self: &Arc<Self>, held: HeldSession) -> Arc<Kept> {
        self.enter();
        let kept = Arc::new(Kept {
            shared: Arc::clone(self),
            id: held.id(),
            timing: held.timing(),
            policy: held.policy(),
            gate: Gate::until(held.deadline()),
            lost: AtomicU8::new(0),
            state: Mutex::new(State { held, known: KnownGrants::default(), users: 1, closing: false, unsettled: 0 }),
        });
        locked(&self.sessions).push(Arc::clone(&kept));
        tracing::debug!(owner = %self.owner, session = %kept.id, "session opened");
        let shared = Arc::clone(self);
        self.spawn({
            let kept = Arc::clone(&kept);
            async move { shared.renew_for_ever(&kept).await }
        });
        kept
    }

    async fn renew_for_ever(self: &Arc<Self>, kept: &Arc<Kept>) {
        let loss = loop {
            let now = match self.now_in_order() {
                Ok(now) => now,
                Err(loss) => break loss,
            };
            let step = locked(&kept.state).held.next_step(now);
            match step {
                SessionStep::Over(loss) => break loss,
                SessionStep::Wait { until } => self.pause_until(now, until).await,
                SessionStep::Renew { id, n } => {
                    if self.close_if_idle(kept).await {
                        break Loss::Ended;
                    }
                    self.renew(kept, id, n).await;
                }
            }
        };
        self.end(kept, loss);
    }

    async fn renew(self: &Arc<Self>, kept: &Arc<Kept>, id: SessionId, n: u64) {
        let moves = locked(&kept.state).known.moves();
        let request = Request::Renew { id, n, seen: self.latest_seen() };
        // Not beyond the own deadline: whoever waits for the loss must hear of it then, not when this try has ended.
        let left = kept
            .gate
            .deadline()
            .map_or(Duration::ZERO, |deadline| self.now().map_or(Duration::ZERO, |now| deadline.since(&now)));
        let answer = match self.ask(&request, kept.timing.attempt().min(left)).await {
            Ok(Ok(Reply::Renewed { holdings, seen })) => RenewAnswer::Granted { holdings, seen },
            Ok(Ok(_)) | Err(_) => RenewAnswer::Unanswered,
            Ok(Err(refusal)) => {
                tracing::warn!(owner = %self.owner, session = %id, %refusal, "renewal refused");
                RenewAnswer::Refused
            }
        };
        let Ok(now) = self.now_in_order() else { return kept.lose(Loss::ClockJumped) };
        let (deadline, differs) = {
            let mut state = locked(&kept.state);
            let holdings = state.held.handle_renewed(n, now, answer);
            (state.held.deadline(), holdings.is_some_and(|holdings| state.differs(holdings, moves)))
        };
        if matches!(answer, RenewAnswer::Granted { .. }) && kept.gate.extend(deadline) {
            tracing::trace!(owner = %self.owner, session = %id, n, "session renewed");
        }
        if differs {
            // Apart from the renewals, which must not wait for it.
            let (shared, kept) = (Arc::clone(self), Arc::clone(kept));
            self.spawn(async move { shared.compare_grants(&kept).await });
        }
    }

    /// The authority's account of this session's grants differs from ours: what is gone is lost, what is strange is
    /// released.
    async fn compare_grants(self: &Arc<Self>, kept: &Arc<Kept>) {
        let mine =
            || self.slots.held().into_iter().filter(|held| held.session().id == kept.id && held.loss().is_none());
        let asked: BTreeSet<Grant> = mine().map(|held| Grant::from(held.token())).collect();
        let listed = tokio::select! {
            biased;
            listed = self.authority.grants(kept.id) => listed,
            () = self.pause(kept.timing.attempt()) => return,
        };
        let Ok(listed) = listed else { return };
        let held: Vec<Arc<Held>> = mine().collect();
        let now_held: BTreeSet<Grant> = held.iter().map(|held| Grant::from(held.token())).collect();
        let listed: Vec<Token> = listed.iter().map(LeaseRecord::token).collect();
        let grants = listed.iter().map(Grant::from).collect();
        let found = locked(&kept.state).known.compare(&grants, &asked, |grant| now_held.contains(&grant));
        for held in held.iter().filter(|held| found.gone.contains(&Grant::from(held.token()))) {
            held.lose(Loss::Revoked);
        }
        for token in listed.into_iter().filter(|token| found.strange.contains(&Grant::from(token))) {
            tracing::warn!(owner = %self.owner, resource = %token.resource, epoch = token.epoch.get(), "unknown grant released");
            let _ = self.ask(&Request::Release { token }, kept.timing.attempt()).await;
        }
    }

    async fn close_if_idle(&self, kept: &Kept) -> bool {
        {
            let mut state = locked(&kept.state);
            if state.users > 0 {
                return false;
            }
            state.closing = true;
        }
        self.close(kept).await;
        true
    }

    async fn close(&self, kept: &Kept) {
        // Unanswered, it ends by its deadline all the same.
        let _ = self.ask(&Request::Close { id: kept.id }, kept.timing.attempt()).await;
    }

    /// Every lease on the session is lost at once.
    fn end(&self, kept: &Arc<Kept>, loss: Loss) {
        kept.lose(loss);
        locked(&self.sessions).retain(|other| other.id != kept.id);
        for held in self.slots.held().into_iter().filter(|held| held.session().id == kept.id) {
            held.lose(kept.loss());
        }
    }

    /// The last word of a keeper that stops: bounded, since nothing depends on it.
    pub(super) async fn close_sessions(self: &Arc<Self>) {
        let sessions = std::mem::take(&mut *locked(&self.sessions));
        for kept in sessions {
            kept.lose(Loss::Ended);
            tokio::select! {
                biased;
                () = self.close(&kept) => {}
                () = self.pause(Duration::from_secs(1)) => {}
            }
        }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("id", &self.id).field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl State {
    fn differs(&mut self, holdings: Holdings, moves: u64) -> bool {
        let proved = self.known.differs(holdings, moves);
        self.unsettled = if proved || self.known.agrees(holdings) { 0 } else { self.unsettled.saturating_add(1) };
        let long_enough = self.unsettled >= UNSETTLED_MAX;
        if long_enough {
            self.unsettled = 0;
        }
        proved || long_enough
    }
}
