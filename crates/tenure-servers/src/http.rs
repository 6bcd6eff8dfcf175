//! Just enough HTTP to ask etcd's JSON gateway, and whether a server answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A connection that is asked one thing after another.
#[derive(Debug)]
pub(crate) struct Connection {
    addr: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(addr: SocketAddr, patience: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, patience)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        stream.set_nodelay(true)?;
        Ok(Self { addr, stream: BufReader::new(stream) })
    }

    /// Posts a body and gives the body of the answer, whatever its status.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> io::Result<String> {
        self.ask("POST", path, body)
    }

    /// As [`post`](Self::post), by another method.
    pub(crate) fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<String> {
        self.send(method, path, "", body)
    }

    /// The same for a server that looks at the body's type.
    pub(crate) fn ask_json(&mut self, method: &str, path: &str, body: &str) -> io::Result<String> {
        self.send(method, path, "Content-Type: application/json\r\n", body)
    }

    fn send(&mut self, method: &str, path: &str, header: &str, body: &str) -> io::Result<String> {
        let (addr, length) = (self.addr, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {addr}\r\n{header}Content-Length: {length}\r\n\r\n");
        self.stream.get_mut().write_all((head + body).as_bytes())?;
        let mut length = None;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
        }
        // Short answers all tell their length.
        let length: usize = length.ok_or_else(|| io::Error::other("an answer of unknown length"))?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        String::from_utf8(body).map_err(io::Error::other)
    }
}
