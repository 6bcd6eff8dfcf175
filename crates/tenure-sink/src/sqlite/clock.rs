//! The clock on which the authority in the same file runs.

use crate::SinkError;
use std::sync::OnceLock;
use tenure_core::{AuthorityClock, Instant};

/// Reads the clock that began where `origin` says: the machine's, since it was started, or a file's.
pub(super) fn now(place: &str, origin: &str) -> Result<Instant<AuthorityClock>, SinkError> {
    let none = |why: String| SinkError::NoAuthority { place: place.to_owned(), why };
    if let Some(path) = origin.strip_prefix("file:") {
        // Of a test that drives the time of all processes.
        let text = std::fs::read_to_string(path).map_err(|error| none(format!("its clock {path}: {error}")))?;
        let millis: u64 = text.trim().parse().map_err(|error| none(format!("its clock {path}: {error}")))?;
        return Ok(Instant::from_nanos(millis.saturating_mul(1_000_000)));
    }
    if origin != boot_id() {
        return Err(none(format!(
            "its authority is on another clock ({origin:?}, here {:?}), and no deadline of one can be compared with the \
             other. After a restart of the machine, open the authority once (tenure ls), then repeat the transaction",
            boot_id()
        )));
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the authority's own clock: what is read in its file is compared with it"
    )]
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let part = |part: i64| u64::try_from(part).unwrap_or_default();
    Ok(Instant::from_nanos(part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec))))
}

/// What names this start of the machine; empty where the kernel does not tell it, as the authority has it too.
fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|id| id.trim().to_owned()).unwrap_or_default()
    })
}
