//! The bank: it makes a charge once for each idempotency key, and can be asked by it. It knows no tokens, so a request that
//! was under way may be carried out after any look-up.

use super::reach;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tenure::core::ledger::Looked;
use tenure::sink::Answer;
use tenure::sink::ledger::{AttemptRecord, Probe, ProbeError};
use tenure::{Outcome, SinkId, Token};

pub(crate) fn prepare(folder: &Path) -> Result<(), Box<dyn Error>> {
    let books = Connection::open(folder.join("bank.db"))?;
    books.pragma_update(None, "journal_mode", "WAL")?;
    Ok(books.execute_batch("CREATE TABLE charge (number INTEGER PRIMARY KEY, key TEXT UNIQUE, cents INTEGER)")?)
}

/// How many charges stand in the bank's books.
pub(crate) fn charges(folder: &Path) -> Result<i64, Box<dyn Error>> {
    Ok(Connection::open(folder.join("bank.db"))?.query_row("SELECT count(*) FROM charge", (), |row| row.get(0))?)
}

/// The server. It says its address first.
pub(crate) fn serve(folder: &Path, point: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let desk = Desk { books: folder.join("bank.db"), point: point.to_owned(), let_go: Arc::default() };
    for stream in listener.incoming() {
        let (desk, stream) = (desk.clone(), stream?);
        // A client that goes away in the midst of a request is no reason to stop.
        std::thread::spawn(move || desk.answer(stream).map_err(|error| error.to_string()));
    }
    Ok(())
}

#[derive(Clone)]
struct Desk {
    books: PathBuf,
    point: String,
    /// The late request waits for it.
    let_go: Arc<(Mutex<bool>, Condvar)>,
}

impl Desk {
    fn answer(&self, stream: TcpStream) -> Result<(), Box<dyn Error>> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let request = Message::read(&mut reader)?;
        let (status, body) = match request.first.split(' ').collect::<Vec<_>>()[..] {
            ["POST", "/charges", _] => self.charge(&request.key.ok_or("no Idempotency-Key")?, request.body.parse()?)?,
            ["GET", path, _] => match self.find(path.trim_start_matches("/charges/"))? {
                Some(number) => ("200 OK", format!("charge {number}")),
                None => ("404 Not Found", "no such charge".to_owned()),
            },
            ["POST", "/release", _] => {
                *self.let_go.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
                self.let_go.1.notify_all();
                self.wait_for_charge()?;
                ("200 OK", "released".to_owned())
            }
            _ => ("400 Bad Request", "what?".to_owned()),
        };
        let text = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        let (half, rest) = text.as_bytes().split_at(text.len() - body.len() / 2);
        let mut stream = stream;
        stream.write_all(half)?;
        if request.first.starts_with("POST /charges") {
            reach(&self.point, "half-answer");
        }
        stream.write_all(rest)?;
        if request.first.starts_with("POST /charges") {
            reach(&self.point, "after-answer");
        }
        Ok(())
    }

    /// Makes a charge, once for each key.
    fn charge(&self, key: &str, cents: i64) -> Result<(&'static str, String), Box<dyn Error>> {
        reach(&self.point, "before-charge");
        if self.point == "late" {
            println!("at late");
            let mut is_free = self.let_go.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !*is_free {
                is_free = self.let_go.1.wait(is_free).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let mut books = Connection::open(&self.books)?;
        let tx = books.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute("INSERT INTO charge (key, cents) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING", (key, cents))?;
        let number: i64 = tx.query_row("SELECT number FROM charge WHERE key = ?1", [key], |row| row.get(0))?;
        reach(&self.point, "in-charge");
        tx.commit()?;
        println!("carried out");
        reach(&self.point, "after-charge");
        Ok(("201 Created", format!("charge {number}")))
    }

    fn find(&self, key: &str) -> Result<Option<i64>, Box<dyn Error>> {
        let books = Connection::open(&self.books)?;
        Ok(books.query_row("SELECT number FROM charge WHERE key = ?1", [key], |row| row.get(0)).optional()?)
    }

    /// Until the late request was carried out.
    fn wait_for_charge(&self) -> Result<(), Box<dyn Error>> {
        let books = Connection::open(&self.books)?;
        while books.query_row("SELECT count(*) FROM charge", (), |row| row.get::<_, i64>(0))? == 0 {
            std::thread::yield_now();
        }
        Ok(())
    }
}

/// No request and no answer here has more bytes.
const LONGEST: u64 = 64 * 1024;

/// A request or an answer.
struct Message {
    first: String,
    key: Option<String>,
    body: String,
}

impl Message {
    /// Reads a whole one; one that breaks off, or is longer than any, is an error.
    fn read(reader: &mut impl BufRead) -> Result<Self, Box<dyn Error>> {
        let mut reader = reader.take(LONGEST);
        let mut line = || -> Result<String, Box<dyn Error>> {
            let mut line = String::new();
            match reader.read_line(&mut line)? {
                0 => Err("the connection broke off".into()),
                _ => Ok(line.trim_end().to_owned()),
            }
        };
        let (first, mut key, mut length) = (line()?, None, 0);
        loop {
            let header = line()?;
            match header.split_once(": ") {
                None => break,
                Some(("Content-Length", value)) => length = value.parse()?,
                Some(("Idempotency-Key", value)) => key = Some(value.to_owned()),
                Some(_) => {}
            }
        }
        let mut body = String::new();
        match reader.take(length).read_to_string(&mut body)? {
            read if read as u64 == length => Ok(Self { first, key, body }),
            _ => Err("the connection broke off".into()),
        }
    }
}

/// What came of a call.
pub(crate) enum Called {
    /// The charge was made, now or before under the same key.
    Charged(Outcome),
    /// The bank refuses it, and has changed nothing.
    Declined(String),
    /// Nobody was there: not one byte has left.
    Unreached(String),
    /// Anything else. It may have been made.
    NoAnswer(String),
}

/// The bank as a worker sees it.
pub(crate) struct Bank {
    system: SinkId,
    address: String,
}

impl Bank {
    pub(crate) fn at(address: &str) -> Result<Self, Box<dyn Error>> {
        Ok(Self { system: "bank".parse()?, address: address.to_owned() })
    }

    /// Makes the call. Only two kinds of failure prove that nothing was charged.
    pub(crate) fn charge(&self, key: &str, cents: u32, point: &str) -> Called {
        let stream = match self.connect() {
            Ok(stream) => stream,
            Err(error) => return Called::Unreached(error.to_string()),
        };
        let body = cents.to_string();
        let request =
            format!("POST /charges HTTP/1.1\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        match exchange(stream, &request, point) {
            Ok(answer) => match (answer.first.split(' ').nth(1), Outcome::new(&answer.body)) {
                (Some("200" | "201"), Ok(outcome)) => Called::Charged(outcome),
                (Some("402"), _) => Called::Declined(answer.body),
                _ => Called::NoAnswer(format!("the bank said {:?}", answer.first)),
            },
            Err(_) => Called::NoAnswer("no answer from the bank".to_owned()),
        }
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        Ok(stream)
    }

    fn find(&self, key: &str) -> Result<Looked, Box<dyn Error>> {
        let answer = exchange(self.connect()?, &format!("GET /charges/{key} HTTP/1.1\r\n\r\n"), "never")?;
        match answer.first.split(' ').nth(1) {
            Some("200") => Ok(Looked::Found(Outcome::new(answer.body)?)),
            // It proves nothing: the bank checks no token.
            Some("404") => Ok(Looked::NotSeen),
            _ => Err(answer.first.into()),
        }
    }
}

fn exchange(mut stream: TcpStream, request: &str, point: &str) -> Result<Message, Box<dyn Error>> {
    let (half, rest) = request.as_bytes().split_at(request.len() / 2);
    stream.write_all(half)?;
    reach(point, "half-request");
    stream.write_all(rest)?;
    reach(point, "after-request");
    Message::read(&mut BufReader::new(stream))
}

impl Probe for Bank {
    fn system(&self) -> &SinkId {
        &self.system
    }

    fn look<'a>(&'a self, _: &'a Token, attempt: &'a AttemptRecord) -> Answer<'a, Result<Looked, ProbeError>> {
        let found = self.find(attempt.key.operation.as_str()).map_err(|error| ProbeError(error.to_string()));
        Box::pin(async { found })
    }
}

/// Lets the late request go on, and waits until it is carried out.
pub(crate) fn release(address: &str) -> Result<(), Box<dyn Error>> {
    let answer = exchange(TcpStream::connect(address)?, "POST /release HTTP/1.1\r\n\r\n", "never")?;
    match answer.first.contains("200") {
        true => Ok(()),
        false => Err(answer.first.into()),
    }
}
