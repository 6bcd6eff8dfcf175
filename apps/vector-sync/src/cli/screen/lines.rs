//! Plain lines, for logs and pipes: one at each stage's end, and every few seconds in between.

use super::{rate, say};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;
use vector_sync::patience::Stopwatch;
use vector_sync::stage::Stage;
use vector_sync::tell::{News, Tell};
use vector_sync::tenant::Tenant;

#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<BTreeMap<Tenant, Going>>);

#[derive(Debug)]
struct Going {
    stage: Stage,
    since: Stopwatch,
    told: Stopwatch,
    done: Option<u64>,
}

/// How often somebody who waits is told.
const EACH: Duration = Duration::from_secs(5);

impl Tell for Lines {
    fn tell(&self, tenant: &Tenant, news: &News) {
        let line = match news {
            News::Acquired { epoch } => format!("{tenant}: holds the lease, under epoch {epoch}"),
            News::Warning { what } => format!("{tenant}: {what}"),
            News::Ended { outcome } => return say(&format!("{tenant}: {outcome}")),
            News::Going { stage, done, total } => {
                // A panic elsewhere is no reason to be silent.
                let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let fresh = || Going { stage: *stage, since: Stopwatch::start(), told: Stopwatch::start(), done: None };
                let going = all.entry(tenant.clone()).or_insert_with(fresh);
                if going.stage != *stage {
                    *going = fresh();
                }
                let is_early = Some(*done) != *total && going.told.spent() < EACH;
                if is_early || going.done == Some(*done) {
                    return;
                }
                going.done = Some(*done);
                going.told = Stopwatch::start();
                format!("{tenant}: {stage} {} {}", stage.unit(), rate(*done, *total, going.since.spent()))
            }
        };
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}
