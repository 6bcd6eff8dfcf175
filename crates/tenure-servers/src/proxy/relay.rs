//! The connections of a proxy.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How long a server may take to accept: one that is stopped takes nobody once its queue is full.
const CONNECT: Duration = Duration::from_secs(5);

/// What is done with what comes.
#[derive(Debug)]
pub(super) enum Mode {
    Pass,
    Cut,
    Freeze,
    HoldAnswers,
    /// Of all requests, or once of the one that holds these bytes.
    DropAnswers(Option<Vec<u8>>),
}

#[derive(Debug)]
pub(super) struct Relay {
    port: AtomicU16,
    mode: Mutex<Mode>,
    changed: Condvar,
    pairs: Mutex<Vec<Weak<Pair>>>,
    pub(super) lost: AtomicUsize,
    pub(super) closed: AtomicBool,
}

/// A client's connection and the one to the server that belongs to it.
#[derive(Debug)]
struct Pair {
    client: TcpStream,
    server: TcpStream,
    dropped: AtomicBool,
    /// The next answer is lost, and the connection with it.
    doomed: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Request,
    Answer,
}

impl Relay {
    pub(super) fn to(port: u16) -> Self {
        Self {
            port: AtomicU16::new(port),
            mode: Mutex::new(Mode::Pass),
            changed: Condvar::new(),
            pairs: Mutex::default(),
            lost: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) fn port(&self) -> u16 {
        self.port.load(Ordering::SeqCst)
    }

    pub(super) fn lead_to(&self, port: u16) {
        self.port.store(port, Ordering::SeqCst);
    }

    pub(super) fn set(&self, mode: Mode) {
        *self.mode() = mode;
        self.changed.notify_all();
    }

    pub(super) fn drop_all(&self) {
        for pair in std::mem::take(&mut *self.pairs()).iter().filter_map(Weak::upgrade) {
            pair.drop_it();
        }
        self.changed.notify_all();
    }

    /// Passes a client's connection on, in two threads that end with it.
    pub(super) fn begin(relay: &Arc<Self>, client: TcpStream) {
        if matches!(*relay.mode(), Mode::Cut) {
            return;
        }
        let Ok(server) = TcpStream::connect_timeout(&([127, 0, 0, 1], relay.port()).into(), CONNECT) else { return };
        // Requests are small, and the proxy is no reason to wait.
        let _ = client.set_nodelay(true).and_then(|()| server.set_nodelay(true));
        let pair = Arc::new(Pair { client, server, dropped: AtomicBool::new(false), doomed: AtomicBool::new(false) });
        {
            // It may have been cut meanwhile; with the mode held, it is seen here or the pair is seen there.
            let mode = relay.mode();
            if matches!(*mode, Mode::Cut) {
                return;
            }
            let mut pairs = relay.pairs();
            pairs.retain(|pair| pair.strong_count() > 0);
            pairs.push(Arc::downgrade(&pair));
        }
        for way in [Way::Request, Way::Answer] {
            let (relay, pair) = (Arc::clone(relay), Arc::clone(&pair));
            std::thread::spawn(move || relay.carry(&pair, way));
        }
    }

    /// Carries what comes one way until the connection ends.
    fn carry(&self, pair: &Pair, way: Way) {
        let (mut from, mut to) = match way {
            Way::Request => (&pair.client, &pair.server),
            Way::Answer => (&pair.server, &pair.client),
        };
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let n = from.read(&mut bytes).unwrap_or(0);
            if !self.may_pass(pair, way, &bytes[..n]) {
                pair.drop_it();
                return;
            }
            if n == 0 {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            if to.write_all(&bytes[..n]).is_err() {
                pair.drop_it();
                return;
            }
        }
    }

    /// Waits until these bytes may pass. `false`: the connection is to be dropped.
    fn may_pass(&self, pair: &Pair, way: Way, bytes: &[u8]) -> bool {
        let mut mode = self.mode();
        loop {
            if pair.dropped.load(Ordering::SeqCst) {
                return false;
            }
            if way == Way::Answer && !bytes.is_empty() && pair.doomed.load(Ordering::SeqCst) {
                self.lost.fetch_add(1, Ordering::SeqCst);
                return false;
            }
            let waits = match &*mode {
                Mode::Cut => return false,
                Mode::Pass => false,
                Mode::Freeze => true,
                Mode::HoldAnswers => way == Way::Answer,
                Mode::DropAnswers(None) if way == Way::Answer && !bytes.is_empty() => {
                    self.lost.fetch_add(1, Ordering::SeqCst);
                    return false;
                }
                Mode::DropAnswers(Some(wanted)) if way == Way::Request && holds(bytes, wanted) => {
                    pair.doomed.store(true, Ordering::SeqCst);
                    *mode = Mode::Pass;
                    false
                }
                Mode::DropAnswers(_) => false,
            };
            if !waits {
                return true;
            }
            mode = self.changed.wait(mode).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn mode(&self) -> MutexGuard<'_, Mode> {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pairs(&self) -> MutexGuard<'_, Vec<Weak<Pair>>> {
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pair {
    fn drop_it(&self) {
        self.dropped.store(true, Ordering::SeqCst);
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    !wanted.is_empty() && bytes.windows(wanted.len()).any(|window| window == wanted)
}
