//! Servers in front of others, which do what the real ones do only on a bad day.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Answers the first requests itself, one for each connection, and leads the connections after them to the real server.
pub(crate) struct Front {
    port: u16,
    answered: Arc<AtomicUsize>,
}

impl Front {
    pub(crate) fn new(behind: u16, said: &'static str, times: usize) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let answered = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&answered);
        // It ends with the process: nobody comes any more after the test.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if count.load(Ordering::SeqCst) < times {
                    count.fetch_add(1, Ordering::SeqCst);
                    answer(client, said);
                } else {
                    lead(client, behind);
                }
            }
        });
        Self { port, answered }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }
}

/// Holds whoever comes until it is opened, and leads everybody on from then.
pub(crate) struct Gate {
    port: u16,
    arrived: mpsc::Receiver<()>,
    opened: mpsc::Sender<()>,
}

impl Gate {
    pub(crate) fn new(behind: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((arrive, arrived), (opened, open)) = (mpsc::channel(), mpsc::channel());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let _ = arrive.send(());
                // Once it is opened it stays so: there is nobody to wait for.
                let _ = open.recv();
                lead(client.unwrap(), behind);
            }
        });
        Self { port, arrived, opened }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until somebody stands before it.
    pub(crate) fn wait(&self) {
        self.arrived.recv_timeout(Duration::from_secs(30)).unwrap();
    }

    pub(crate) fn open(self) {
        drop(self.opened);
    }
}

/// Reads something, says it, and hangs up.
fn answer(mut client: TcpStream, said: &str) {
    let _ = client.read(&mut [0; 65536]);
    let _ = client.write_all(said.as_bytes());
    let _ = client.shutdown(std::net::Shutdown::Write);
    // What comes still is read, or the system would take back what was said.
    let _ = std::io::copy(&mut client, &mut std::io::sink());
}

fn lead(client: TcpStream, behind: u16) {
    let server = TcpStream::connect(("127.0.0.1", behind)).unwrap();
    for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)] {
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
    }
}

/// An answer that never ends, until the client has enough.
pub(crate) fn endless() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            std::thread::spawn(move || {
                let mut client = client.unwrap();
                let _ = client.read(&mut [0; 65536]);
                let _ = client.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n[");
                while client.write_all(&[b' '; 65536]).is_ok() {}
            });
        }
    });
    url
}
