use super::ask::is_worth_repeating;
use super::held::{Progress, Rare};
use super::kept::Kept;
use super::lookout::{Lookout, When};
use super::sealing::{Limits, Trouble, drive, sealed_sinks};
use super::slots::{Place, Turn};
use super::{Excuse, Held, Keeper, News, Shared};
use crate::acquire::Acquire;
use crate::error::AcquireError;
use crate::lease::Lease;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_authority::{AuthorityError, random_bits};
use tenure_core::decide::{Refusal, Reply, Request};
use tenure_core::holder::{HeldLease, LeasePhase, LeaseStep, Policy};
use tenure_core::{GrantId, HolderClock, Instant, Loss, ResourceName, SinkId, Timing, Token};
use tenure_sink::Sink;
use tokio::sync::oneshot;

/// What a caller wishes for.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) resource: ResourceName,
    pub(crate) timing: Timing,
    pub(crate) policy: Policy,
    pub(crate) wait: Duration,
    pub(crate) sinks: Arc<[Arc<dyn Sink>]>,
    pub(crate) progress_within: Option<Duration>,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) excuse: Excuse,
    pub(crate) news: Option<News>,
}

/// A candidate that cannot seal all of its receivers within a ttl gives the grant back and asks again after so long: another
/// one may reach them.
const GIVE_WAY: Duration = Duration::from_millis(500);

/// Where the answer goes, as long as somebody waits for it.
type Caller = oneshot::Sender<Result<Lease, AcquireError>>;

/// From the wish to a lease that is announced, or to a reason why not. Whatever was granted on the way is given up.
pub(super) async fn acquire(keeper: &Arc<Keeper>, wish: &Wish, reply: &mut Caller) -> Result<Arc<Held>, AcquireError> {
    let began = keeper.shared.now().map_err(|loss| wish.lost_at_once(loss))?;
    let until = began.after(wish.wait);
    let turn = take_turn(&keeper.shared, wish, reply, until).await?;
    let held = Attempts { keeper, wish, began, until, reply, seat: None }.run(turn.yields).await?;
    turn.hold(&held);
    Ok(held)
}

async fn take_turn(
    shared: &Shared,
    wish: &Wish,
    reply: &mut Caller,
    until: Instant<HolderClock>,
) -> Result<Turn, AcquireError> {
    let mut queued = match shared.slots.enter(&wish.resource) {
        Place::Mine(turn) => return Ok(turn),
        Place::Behind(queued) => queued,
    };
    loop {
        let now = shared.now().unwrap_or(until);
        tokio::select! {
            biased;
            () = reply.closed() => return Err(AcquireError::Closed),
            turn = queued.turn() => return turn.ok_or(AcquireError::Closed),
            () = shared.pause_until(now, until), if !now.reached(&until) => {}
            () = std::future::ready(()), if now.reached(&until) => {
                let epoch = shared.slots.epoch(&wish.resource);
                return Err(AcquireError::HeldHere { resource: wish.resource.clone(), epoch });
            }
        }
    }
}

/// One wish, tried until it is granted or its time is over.
struct Attempts<'a> {
    keeper: &'a Arc<Keeper>,
    wish: &'a Wish,
    began: Instant<HolderClock>,
    until: Instant<HolderClock>,
    reply: &'a mut Caller,
    /// The session on which it asks, with a place taken there, so that it is renewed while the wish waits.
    seat: Option<Arc<Kept>>,
}

/// What one attempt came to.
enum Attempt {
    Taken(Arc<Held>),
    /// Once more, if there is time.
    Again(When, AcquireError),
    Over(AcquireError),
}

impl Attempts<'_> {
    async fn run(mut self, yields: bool) -> Result<Arc<Held>, AcquireError> {
        let taken = self.until_taken(yields).await;
        // A lease keeps the place on its session.
        if let (Err(_), Some(kept)) = (&taken, self.seat) {
            kept.leave();
        }
        taken
    }

    async fn until_taken(&mut self, yields: bool) -> Result<Arc<Held>, AcquireError> {
        let (shared, wish) = (&self.keeper.shared, self.wish);
        let mut lookout = Lookout::new(shared, &wish.resource, wish.timing, self.began, self.until);
        if yields {
            tokio::select! {
                biased;
                () = self.reply.closed() => return Err(AcquireError::Closed),
                () = lookout.let_others() => {}
            }
        }
        loop {
            if self.reply.is_closed() {
                return Err(AcquireError::Closed);
            }
            let kept = self.session().await?;
            if self.reply.is_closed() {
                return Err(AcquireError::Closed);
            }
            let (when, error) = match self.attempt(&kept).await {
                Attempt::Taken(held) => return Ok(held),
                Attempt::Over(error) => return Err(error),
                Attempt::Again(when, error) => (when, error),
            };
            let left = shared.now().map_or(Duration::ZERO, |now| self.until.since(&now));
            if left.is_zero() {
                return Err(error);
            }
            tokio::select! {
                biased;
                () = self.reply.closed() => return Err(AcquireError::Closed),
                () = lookout.wait(when) => {}
            }
        }
    }

    /// The session of the last attempt, as long as it lives.
    async fn session(&mut self) -> Result<Arc<Kept>, AcquireError> {
        let (shared, wish) = (&self.keeper.shared, self.wish);
        let lives = |kept: &Arc<Kept>| shared.now().is_ok_and(|now| kept.gate.is_open(now));
        if let Some(kept) = self.seat.take() {
            if lives(&kept) {
                return Ok(Arc::clone(self.seat.insert(kept)));
            }
            kept.leave();
        }
        let kept = shared.session(&wish.resource, wish.timing, wish.policy, self.until).await?;
        Ok(Arc::clone(self.seat.insert(kept)))
    }

    async fn attempt(&mut self, kept: &Arc<Kept>) -> Attempt {
        let grant = match random_bits() {
            Ok(bits) => GrantId::from_bits(bits),
            Err(error) => return Attempt::Over(error.into()),
        };
        kept.began(grant);
        let mut lease = HeldLease::new(self.wish.resource.clone(), grant, sealed_sinks(&self.wish.sinks));
        if let Err(attempt) = self.ask_for(kept, &mut lease).await {
            kept.settled(grant, None, None);
            return attempt;
        }
        let (shared, wish) = (&self.keeper.shared, self.wish);
        let granted = shared.now().unwrap_or(self.until);
        let excusable = granted.after(wish.excuse.after);
        let gives_way = granted.after(wish.timing.ttl().get().max(wish.excuse.after.saturating_mul(2)));
        let limits = Limits {
            until: Some(self.until.min(gives_way)),
            excuse: Some((excusable, &wish.excuse.sinks)),
            news: wish.news.as_ref(),
            marked: None,
        };
        // A lost answer that came again may have found it announced; whatever is not sealed yet is sealed later.
        let driven = if lease.may_write() {
            Ok(())
        } else {
            tokio::select! {
                biased;
                driven = drive(shared, kept, &wish.sinks, &mut lease, &limits) => driven,
                // Nobody waits any more. A step that was under way is done or not done; what was granted is given up.
                () = self.reply.closed() => Ok(()),
            }
        };
        self.settle(kept, lease, driven).await
    }

    /// The grant itself. On the way out without one, nothing stands at the authority that would not be noticed.
    async fn ask_for(&self, kept: &Arc<Kept>, lease: &mut HeldLease) -> Result<(), Attempt> {
        let (shared, wish) = (&self.keeper.shared, self.wish);
        let sinks = match lease.next_steps().pop() {
            Some(LeaseStep::Acquire { sinks, .. }) => sinks,
            _ => return Err(Attempt::Over(AcquireError::Closed)),
        };
        let request =
            Request::Acquire { resource: wish.resource.clone(), grant: lease.grant(), session: kept.id, sinks };
        // Asked at least once, and again after a silence: the same id gets the same grant.
        let patience =
            shared.now().map_or(self.until, |now| self.until.max(now).min(now.after(kept.timing.attempt() * 2)));
        let refused = |refusal| AcquireError::Refused { resource: wish.resource.clone(), refusal };
        match shared.insist(&request, kept.timing.attempt(), patience).await {
            Ok(Ok(Reply::Granted(granted))) if granted.token.grant == lease.grant() => {
                lease.handle_granted(granted);
                Ok(())
            }
            Ok(Ok(Reply::Granted(granted))) => {
                // An earlier request of this process that was given up for lost: released first, then asked again.
                let release = Request::Release { token: granted.token };
                let _ = shared.ask(&release, kept.timing.attempt()).await;
                Err(Attempt::Again(
                    When::After(Duration::ZERO),
                    AcquireError::HeldHere { resource: wish.resource.clone(), epoch: None },
                ))
            }
            Ok(Ok(_)) => Err(Attempt::Over(AcquireError::Closed)),
            Ok(Err(refusal @ Refusal::Busy { remaining, .. })) => {
                Err(Attempt::Again(When::Free { remaining }, refused(refusal)))
            }
            Ok(Err(refusal @ Refusal::Quarantined { remaining })) => {
                Err(Attempt::Again(When::After(remaining), refused(refusal)))
            }
            Ok(Err(refusal @ Refusal::SessionEnded { .. })) => {
                kept.lose(Loss::RenewalRefused);
                Err(Attempt::Again(When::After(Duration::ZERO), refused(refusal)))
            }
            Ok(Err(refusal)) => Err(Attempt::Over(refused(refusal))),
            Err(error) => {
                give_back_unknown(shared, kept, lease).await;
                let error = self.unanswered(error);
                Err(error)
            }
        }
    }

    fn unanswered(&self, error: AuthorityError) -> Attempt {
        let repeat = is_worth_repeating(&error);
        let error = AcquireError::Unanswered { resource: self.wish.resource.clone(), waited: self.wish.wait, error };
        if repeat { Attempt::Again(When::Answered, error) } else { Attempt::Over(error) }
    }

    /// The lease after its seals: handed out, or given up.
    async fn settle(&self, kept: &Arc<Kept>, mut lease: HeldLease, driven: Result<(), Trouble>) -> Attempt {
        let (shared, wish) = (&self.keeper.shared, self.wish);
        let token = lease.token().cloned();
        // Asked once more after every wait: a grant that was overtaken meanwhile is not handed out (etcd #11456).
        let open = shared.now().is_ok_and(|now| kept.gate.is_open(now));
        let wanted = !self.reply.is_closed();
        match (driven, token) {
            (Ok(()), Some(token)) if lease.may_write() && open && wanted => {
                kept.settled(token.grant, None, Some(token.epoch));
                Attempt::Taken(self.hand_out(kept, token, lease.unsealed_sinks()))
            }
            (driven, _) => {
                let loss = match lease.phase() {
                    LeasePhase::Lost(loss) => *loss,
                    _ if open => Loss::Ended,
                    _ => kept.loss(),
                };
                lease.lose(loss);
                give_up_steps(shared, kept, &lease).await;
                kept.settled(lease.grant(), None, None);
                match driven {
                    Ok(()) | Err(Trouble::Lost) => Attempt::Again(When::After(Duration::ZERO), wish.lost_at_once(loss)),
                    Err(Trouble::Refused(refusal)) => {
                        Attempt::Over(AcquireError::Refused { resource: wish.resource.clone(), refusal })
                    }
                    Err(Trouble::Sink(sink, error)) => {
                        let asks_again = error.is_transient() || wish.excuse.sinks.contains(&sink);
                        let error = AcquireError::Sink { resource: wish.resource.clone(), sink, error };
                        if asks_again { Attempt::Again(When::After(GIVE_WAY), error) } else { Attempt::Over(error) }
                    }
                    Err(Trouble::Authority(error)) => self.unanswered(error),
                }
            }
        }
    }

    fn hand_out(&self, kept: &Arc<Kept>, token: Token, unsealed: BTreeSet<SinkId>) -> Arc<Held> {
        let (shared, wish) = (&self.keeper.shared, self.wish);
        let label = wish.label.clone();
        let wait = (wish.wait != Acquire::WAIT).then_some(wish.wait);
        let is_rare = !wish.sinks.is_empty() || label.is_some() || wish.progress_within.is_some() || wait.is_some();
        let now = shared.now().unwrap_or(self.until).as_nanos();
        let rare = is_rare.then(|| Rare {
            wait,
            sinks: Arc::clone(&wish.sinks),
            label: label.clone(),
            progress: wish.progress_within.map(|within| Progress::new(within, now)),
            excuse: wish.excuse.clone(),
            excused: Mutex::new(unsealed),
            news: wish.news.clone(),
            ..Rare::default()
        });
        let (owner, resource, epoch) = (&shared.owner, &token.resource, token.epoch.get());
        tracing::info!(%owner, %resource, epoch, label = label.as_deref(), "lease acquired");
        let held = Arc::new(Held::new(token, Arc::clone(kept), rare));
        if wish.progress_within.is_some() {
            Keeper::watch_progress(&held);
        }
        Keeper::seal_the_rest(&held);
        held
    }
}

impl Wish {
    /// The wish that led to a lease, to be sent once more.
    pub(crate) fn again(held: &Held) -> Self {
        let rare = held.rare();
        Self {
            resource: held.token().resource.clone(),
            timing: held.session().timing,
            policy: held.session().policy,
            wait: rare.and_then(|rare| rare.wait).unwrap_or(Acquire::WAIT),
            sinks: rare.map(|rare| Arc::clone(&rare.sinks)).unwrap_or_default(),
            progress_within: rare.and_then(|rare| rare.progress.as_ref()).map(|progress| progress.within),
            label: rare.and_then(|rare| rare.label.clone()),
            excuse: rare.map(|rare| rare.excuse.clone()).unwrap_or_default(),
            news: rare.and_then(|rare| rare.news.clone()),
        }
    }

    fn lost_at_once(&self, loss: Loss) -> AcquireError {
        AcquireError::LostAtOnce { resource: self.resource.clone(), loss }
    }
}

/// A grant that was asked for without an answer: looked up, and released if it is there. If it arrives later still, the
/// fingerprint of the next renewal shows it.
async fn give_back_unknown(shared: &Arc<Shared>, kept: &Arc<Kept>, lease: &HeldLease) {
    let resource = match lease.next_steps().pop() {
        Some(LeaseStep::Acquire { resource, .. }) => resource,
        _ => return,
    };
    let read = tokio::select! {
        biased;
        read = shared.authority.inspect(&resource) => read,
        () = shared.pause(kept.timing.attempt()) => return,
    };
    let Ok(read) = read else { return };
    if let Some(record) = read.view.lease
        && record.grant == lease.grant()
        && record.is_granted()
    {
        let _ = shared.ask(&Request::Release { token: record.token() }, kept.timing.attempt()).await;
    }
}

/// Sends what a lost lease owes: a report of the sink's refusal, or a release.
async fn give_up_steps(shared: &Arc<Shared>, kept: &Arc<Kept>, lease: &HeldLease) {
    let Some(token) = lease.token().cloned() else { return };
    for step in lease.next_steps() {
        let request = match step {
            LeaseStep::Report(shown) => Request::Refused { token: token.clone(), shown },
            LeaseStep::Release(token) => Request::Release { token },
            _ => continue,
        };
        let until = kept.gate.deadline().unwrap_or(Instant::from_nanos(0));
        let _ = shared.insist(&request, kept.timing.attempt(), until).await;
    }
}
