//! A proxy between a client and a server that loses what it is told to lose.

mod relay;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use crate::patience::eventually;
use relay::{Mode, Relay};

/// A TCP proxy on 127.0.0.1. It passes everything until it is told otherwise.
///
/// What it is told holds for the connections that are open and for those to come, until [`heal`](Self::heal).
#[derive(Debug)]
pub struct Proxy {
    relay: Arc<Relay>,
    addr: SocketAddr,
    accepts: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy before a server on a port of 127.0.0.1. The server need not be there yet.
    #[must_use]
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of 127.0.0.1 is free");
        let addr = listener.local_addr().expect("it is bound");
        let relay = Arc::new(Relay::to(port));
        let accepts = std::thread::spawn({
            let relay = Arc::clone(&relay);
            move || {
                for client in listener.incoming() {
                    if relay.closed.load(Ordering::SeqCst) {
                        return;
                    }
                    if let Ok(client) = client {
                        Relay::begin(&relay, client);
                    }
                }
            }
        });
        Self { relay, addr, accepts: Some(accepts) }
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The port of [`addr`](Self::addr).
    #[must_use]
    pub fn port(&self) -> u16 {
        self.addr.port()
    }

    /// An address (`scheme://user@host:port/rest`) of the server, as it is through this proxy.
    ///
    /// ```
    /// # use tenure_servers::Proxy;
    /// let proxy = Proxy::to(5432);
    /// let through = proxy.url("postgres://postgres@127.0.0.1:5432/app");
    /// assert_eq!(through, format!("postgres://postgres@127.0.0.1:{}/app", proxy.port()));
    /// ```
    #[must_use]
    pub fn url(&self, direct: &str) -> String {
        let server = format!("127.0.0.1:{}", self.relay.port());
        assert!(direct.contains(&server), "this proxy does not lead to that server");
        direct.replacen(&server, &self.addr.to_string(), 1)
    }

    /// Leads new connections to another port of 127.0.0.1, as a failover does. Open ones stay.
    pub fn lead_to(&self, port: u16) {
        self.relay.lead_to(port);
    }

    /// Drops all connections, and each new one at once.
    pub fn cut(&self) {
        self.relay.set(Mode::Cut);
        self.relay.drop_all();
    }

    /// Takes connections, and passes nothing either way. [`heal`](Self::heal) passes what was held.
    pub fn freeze(&self) {
        self.relay.set(Mode::Freeze);
    }

    /// Passes requests and holds the answers. [`heal`](Self::heal) passes them.
    pub fn hold_answers(&self) {
        self.relay.set(Mode::HoldAnswers);
    }

    /// Passes requests. A connection that is answered loses the answer and is dropped.
    pub fn drop_answers(&self) {
        self.relay.set(Mode::DropAnswers(None));
    }

    /// Passes everything up to a request that holds these bytes, such as `b"COMMIT"`. The server gets it, its answer is
    /// lost, and its connection is dropped. That happens once; then everything is passed again.
    ///
    /// The bytes must come in one piece, and not through TLS. Choose what only that request holds, such as a value: the
    /// text of a prepared statement goes with its preparation, not with its execution.
    pub fn drop_answer_to(&self, request: &[u8]) {
        self.relay.set(Mode::DropAnswers(Some(request.to_vec())));
    }

    /// How many answers were lost so far.
    #[must_use]
    pub fn lost(&self) -> usize {
        self.relay.lost.load(Ordering::SeqCst)
    }

    /// Waits until at least `answers` answers were lost: the server has done what it was asked.
    pub fn wait_lost(&self, answers: usize) {
        eventually("an answer is lost", || (self.lost() >= answers).then_some(()));
    }

    /// Passes everything again, also what was held.
    pub fn heal(&self) {
        self.relay.set(Mode::Pass);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.relay.closed.store(true, Ordering::SeqCst);
        self.cut();
        // The thread looks whether it is over when somebody comes.
        let _ = TcpStream::connect(self.addr);
        if let Some(accepts) = self.accepts.take() {
            let _ = accepts.join();
        }
    }
}
