use crate::error::AcquireError;
use crate::keeper::{Excuse, Keeper, News, SealNews, Wish};
use crate::lease::Lease;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::holder::Policy;
use tenure_core::{NameError, ResourceName, SinkId, Timing, Ttl};
use tenure_sink::Sink;

/// A wish for a resource. Await it.
///
/// Dropping the future at any moment leaves no lease behind for longer than one request.
///
/// # Waiting
///
/// Wishes of one [`Tenure`](crate::Tenure) for one resource are served in the order in which they were first polled, and
/// only the first of them talks with the authority. Among several processes there is no such order. Where the store tells
/// of changes, whoever waits looks at a random moment within a quarter of a second of being told, earlier the longer it has
/// waited, and spares the look when somebody else was granted the resource meanwhile; without news it looks every five
/// seconds or so, or every third of its ttl if that is shorter. Where the store cannot tell (SQLite), it looks five times a
/// second. In either case it looks when the holder's time is over. A wish outlives outages of the authority within its
/// time.
#[derive(Debug)]
#[must_use = "nothing is asked for until this is awaited"]
pub struct Acquire {
    keeper: Arc<Keeper>,
    resource: Result<ResourceName, NameError>,
    ttl: Duration,
    margin: Option<Duration>,
    wait: Duration,
    policy: Policy,
    sinks: Vec<Arc<dyn Sink>>,
    progress_within: Option<Duration>,
    label: Option<String>,
    excuse: Excuse,
    news: Option<News>,
}

impl Acquire {
    /// How long a wish waits at most unless told otherwise, so that no task hangs for ever.
    pub const WAIT: Duration = Duration::from_secs(30);

    pub(crate) fn new(keeper: Arc<Keeper>, resource: Result<ResourceName, NameError>) -> Self {
        Self {
            keeper,
            resource,
            ttl: Ttl::DEFAULT.get(),
            margin: None,
            wait: Self::WAIT,
            policy: Policy::default(),
            sinks: Vec::new(),
            progress_within: None,
            label: None,
            excuse: Excuse::default(),
            news: None,
        }
    }

    /// How long the lease lasts without a renewal; it is renewed every third of it.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How much earlier than the authority the holder stops believing. The default is a tenth of the ttl.
    pub const fn margin(mut self, margin: Duration) -> Self {
        self.margin = Some(margin);
        self
    }

    /// How long to wait at most for the resource and for its receivers. Zero asks once.
    pub const fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Whether one unanswered renewal is a loss.
    pub const fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// A receiver to be sealed before the takeover is announced. May be called more than once; all are sealed side by side. It
    /// is asked on the keeper's thread, where renewals run too: one of your own must not block there.
    ///
    /// One that does not answer is waited for 10 s at first. One that fails is asked again after 50 ms, then after twice as
    /// long each time up to 2 s, each spread by a half, until the time to [`wait`](Self::wait) is over. After one ttl the grant
    /// is given back for half a second and asked for anew, since another candidate may reach what this one cannot.
    pub fn sink(mut self, sink: Arc<dyn Sink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Lets the takeover be announced without these receivers, if they are all that is missing after this long. Unless this is
    /// said, nothing is excused, and one receiver that is down keeps the resource from being held.
    ///
    /// **What is given up**: at a receiver that was excused, this lease is refused until it is sealed there, and a former
    /// holder may still be accepted. Everywhere else nothing changes. [`Checkpoint::excused`](crate::Checkpoint::excused) and
    /// [`may_write_to`](crate::Checkpoint::may_write_to) say which it is about; the authority's record and history name it. Its
    /// sealing goes on for as long as the lease is held.
    ///
    /// `after` is counted from the grant. It must be shorter than [`wait`](Self::wait) to come into effect. A receiver is
    /// excused only after a try that has failed, or has lasted for a second.
    pub fn excuse(mut self, sinks: impl IntoIterator<Item = SinkId>, after: Duration) -> Self {
        self.excuse.sinks.extend(sinks);
        self.excuse.after = after;
        self
    }

    /// Whom to tell when a receiver could not be sealed, was excused, or is sealed after all. Called on the keeper's thread,
    /// where renewals run too: it must not block.
    pub fn on_seal_news(mut self, hear: impl Fn(&SealNews) + Send + Sync + 'static) -> Self {
        self.news = Some(News::new(hear));
        self
    }

    /// No checkpoint within this time is a loss, so that a hung job is not renewed for ever.
    pub const fn progress_within(mut self, span: Duration) -> Self {
        self.progress_within = Some(span);
        self
    }

    /// A label for the trace events, such as the number of a batch. Put no secrets into it.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    pub(crate) fn into_wish(self) -> Result<(Arc<Keeper>, Wish), AcquireError> {
        let timing = Timing::of(Ttl::new(self.ttl)?);
        let timing = match self.margin {
            Some(margin) => timing.with_margin(margin)?,
            None => timing,
        };
        let named = self.excuse.sinks.iter().find(|name| !self.sinks.iter().any(|sink| sink.id() == *name));
        if let Some(sink) = named {
            return Err(AcquireError::NotExcusable { sink: sink.clone() });
        }
        let wish = Wish {
            resource: self.resource?,
            timing,
            policy: self.policy,
            wait: self.wait,
            sinks: self.sinks.into(),
            progress_within: self.progress_within,
            label: self.label.map(Into::into),
            excuse: self.excuse,
            news: self.news,
        };
        Ok((self.keeper, wish))
    }
}

impl IntoFuture for Acquire {
    type Output = Result<Lease, AcquireError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let (keeper, wish) = self.into_wish()?;
            keeper.acquire(wish).await
        })
    }
}
