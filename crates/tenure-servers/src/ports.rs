//! Ports that nobody listens on.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::TcpListener;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Below the ports that the system gives to outgoing connections: a server that was stopped finds its port still free.
const PORTS: std::ops::Range<u16> = 10_240..32_768;

/// Starts something on `N` free ports, with other ports when another process was faster.
///
/// The text of an error is the end of the server's log.
pub(crate) fn on_free_ports<const N: usize, T>(what: &str, mut start: impl FnMut([u16; N]) -> Result<T, String>) -> T {
    let mut said = String::new();
    for _ in 0..5 {
        match start(std::array::from_fn(|_| free())) {
            Ok(started) => return started,
            Err(log) => said = log,
        }
        // "Address already in use", "address already in use", "Address in use".
        if !said.contains("in use") {
            break;
        }
    }
    panic!("{what} did not start:\n{said}")
}

/// A port that was free just now; this process gets each only once.
fn free() -> u16 {
    static NEXT: OnceLock<Mutex<u16>> = OnceLock::new();
    // Two test processes begin at different places.
    let next = NEXT.get_or_init(|| {
        let draw = RandomState::new().build_hasher().finish() % u64::from(PORTS.end - PORTS.start);
        Mutex::new(PORTS.start + u16::try_from(draw).unwrap_or_default())
    });
    let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in PORTS {
        let port = *next;
        *next = if port + 1 < PORTS.end { port + 1 } else { PORTS.start };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no port of 127.0.0.1 is free")
}

#[cfg(test)]
mod tests;
