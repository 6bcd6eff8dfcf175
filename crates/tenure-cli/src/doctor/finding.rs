use crate::access::Setup;
use crate::screen::Tint;
use serde_json::{Value, json};

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) verdict: Verdict,
    pub(super) says: String,
    /// What to do; always there unless all is well.
    pub(super) advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    Warn,
    Fail,
    /// It could not be looked at from here.
    Unseen,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Unseen => "unseen",
        }
    }

    pub(super) const fn tint(self) -> Tint {
        match self {
            Self::Ok => Tint::Good,
            Self::Warn | Self::Unseen => Tint::Warn,
            Self::Fail => Tint::Bad,
        }
    }
}

impl Finding {
    pub(super) fn ok(name: &'static str, says: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Ok, says: says.into(), advice: None }
    }

    pub(super) fn warn(name: &'static str, says: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Warn, says: says.into(), advice: Some(advice.into()) }
    }

    pub(super) fn fail(name: &'static str, says: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Fail, says: says.into(), advice: Some(advice.into()) }
    }

    pub(super) fn unseen(name: &'static str, says: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Unseen, says: says.into(), advice: Some(advice.into()) }
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "name": self.name, "verdict": self.verdict.name(), "says": self.says, "advice": self.advice,
        })
    }
}

/// Which configuration file is used.
pub(super) fn config(setup: &Setup) -> Finding {
    match &setup.settings.file {
        Some(file) => Finding::ok("config", format!("{} is used", file.display())),
        None => Finding::ok("config", "no configuration file is used"),
    }
}
