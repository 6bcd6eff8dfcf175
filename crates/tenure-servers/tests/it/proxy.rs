use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tenure_servers::postgres::psql;
use tenure_servers::{Postgres, Proxy};

/// Sends back each line, and tells the test of it.
fn echo() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let tell = tell.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                    let _ = tell.send(line.clone());
                    let _ = stream.write_all(format!("{line}\n").as_bytes());
                }
            });
        }
    });
    (port, told)
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self(BufReader::new(stream))
    }

    fn send(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// The next line; `None` when the connection is gone.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        match self.0.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line.trim_end().to_owned()),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn nothing_comes(&mut self) {
        self.0.get_ref().set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let error = self.0.fill_buf().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        self.0.get_ref().set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    }
}

#[test]
fn a_cut_drops_what_is_open_and_what_comes_until_it_heals() {
    let (port, _told) = echo();
    let proxy = Proxy::to(port);
    let mut client = Client::connect(&proxy);
    client.send("one");
    assert_eq!(client.line().unwrap(), "one");
    proxy.cut();
    assert_eq!(client.line(), None);
    assert_eq!(Client::connect(&proxy).line(), None);
    proxy.heal();
    let mut client = Client::connect(&proxy);
    client.send("two");
    assert_eq!(client.line().unwrap(), "two");
}

#[test]
fn what_was_frozen_or_held_comes_when_it_heals() {
    let (port, told) = echo();
    let proxy = Proxy::to(port);
    let mut client = Client::connect(&proxy);
    proxy.freeze();
    client.send("one");
    client.nothing_comes();
    assert!(told.try_recv().is_err());
    proxy.heal();
    assert_eq!((client.line().unwrap(), told.recv().unwrap()), ("one".to_owned(), "one".to_owned()));
    proxy.hold_answers();
    client.send("two");
    assert_eq!(told.recv().unwrap(), "two");
    client.nothing_comes();
    proxy.heal();
    assert_eq!(client.line().unwrap(), "two");
}

#[test]
fn dropped_answers_were_answers() {
    let (port, told) = echo();
    let proxy = Proxy::to(port);
    let mut client = Client::connect(&proxy);
    proxy.drop_answers();
    client.send("one");
    assert_eq!(client.line(), None);
    assert_eq!((told.recv().unwrap().as_str(), proxy.lost()), ("one", 1));
}

#[test]
fn new_connections_are_led_elsewhere() {
    let ((here, at_here), (there, at_there)) = (echo(), echo());
    let proxy = Proxy::to(here);
    let mut first = Client::connect(&proxy);
    first.send("one");
    assert_eq!(at_here.recv().unwrap(), "one");
    proxy.lead_to(there);
    Client::connect(&proxy).send("two");
    assert_eq!(at_there.recv().unwrap(), "two");
}

/// A client commits and never hears of it. What it wrote is there.
#[test]
fn the_answer_to_a_commit_is_lost_once() {
    let server = Postgres::shared();
    let direct = server.database();
    psql(&direct, "create table t (n int)").unwrap();
    let proxy = Proxy::to(server.port());
    let through = proxy.url(&direct);
    proxy.drop_answer_to(b"insert into t");
    assert!(psql(&through, "select count(*) from t").is_ok());
    assert!(psql(&through, "insert into t values (1)").unwrap_err().contains("closed"));
    proxy.wait_lost(1);
    assert_eq!(psql(&through, "select count(*) from t").unwrap(), "1");
}
