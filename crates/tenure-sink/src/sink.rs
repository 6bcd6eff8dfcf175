//! What a holder needs of a receiver in order to seal it.

use crate::SinkError;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tenure_core::fence::{FenceRow, Forgetting, Rule, Sealing};
use tenure_core::{Epoch, Generation, ResourceName, SinkId, Token};

/// A boxed future, so that a sink can be chosen at run time. It runs on any runtime and never blocks it.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A receiver of effects, as a candidate sees it: it is read, sealed, and made to forget. Writes go another way: through
/// the receiver's own transaction.
///
/// # Contract
///
/// Each clause is a function of the `conformance` suite.
///
/// 1. **One step.** The check of a token, the effect and the operation's record are one atomic step: all of them stand, or
///    none, also after a crash. A raised fence goes back with its effect.
/// 2. **Token first.** The token is judged by [`tenure_core::fence::admit`] before anything else, also before a replay is
///    looked for. Accepted epochs never fall (I1).
/// 3. **Seal.** `seal` judges by [`tenure_core::fence::seal`] and makes the row durable before it returns. After that no
///    older grant's write is accepted (I2). Repeating it changes nothing but the seal's number, which only grows.
/// 4. **Barrier.** When `seal` returns [`Sealing::Seal`], no transaction that checked an older token is open (I10). A sink
///    that cannot wait any longer answers a transient error and has sealed nothing.
/// 5. **Generation.** It changes whenever the sink may have forgotten a seal, and a row of another generation admits
///    nothing under [`Rule::Sealed`] (I3). A seal bound to another generation is refused.
/// 6. **Enrolment.** The row keeps the union of all enrolled sets that it was ever given, and `seal` returns it.
/// 7. **Memory.** A row has no time to live, no clean-up and no reset: only `forget` removes it, and the floor that it
///    leaves refuses every token at or below the cut (I9). The floor never falls.
/// 8. **No row, no write.** Under [`Rule::Sealed`] a sink without a row accepts nothing (I11). A sink that is not there is
///    an error and is never created by use.
/// 9. **High water.** A sink under [`Rule::HighWater`] is never enrolled and never sealed: `seal` is refused with
///    [`SinkError::NeverSealed`].
/// 10. **Bounded.** Every call ends within the sink's own bound on waiting. The error says what held it up.
/// 11. **Cancellation.** Dropping a returned future leaves the change made or not made, never half.
/// 12. **Listing.** `rows` shows the fence of every resource that has one, each once, in an order of the sink's own: an
///     authority that was restored learns from it what it has forgotten.
pub trait Sink: Send + Sync + std::fmt::Debug {
    /// The name under which the authority enrols it.
    fn id(&self) -> &SinkId;

    /// What it accepts. One under [`Rule::HighWater`] is neither enrolled nor sealed.
    fn rule(&self) -> Rule;

    /// Reads how the sink stands to a resource. The generation is read before the authority is asked to bind it.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read. Try again when [`SinkError::is_transient`].
    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>>;

    /// Registers a token, if it is not older than what is registered. `generation` is the one that the authority has
    /// bound for this token; `enrolled` is all that the caller knows to be enrolled.
    ///
    /// # Errors
    /// [`SinkError`]: whether it was sealed is not known. Sealing again is safe; announcing is not.
    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>>;

    /// Whether it seals signed grants alone: then [`seal`](Self::seal) refuses, and [`seal_signed`](Self::seal_signed) is
    /// called instead.
    fn asks_signature(&self) -> bool {
        false
    }

    /// The same as [`seal`](Self::seal), with the signed grant of this token. One that asks for no signature does not look
    /// at it.
    ///
    /// # Errors
    /// As [`seal`](Self::seal). [`SinkError::Unverified`]: nothing was sealed, and the same grant never will be.
    fn seal_signed<'a>(
        &'a self,
        signed: &'a str,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let _ = signed;
        self.seal(token, generation, enrolled)
    }

    /// Closes a retired resource for every token at or below the cut, and drops its row unless it lies above.
    ///
    /// # Errors
    /// [`SinkError`]: whether it was forgotten is not known. Repeating it is safe.
    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>>;

    /// The fences that come after `after`'s, at most `limit` of them. Fewer come only when there are no more.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read. Try again when [`SinkError::is_transient`].
    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>>;

    /// The operator's call after a restore that the sink cannot notice: it starts a new generation, in which nothing is
    /// sealed yet. Returns the new generation.
    ///
    /// # Errors
    /// [`SinkError`]: whether it was reopened is not known. Repeating it is safe.
    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>>;

    /// How a sink of this kind may lose what it has answered to be written or sealed, also where everything is set right;
    /// `None` for one that keeps it.
    fn may_lose(&self) -> Option<&'static str> {
        None
    }

    /// What weakens this very sink, and what to change, for a person: settings above all.
    ///
    /// # Errors
    /// [`SinkError`]: it was not found out.
    fn warnings(&self) -> Answer<'_, Result<Vec<String>, SinkError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

impl<S: Sink + ?Sized> Sink for Arc<S> {
    fn id(&self) -> &SinkId {
        (**self).id()
    }

    fn rule(&self) -> Rule {
        (**self).rule()
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        (**self).describe(resource)
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        (**self).seal(token, generation, enrolled)
    }

    fn asks_signature(&self) -> bool {
        (**self).asks_signature()
    }

    fn seal_signed<'a>(
        &'a self,
        signed: &'a str,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        (**self).seal_signed(signed, token, generation, enrolled)
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        (**self).forget(resource, cut)
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        (**self).rows(after, limit)
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        (**self).reopen()
    }

    fn may_lose(&self) -> Option<&'static str> {
        (**self).may_lose()
    }

    fn warnings(&self) -> Answer<'_, Result<Vec<String>, SinkError>> {
        (**self).warnings()
    }
}

/// A piece of what a sink knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// The fences, each with its resource.
    pub rows: Vec<(ResourceName, FenceRow)>,
    /// Tokens at or below it are refused where there is no row; `None` when nothing was ever forgotten.
    pub floor: Option<Epoch>,
}

/// How a sink stands to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The sink's present generation.
    pub generation: Generation,
    /// The fence of the resource; `None` when nothing was ever registered, or it was forgotten.
    pub row: Option<FenceRow>,
    /// Tokens at or below it are refused where there is no row; `None` when nothing was ever forgotten.
    pub floor: Option<Epoch>,
}
