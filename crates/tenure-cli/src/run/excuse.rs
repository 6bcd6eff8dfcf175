//! The receivers that a command may start without, and what is said of those that cannot be sealed.

use super::voice::{Voice, Whisper};
use crate::problem::Problem;
use crate::span::Span;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenure::sink::Sink;
use tenure::{Acquire, AcquireError, SealNews, SinkId};

/// Who may be excused, after how long, and where it is said.
#[derive(Clone, Debug)]
pub(super) struct Excuse {
    sinks: BTreeSet<SinkId>,
    after: Duration,
    said: Whisper,
}

impl Excuse {
    /// Each name is the id of a receiver, or the address at which it was given.
    pub(super) fn of(
        names: &[String],
        (after, wait): (Duration, Duration),
        (urls, sinks): (&[String], &[Arc<dyn Sink>]),
        voice: &Voice,
    ) -> Result<Self, Problem> {
        let named = |name: &String| {
            let found = urls.iter().zip(sinks).find(|(url, sink)| *url == name || sink.id().as_str() == name);
            found.map(|(_, sink)| sink.id().clone()).ok_or_else(|| {
                let known: Vec<_> = sinks.iter().map(|sink| sink.id().as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let name = tenure::sink::shown(name);
                Problem::usage(format_args!("--excuse {name}: no --sink has this name or address; there is {known}"))
            })
        };
        let sinks = names.iter().map(named).collect::<Result<BTreeSet<_>, _>>()?;
        if !sinks.is_empty() && after >= wait {
            return Err(Problem::usage(format_args!(
                "--excuse-after {} never comes within --wait {}: give a longer wait, or excuse earlier",
                Span(after),
                Span(wait)
            )));
        }
        Ok(Self { sinks, after, said: voice.whisper() })
    }

    pub(super) fn wish(&self, wish: Acquire) -> Acquire {
        let said = self.said.clone();
        wish.excuse(self.sinks.iter().cloned(), self.after).on_seal_news(move |news| {
            if let Some(text) = sentence(news) {
                said.say(text);
            }
        })
    }

    /// Whether a receiver that could not be sealed may be there when it is asked again, or may be done without.
    pub(super) fn asks_again(&self, error: &AcquireError) -> bool {
        match error {
            AcquireError::Sink { sink, error, .. } => error.is_transient() || self.sinks.contains(sink),
            _ => false,
        }
    }
}

/// What a person has to know; nothing of a first failure, which the refusal tells, and less and less of those that follow.
fn sentence(news: &SealNews) -> Option<String> {
    match news {
        SealNews::Failed { sink, failures, error } if *failures > 1 && failures.is_power_of_two() => Some(format!(
            "the receiver {sink} could not be sealed {failures} times in a row, and is tried again: {error}"
        )),
        SealNews::Excused { sink } => Some(format!(
            "going on without the receiver {sink}, as --excuse allows: until it is sealed it refuses this run, and may accept \
             a former holder"
        )),
        SealNews::Sealed { sink } => Some(format!("the receiver {sink} is sealed now")),
        _ => None,
    }
}
