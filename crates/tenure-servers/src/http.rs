//! Just enough HTTP to ask etcd's JSON gateway.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Posts a body and gives the body of the answer, whatever its status.
pub(crate) fn post(addr: SocketAddr, path: &str, body: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&addr, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    // An answer to HTTP/1.0 comes in one piece and ends with the connection.
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.0\r\nHost: {addr}\r\nContent-Length: {length}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).ok_or_else(|| io::Error::other("no answer"))
}
