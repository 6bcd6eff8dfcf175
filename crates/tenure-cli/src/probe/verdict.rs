//! What a round proves. A late write that landed is proof by itself; that nothing landed proves something only with
//! evidence that the worker tried, or would have.

use super::reading::Reading;
use super::worker::Ended;
use serde::Serialize;

/// What came of a probe, worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The old worker changed nothing after the new one.
    Pass,
    /// Nothing is proved.
    Undecided,
    /// The old worker's write landed after the new one's.
    Fail,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Undecided => "UNDECIDED",
            Self::Fail => "FAIL",
        }
    }
}

/// Why it is certain that a late write was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Evidence {
    /// The receiver recorded a refusal while A went on.
    Refusal { before: Reading, after: Reading },
    /// A printed this after it was woken.
    Tried { line: String },
    /// A alone, stopped and woken in the same way, does change the value.
    Control,
}

/// A verdict with its reason, a sentence each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
    pub(super) evidence: Vec<Evidence>,
}

/// What was seen of the late write. Everything before it has gone as it should.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// The value while A was stopped and B had not begun.
    pub(super) paused: Reading,
    pub(super) b: Ended,
    /// The value after B, read twice: while nobody could write.
    pub(super) after_b: [Reading; 2],
    pub(super) a: Ended,
    pub(super) after_a: Reading,
    /// The receiver's record of refusals before A was woken and after it ended.
    pub(super) refusals: Option<[Reading; 2]>,
    /// The line of A in which `--tried` was found, after it was woken.
    pub(super) tried: Option<String>,
    /// Whether `--tried` was asked for.
    pub(super) asked_tried: bool,
}

/// What was seen of A without a B.
#[derive(Clone, Debug)]
pub(super) struct ControlFacts {
    /// Whether A got to the marker, and why not.
    pub(super) reached: Result<(), String>,
    pub(super) paused: Reading,
    pub(super) ended: Ended,
    pub(super) after: Reading,
}

/// Judges a round as far as it can be judged without a control run; `None` when only that can tell.
pub(super) fn judge(facts: &Facts) -> Option<Judgement> {
    let [after_b, again] = &facts.after_b;
    let undecided = |reason: String| Some(Judgement::undecided(reason));
    if !after_b.is_value() {
        return undecided(format!("the value after B is {after_b}"));
    }
    if after_b != again {
        return undecided(format!(
            "the reading changes by itself: {after_b} and then {again}, while nobody could write; read only what the \
             workers write"
        ));
    }
    if !facts.after_a.is_value() {
        return undecided(format!("the value after A went on is {}", facts.after_a));
    }
    if *after_b != facts.after_a {
        return Some(Judgement {
            verdict: Verdict::Fail,
            reason: format!("A's late write landed: {after_b} after B, {} after A went on", facts.after_a),
            evidence: Vec::new(),
        });
    }
    match &facts.b {
        Ended::Itself { success: true, .. } => {}
        other => return undecided(format!("B did not succeed ({}), so that it may not have written", other.how())),
    }
    if *after_b == facts.paused {
        return undecided(format!(
            "B changed nothing that --read shows: {after_b} before and after it; let what is written depend on \
             TENURE_PROBE_WORKER, or give --reset"
        ));
    }
    if let Ended::Killed { how } = &facts.a {
        return undecided(format!("A did not end after it was woken ({how}), and might have written later"));
    }
    let evidence = facts.evidence();
    let refused = evidence.iter().any(|evidence| matches!(evidence, Evidence::Refusal { .. }));
    refused.then(|| Judgement::pass("A's late write changed nothing: the receiver recorded its refusal", evidence))
}

/// Judges a round with its control run, or without one that was not wanted.
pub(super) fn judge_with(facts: &Facts, control: Option<&ControlFacts>) -> Judgement {
    if let Some(judgement) = judge(facts) {
        return judgement;
    }
    let mut evidence = facts.evidence();
    let Some(control) = control else {
        return if evidence.is_empty() {
            Judgement::undecided(facts.nothing_shows_that_it_tried())
        } else {
            Judgement::pass("A's late write changed nothing, and A tried", evidence)
        };
    };
    let seen = match control.speaks_for(&facts.after_a) {
        Ok(()) => {
            evidence.push(Evidence::Control);
            return Judgement::pass(
                "A's late write changed nothing; without a B, stopped and woken in the same way, A does change the value",
                evidence,
            );
        }
        Err(seen) => seen,
    };
    Judgement::undecided(format!("in the control run, {seen}"))
}

impl ControlFacts {
    /// Whether a late write of A would have been seen in this value; the error says why not.
    fn speaks_for(&self, value: &Reading) -> Result<(), String> {
        if let Err(why) = &self.reached {
            return Err(why.clone());
        }
        if let Ended::Killed { how } = &self.ended {
            return Err(format!("A did not end after it was woken ({how})"));
        }
        if !self.after.is_value() {
            return Err(format!("the value after A is {}", self.after));
        }
        if self.after == self.paused {
            return Err(format!(
                "A alone changes nothing that --read shows ({} before and after): it may not write after the marker, or \
                 write what is there already; let what is written depend on TENURE_PROBE_WORKER, or give --reset",
                self.after
            ));
        }
        if self.after == *value {
            return Err(format!(
                "A alone leaves {}, as B does: a late write of it could not be seen; let what is written depend on \
                 TENURE_PROBE_WORKER",
                self.after
            ));
        }
        Ok(())
    }
}

impl Facts {
    fn evidence(&self) -> Vec<Evidence> {
        let refusal = match &self.refusals {
            Some([before, after]) if after.is_value() && before != after => {
                Some(Evidence::Refusal { before: before.clone(), after: after.clone() })
            }
            _ => None,
        };
        refusal.into_iter().chain(self.tried.clone().map(|line| Evidence::Tried { line })).collect()
    }

    fn nothing_shows_that_it_tried(&self) -> String {
        let mut missing = Vec::new();
        if self.asked_tried {
            missing.push("no line of A after it was woken fits --tried");
        }
        if self.refusals.is_some() {
            missing.push("the record of --refusals did not change");
        }
        missing.push("there was no control run");
        format!("the value is still B's, but nothing shows that A tried to write: {}", missing.join(", "))
    }
}

impl Judgement {
    pub(super) fn undecided(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Undecided, reason: reason.into(), evidence: Vec::new() }
    }

    fn pass(reason: &str, evidence: Vec<Evidence>) -> Self {
        Self { verdict: Verdict::Pass, reason: reason.to_owned(), evidence }
    }
}

#[cfg(test)]
mod tests;
