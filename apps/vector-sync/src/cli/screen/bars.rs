//! A bar for each tenant, on a terminal.

use super::say;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::sync::Mutex;
use vector_sync::stage::Stage;
use vector_sync::tell::{News, Tell};
use vector_sync::tenant::Tenant;

#[derive(Debug, Default)]
pub(super) struct Bars {
    all: MultiProgress,
    each: Mutex<BTreeMap<Tenant, (Stage, ProgressBar)>>,
}

const KNOWN: &str = "{prefix}: {msg} {bar:30} {human_pos} of {human_len}, {per_sec}, {eta} left";
const OPEN: &str = "{prefix}: {msg} {spinner} {human_pos}, {per_sec}";

impl Bars {
    fn bar(&self, tenant: &Tenant, stage: Stage, done: u64, total: Option<u64>) {
        // A panic elsewhere is no reason to be silent.
        let mut each = self.each.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let fresh = || {
            let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            // The templates are constants; without them, the usual style does as well.
            if let Ok(style) = ProgressStyle::with_template(if total.is_some() { KNOWN } else { OPEN }) {
                bar.set_style(style);
            }
            let what = format!("{} {}", stage.name(), stage.unit());
            self.all.add(bar.with_prefix(tenant.to_string()).with_message(what))
        };
        let (at, bar) = each.entry(tenant.clone()).or_insert_with(|| (stage, fresh()));
        if *at != stage {
            bar.finish_and_clear();
            (*at, *bar) = (stage, fresh());
        }
        bar.set_position(done);
    }
}

impl Tell for Bars {
    fn tell(&self, tenant: &Tenant, news: &News) {
        match news {
            News::Going { stage, done, total } => self.bar(tenant, *stage, *done, *total),
            News::Acquired { .. } => {}
            News::Warning { what } => {
                let _ = self.all.println(format!("{tenant}: {what}"));
            }
            News::Ended { outcome } => {
                let mut each = self.each.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if let Some((_, bar)) = each.remove(tenant) {
                    bar.finish_and_clear();
                }
                self.all.suspend(|| say(&format!("{tenant}: {outcome}")));
            }
        }
    }
}
