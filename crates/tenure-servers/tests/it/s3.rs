//! A server that speaks S3.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tenure_servers::S3;

/// One request, unsigned; the whole answer.
fn ask(s3: &S3, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(s3.addr())?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "{request} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", s3.addr())?;
    let mut said = String::new();
    stream.read_to_string(&mut said)?;
    Ok(said)
}

#[test]
fn it_knows_its_bucket_asks_for_a_key_and_comes_back_with_its_files() {
    let s3 = S3::start();
    let unsigned = |s3: &S3| ask(s3, &format!("GET /{}/ready", s3.bucket())).unwrap();
    assert!(unsigned(&s3).contains("AccessDenied"), "{}", unsigned(&s3));
    assert_ne!(s3.prefix(), s3.prefix());
    s3.kill();
    assert!(TcpStream::connect(s3.addr()).is_err());
    s3.restart();
    assert!(unsigned(&s3).contains("AccessDenied"), "{}", unsigned(&s3));
}
