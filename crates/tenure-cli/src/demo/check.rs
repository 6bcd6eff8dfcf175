use super::DemoError;
use super::incident::Incident;
use super::report::Report;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A result that was stored before.
#[derive(Debug)]
pub(super) struct Stored {
    path: PathBuf,
    value: Value,
}

impl Stored {
    pub(super) fn read(path: &Path) -> Result<Self, DemoError> {
        let stored = Self::load(path)?;
        if stored.value.get("scenarios").is_none() && stored.value.get("takeover").is_none() {
            return Err(DemoError::NoResult {
                path: path.to_owned(),
                why: "it has neither \"takeover\" nor \"scenarios\"; `tenure demo --json` prints one".into(),
            });
        }
        Ok(stored)
    }

    /// The same for a result that is under one key.
    pub(super) fn read_with(path: &Path, key: &str) -> Result<Self, DemoError> {
        let stored = Self::load(path)?;
        if stored.value.get(key).is_none() {
            let why = format!("it has no {key:?}; `tenure demo receipts --json` prints one");
            return Err(DemoError::NoResult { path: path.to_owned(), why });
        }
        Ok(stored)
    }

    fn load(path: &Path) -> Result<Self, DemoError> {
        let text = std::fs::read_to_string(path).map_err(|error| DemoError::File { path: path.to_owned(), error })?;
        let no_result = |why: String| DemoError::NoResult { path: path.to_owned(), why };
        let value: Value = serde_json::from_str(&text).map_err(|error| no_result(error.to_string()))?;
        Ok(Self { path: path.to_owned(), value })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Every place at which a fresh result of the same form differs, but for one key.
    pub(super) fn compared_with(&self, fresh: &Value, leave_out: Option<&str>) -> Vec<String> {
        let mut found = Vec::new();
        compare("", &self.value, fresh, leave_out, &mut found);
        found
    }

    /// Every place at which the fresh run differs; empty when there is none.
    pub(super) fn differences(&self, report: &Report) -> Vec<String> {
        let mut found = Vec::new();
        // In real time a deadline is where it is.
        let leave_out = if report.shared.is_some() { Some("deadline") } else { None };
        match self.value.get("scenarios") {
            Some(stored) => {
                let fresh = published_form(report);
                // Only what the experiment measured: its prose ("meaning") is not ours to repeat.
                for scenario in ["unfenced", "fenced", "expiry_gap"] {
                    for part in ["events", "final"] {
                        compare(
                            &format!("{scenario}.{part}"),
                            &stored[scenario][part],
                            &fresh[scenario][part],
                            leave_out,
                            &mut found,
                        );
                    }
                }
            }
            None => compare("", &self.value, &json!(report.summary()), leave_out, &mut found),
        }
        found
    }
}

/// The three scenarios in the form in which the experiment was published.
fn published_form(report: &Report) -> Value {
    let rows = |incident: &Incident| json!({ "lease": [incident.lease], "sink": [incident.sink] });
    let takeover = |kind: &str| match report.takeover.iter().find(|incident| incident.kind.name() == kind) {
        Some(incident) => json!({ "events": incident.events, "final": rows(incident) }),
        None => Value::Null,
    };
    let gap = report.gap.iter().find(|incident| incident.kind.name() == "high-water").map(|incident| {
        let verdicts: Vec<_> = incident.events.iter().map(|(_, verdict)| verdict).collect();
        json!({ "events": verdicts, "final": rows(incident) })
    });
    json!({ "unfenced": takeover("none"), "fenced": takeover("high-water"), "expiry_gap": gap })
}

fn compare(place: &str, stored: &Value, fresh: &Value, leave_out: Option<&str>, found: &mut Vec<String>) {
    match (stored, fresh) {
        (Value::Object(stored), Value::Object(fresh)) => {
            let keys = stored.keys().chain(fresh.keys().filter(|key| !stored.contains_key(*key)));
            for key in keys.filter(|key| leave_out != Some(key.as_str())) {
                let part = |of: &serde_json::Map<String, Value>| of.get(key).cloned().unwrap_or(Value::Null);
                compare(&format!("{place}.{key}"), &part(stored), &part(fresh), leave_out, found);
            }
        }
        (Value::Array(stored), Value::Array(fresh)) if stored.len() == fresh.len() => {
            for (at, (stored, fresh)) in stored.iter().zip(fresh).enumerate() {
                compare(&format!("{place}[{at}]"), stored, fresh, leave_out, found);
            }
        }
        _ if stored == fresh => {}
        _ => found.push(format!("{}: stored {stored}, now {fresh}", place.trim_start_matches('.'))),
    }
}

#[cfg(test)]
mod tests;
