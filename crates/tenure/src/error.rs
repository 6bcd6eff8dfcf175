use std::time::Duration;
use tenure_authority::{AuthorityError, ClockError, EntropyError, StoreError};
use tenure_core::decide::Refusal;
use tenure_core::{Epoch, Loss, NameError, ResourceName, SinkId, TimingError, Token};
use tenure_sink::SinkError;

/// The lease is lost, for good: stop the work. It is no failure of the work, and is counted apart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is lost under epoch {}: {loss}; stop this work, its token stays dead", token.resource, token.epoch)]
pub struct Lost {
    /// What was held.
    pub token: Token,
    /// Why it is lost.
    pub loss: Loss,
}

/// Why there is no connection to an authority.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The store at the address cannot be used; the message says what to do.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The clock cannot be read.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The operating system gives no random bits.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The owner's name breaks a limit.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The authority did not answer.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The authority neither answered nor failed. Look at the address, the network, and whether its server runs.
    #[error("the authority did not answer within {waited:?}: check its address, the network, and that its server runs")]
    Silent {
        /// How long it was waited for.
        waited: Duration,
    },
    /// The operating system refused a thread.
    #[error("no thread could be started for the keeper ({0}): renewals need one of their own")]
    Thread(String),
}

/// Why a resource was not acquired. Nothing is held, and nothing stays behind for longer than one request.
#[derive(Debug, thiserror::Error)]
pub enum AcquireError {
    /// The authority refused, to the end of the time to wait. The refusal says who holds it, and for how long still.
    #[error("{resource} was not acquired: {refusal}")]
    Refused {
        /// What was asked for.
        resource: ResourceName,
        /// The last refusal.
        refusal: Refusal,
    },
    /// This very process holds it already: use that lease, or release it.
    #[error("{resource} was not acquired: this process holds it already{}; use that lease or release it", under(.epoch.as_ref()))]
    HeldHere {
        /// What was asked for.
        resource: ResourceName,
        /// Under which epoch; `None` while it is being acquired or given up.
        epoch: Option<Epoch>,
    },
    /// A receiver could not be sealed.
    #[error("{resource} was not acquired: its receiver {sink} could not be sealed: {error}")]
    Sink {
        /// What was asked for.
        resource: ResourceName,
        /// Which receiver.
        sink: SinkId,
        /// What it said.
        error: SinkError,
    },
    /// The authority did not answer in the time to wait.
    #[error("{resource} was not acquired: the authority did not answer{}: {error}", within(*waited))]
    Unanswered {
        /// What was asked for.
        resource: ResourceName,
        /// How long it was tried.
        waited: Duration,
        /// The last error.
        error: AuthorityError,
    },
    /// A receiver is to be excused that the wish does not name: it would neither be sealed nor written to.
    #[error(
        "the receiver {sink} is to be excused, but is none of the wish's receivers: name it there, or correct the name"
    )]
    NotExcusable {
        /// Which.
        sink: SinkId,
    },
    /// It was granted, and lost again before it could be handed out.
    #[error("{resource} was granted and lost again before it was handed out: {loss}")]
    LostAtOnce {
        /// What was asked for.
        resource: ResourceName,
        /// Why.
        loss: Loss,
    },
    /// The resource's name breaks a limit.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The ttl or the margin breaks a limit.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// The clock cannot be read.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The operating system gives no random bits.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// The keeper's thread is gone: the connection was closed.
    #[error("the connection to the authority was closed: connect again")]
    Closed,
}

/// Why nothing may be written at one receiver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The lease is lost: stop the work.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The takeover was announced without it, and it is not sealed yet. It refuses this lease, and may accept a former holder.
    #[error(
        "{} is held under epoch {} without the receiver {sink}, which was excused: until it is sealed it refuses this worker and \
         may accept a former one; put the write off", token.resource, token.epoch
    )]
    Excused {
        /// Which.
        sink: SinkId,
        /// What is held.
        token: Token,
    },
    /// The lease was acquired without this receiver.
    #[error("the lease was acquired without the receiver {sink}: name it when you acquire")]
    NotMine {
        /// Which.
        sink: SinkId,
    },
}

fn under(epoch: Option<&Epoch>) -> String {
    epoch.map(|epoch| format!(" under epoch {epoch}")).unwrap_or_default()
}

/// Why a grant was not signed.
#[cfg(feature = "signed")]
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// It is not held any more: stop the work.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The connection was given no keys.
    #[error("there are no keys to sign with: give the connection a folder for them (Builder::keys)")]
    NoKeys,
    /// The keys cannot be used, or the grant is too long to be signed.
    #[error(transparent)]
    Sign(#[from] tenure_grant::SignError),
}

/// Why a lease was not released or completed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FinishError {
    /// It was lost before. A completion was *not accepted*; never force it.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The authority refused: the grant is not current. A completion was *not accepted*.
    #[error("{resource} was not finished: {refusal}")]
    Refused {
        /// What was held.
        resource: ResourceName,
        /// The refusal.
        refusal: Refusal,
    },
    /// Nobody knows whether the authority took it. Look at the resource before anything is done again.
    #[error("nobody knows whether the authority finished {resource}: {error}; look at it before you go on")]
    Unknown {
        /// What was held.
        resource: ResourceName,
        /// The last error.
        error: AuthorityError,
    },
    /// The outcome breaks a limit.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The keeper's thread is gone.
    #[error("the connection to the authority was closed: the lease ends with its session")]
    Closed,
}

/// Why a receiver's verdict could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum HeedError {
    /// The verdict, or the sealing that it asked for, means that the lease is lost.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The receiver could not be sealed again. The lease is held still; nothing is written there.
    #[error("the receiver {sink} could not be sealed again: {error}")]
    Sink {
        /// Which receiver.
        sink: SinkId,
        /// What it said.
        error: SinkError,
    },
    /// The lease was acquired without this receiver.
    #[error("the lease was acquired without the receiver {sink}: name it when you acquire")]
    NotMine {
        /// Which receiver.
        sink: SinkId,
    },
    /// The authority did not answer. The lease is held still.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The keeper's thread is gone.
    #[error("the connection to the authority was closed: the lease ends with its session")]
    Closed,
}

/// A wish that does not wait names no time.
fn within(waited: Duration) -> String {
    if waited.is_zero() { String::new() } else { format!(" within {waited:?}") }
}

#[cfg(test)]
mod tests;
