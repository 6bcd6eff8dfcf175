use super::{fresh, made};
use crate::stores::Pair;
use std::sync::Arc;
use std::time::Duration;
use tenure_authority::conformance::{CLAUSES, Subject, run_all};
use tenure_authority::{BootClock, Clock};
use tenure_core::Ttl;

fn url(max_ttl: Ttl) -> String {
    fresh(&format!("max_ttl={}ms", max_ttl.get().as_millis()))
}

/// Every clause but these.
fn run_but(but: &[&str], make: &dyn Fn() -> Subject) {
    let left = CLAUSES.iter().filter(|(name, _)| !but.contains(name));
    assert_eq!(left.clone().count() + but.len(), CLAUSES.len(), "the names are those of clauses");
    for (name, clause) in left {
        // The name of the last one is the one that is broken.
        eprintln!("{name}");
        clause(&make());
    }
}

#[test]
fn the_etcd_store_keeps_the_contract() {
    run_all(&|| Subject::manual(|clock, max_ttl| made(&url(max_ttl), clock)));
}

/// Reads go to one opening of the store and swaps to another, as from two processes.
#[test]
fn two_openings_of_one_etcd_store_keep_the_contract_together() {
    // Whoever looks for the first time after the deadline counts from there, so that a session is idle one ttl later,
    // and may be renewed until then.
    run_but(&["idle_sessions_come_first_come_first", "a_recalled_renewal_is_judged_at_the_swap"], &|| {
        Subject::manual(|clock, max_ttl| {
            let url = url(max_ttl);
            let writes = made(&url, clock.clone());
            Arc::new(Pair { reads: made(&url, clock), writes })
        })
    });
}

/// On the machine's clock, where etcd's own leases stand beside the sessions.
#[test]
fn the_etcd_store_keeps_the_contract_as_time_passes() {
    run_all(&|| Subject {
        store: made(&url(Ttl::DEFAULT), Clock::Boot(BootClock)),
        pass: Box::new(wait),
        exact: false,
    });
}

pub(super) fn wait(span: Duration) {
    let (_keep, never) = std::sync::mpsc::channel::<()>();
    let _ = never.recv_timeout(span + Duration::from_millis(1));
}
