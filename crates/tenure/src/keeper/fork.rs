//! Whether this process was forked off one that holds leases. The child has their memory, but nobody renews there, and
//! two processes with one token cannot be told apart at any receiver.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCH: Once = Once::new();

/// How many forks lie between the first process of this program and this one. A plain load: asking the system for the
/// process id at every checkpoint costs more than all the rest of it.
pub(super) fn generation() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Has the system count forks from now on.
pub(super) fn watch() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    WATCH.call_once(|| {
        #[expect(unsafe_code, reason = "the handler only adds to an atomic, which is safe between fork and exec")]
        let registered = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        if registered != 0 {
            tracing::warn!("the system does not tell of forks: do not fork while a lease is held");
        }
    });
}
