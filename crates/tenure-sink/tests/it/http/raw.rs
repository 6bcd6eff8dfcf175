//! Requests as they are on the wire, so that a test can send what no client would.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use tenure_sink::http::Problem;

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The name of the problem; panics when it is none.
    #[track_caller]
    pub(crate) fn problem(&self) -> Problem {
        Problem::parse(self.body.as_bytes()).unwrap_or_else(|| panic!("{self:?} is no problem of ours"))
    }
}

/// Sends one request and reads the answer to its end.
pub(crate) fn send(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    let mut stream = begin(to, method, path, headers, body);
    let mut bytes = Vec::new();
    // A server that has not read all resets the connection behind its answer.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    Reply { status, headers, body: body.to_owned() }
}

/// Sends one request, and leaves the answer to come.
pub(crate) fn begin(to: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    // A server that has read enough may close before it has read all.
    let _ = stream.write_all(body);
    stream
}
