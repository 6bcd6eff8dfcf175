//! Somebody between a client and a server who hears all and changes some of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use tenure_servers::Etcd;

type Change = Box<dyn Fn(&[u8], Vec<u8>) -> Vec<u8> + Send + Sync>;

/// Passes what is said, one request at a time on each connection. It ends with the test.
pub(super) struct Between {
    at: SocketAddr,
    server: SocketAddr,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Between {
    /// Before a server of one member; `change` makes an answer of a request and the true answer.
    pub(super) fn new(server: &Etcd, change: impl Fn(&[u8], Vec<u8>) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let at = listener.local_addr().expect("it is bound");
        let (server, heard) = (server.endpoints()[0], Arc::new(Mutex::default()));
        let change: Arc<Change> = Arc::new(Box::new(change));
        std::thread::spawn({
            let heard = Arc::clone(&heard);
            move || {
                for client in listener.incoming().flatten() {
                    let (heard, change) = (Arc::clone(&heard), Arc::clone(&change));
                    // Either side has gone when it ends.
                    std::thread::spawn(move || pass(client, server, &heard, &change));
                }
            }
        });
        Self { at, server, heard }
    }

    /// Changes the version that the server tells.
    pub(super) fn telling_version(server: &Etcd, version: &'static str) -> Self {
        Self::new(server, move |request, answer| {
            if !request.starts_with(b"POST /v3/maintenance/status ") {
                return answer;
            }
            let text = String::from_utf8(answer).expect("text");
            let (before, rest) = text.split_once("\"version\":\"").expect("a version");
            let (_, after) = rest.split_once('"').expect("its end");
            let (_, body) = before.split_once("\r\n\r\n").expect("a body");
            answered("200 OK", &format!("{body}\"version\":\"{version}\"{after}"))
        })
    }

    /// The address of a store behind it.
    pub(super) fn url(&self) -> String {
        format!("etcd://{}", self.at)
    }

    /// All requests so far.
    pub(super) fn heard(&self) -> Vec<Vec<u8>> {
        self.heard.lock().expect("no panic").clone()
    }

    /// Says something again, straight to the server.
    pub(super) fn repeat(&self, request: &[u8]) -> String {
        let mut server = TcpStream::connect(self.server).expect("a connection");
        server.write_all(request).expect("it is sent");
        String::from_utf8(whole(&mut server).expect("an answer")).expect("text")
    }
}

/// An answer of a server.
pub(super) fn answered(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn pass(mut client: TcpStream, server: SocketAddr, heard: &Mutex<Vec<Vec<u8>>>, change: &Change) -> Option<()> {
    let mut server = TcpStream::connect(server).ok()?;
    loop {
        let request = whole(&mut client)?;
        server.write_all(&request).ok()?;
        heard.lock().expect("no panic").push(request.clone());
        client.write_all(&change(&request, whole(&mut server)?)).ok()?;
    }
}

/// A request or an answer whose head tells its length.
fn whole(from: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut text, mut piece) = (Vec::new(), [0; 65_536]);
    loop {
        if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&text[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: Option<usize> = length.and_then(|length| length.trim().parse().ok());
            let is_chunked = head.contains("transfer-encoding: chunked");
            if is_chunked && text.ends_with(b"0\r\n\r\n") {
                return Some(without_chunks(&text[..end], &text[end + 4..]));
            }
            if !is_chunked && text.len() >= end + 4 + length.unwrap_or(0) {
                return Some(text);
            }
        }
        let read = from.read(&mut piece).ok().filter(|read| *read > 0)?;
        text.extend_from_slice(&piece[..read]);
    }
}

fn without_chunks(head: &[u8], mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(&String::from_utf8_lossy(&rest[..at]), 16).expect("a length");
        if length == 0 {
            break;
        }
        body.extend_from_slice(&rest[at + 2..at + 2 + length]);
        rest = &rest[at + 4 + length..];
    }
    let head = String::from_utf8_lossy(head);
    let status = head.lines().next().and_then(|line| line.split_once(' ')).expect("a status").1;
    answered(status, &String::from_utf8(body).expect("text"))
}
