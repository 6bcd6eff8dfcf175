//! A charge that must not be made twice, at a bank that knows no tokens: the worker and the bank are killed at every point
//! in between, and the ledger says what is known.
//!
//! The worker writes the charge down before it makes it (`worker.rs`). The bank is a small HTTP server that keeps
//! idempotency keys (`bank.rs`). This file plays each case with real processes: one of the two is killed when it says that
//! it has come to the point; then the next worker takes over, asks the bank by the operation's id, and goes on if it may.
//! Where nobody can know, a person looks into the bank's books and decides.
//!
//! Usage: `payments [POINT]`; without a point it plays them all.

mod bank;
mod worker;

use std::error::Error;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use tenure::core::decide::Request;
use tenure::core::fence::Rule;
use tenure::core::operation::Attempt;
use tenure::sink::ledger::{Decision, Ledger, Which};
use tenure::sink::{SqliteLedger, SqliteSink};
use tenure::{Tenure, blocking};

const POINTS: [&str; 13] = [
    "worker before-intent",
    "worker after-intent",
    "worker after-mark",
    "worker half-request",
    "worker after-request",
    "worker after-answer",
    "worker after-done",
    "bank before-charge",
    "bank in-charge",
    "bank after-charge",
    "bank half-answer",
    "bank after-answer",
    "bank late",
];

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => POINTS.iter().try_for_each(|point| play(point)),
        ["bank", folder, point] => bank::serve(Path::new(folder), point),
        ["worker", folder, name, address, point] => worker::work(Path::new(folder), name, address, point),
        [who, point] => play(&format!("{who} {point}")),
        _ => Err("usage: payments [worker|bank POINT]".into()),
    }
}

/// Plays one case. Whatever happens, the bank's books hold at most one charge, and what the ledger says is true.
fn play(point: &str) -> Result<(), Box<dyn Error>> {
    let (victim, at) = point.split_once(' ').ok_or("a point is written WHO POINT")?;
    let folder = tempfile::tempdir()?; // removed at the end
    let shop = prepare(folder.path())?;
    println!("{}", if at == "late" { "the bank is late".to_owned() } else { format!("the {victim} is killed {at}") });
    let at_of = |who: &str| if who == victim { at } else { "never" };
    let start_bank = |point: &str| -> Result<_, Box<dyn Error>> {
        let mut bank = Process::start(&["bank", &text(folder.path()), point])?;
        let address = bank.next()?;
        Ok((bank, address))
    };
    let start_worker = |name: &str, address: &str, point: &str| {
        Process::start(&["worker", &text(folder.path()), name, address, point])
    };
    let (mut server, mut address) = start_bank(at_of("bank"))?;
    let mut first = start_worker("first", &address, at_of("worker"))?;

    // Whoever comes to the point says so, and is killed there.
    if victim == "worker" {
        first.until(&format!("at {at}"))?;
        first.kill()?;
        if at == "after-request" {
            server.until("carried out")?;
        }
    } else {
        server.until(&format!("at {at}"))?;
        if at != "late" {
            server.kill()?;
        }
        first.finish()?;
        if at != "late" {
            (server, address) = start_bank("never")?;
        }
    }
    check(folder.path(), &shop)?;
    revoke(folder.path())?;
    start_worker("second", &address, "never")?.finish()?;
    check(folder.path(), &shop)?;
    if at == "late" {
        // The request was under way all the time: whoever took "not seen" for "not charged" would be wrong now.
        bank::release(&address)?;
        println!("  bank: the late request is carried out");
        revoke(folder.path())?;
        start_worker("third", &address, "never")?.finish()?;
    } else {
        // Nothing may be under way any more when a person decides: the bank is started anew.
        server.kill()?;
        if person(folder.path(), &shop)? {
            (server, address) = start_bank("never")?;
            revoke(folder.path())?;
            start_worker("third", &address, "never")?.finish()?;
        }
    }
    server.kill()?;

    println!("  charges: {}", bank::charges(folder.path())?);
    match check(folder.path(), &shop)? {
        true => Ok(()),
        false => Err(format!("{point}: it does not end with one charge that is known").into()),
    }
}

/// Compares the ledger with the bank's books: there is at most one charge, what is called done is there, and what is there is
/// called done or not over, never "not applied". Whether it is known that it is there.
fn check(folder: &Path, shop: &SqliteSink) -> Result<bool, Box<dyn Error>> {
    let attempts = blocking::wait_for(shop.list(Which::All, None, None, 10))?;
    let (charges, is_open) = (bank::charges(folder)?, attempts.iter().any(|attempt| !attempt.state.is_final()));
    let is_done = attempts.iter().any(|attempt| matches!(attempt.state, Attempt::Done | Attempt::Applied));
    if charges > 1 || (is_done && charges == 0) || (charges == 1 && !is_done && !is_open) {
        return Err(format!("the ledger is not true: {charges} charges, and {attempts:?}").into());
    }
    Ok(is_done && !is_open)
}

/// The worker's database: its fence, and the ledger beside it.
fn prepare(folder: &Path) -> Result<SqliteSink, Box<dyn Error>> {
    let path = folder.join("shop.db");
    let sink = SqliteSink::create(&path, "shop".parse()?, Rule::Sealed)?;
    SqliteLedger::new().install(&rusqlite::Connection::open(&path)?)?;
    bank::prepare(folder)?;
    let url = format!("{}?create=true", authority(folder));
    drop(blocking::wait_for(Tenure::builder().owner("maker").connect(&url))?);
    Ok(sink)
}

/// Looks into the bank's books about what nobody knows, and decides. It may say "not applied", because the worker that could
/// still send and the server that could still carry it out have both ended.
fn person(folder: &Path, shop: &SqliteSink) -> Result<bool, Box<dyn Error>> {
    let unknown = blocking::wait_for(shop.list(Which::Unknown, None, None, 10))?;
    for attempt in &unknown {
        let (decision, why) = match bank::charges(folder)? {
            0 => (Decision::NotApplied, "not in the bank's books, and whoever could still make it is gone"),
            _ => (Decision::Applied(None), "in the bank's books"),
        };
        let decided = blocking::wait_for(shop.decide(&attempt.key, &decision, &"anna".parse()?, &why.parse()?))?;
        let state = decided.map_err(|refused| refused.to_string())?;
        println!("  person: {}: {why}", state.name());
    }
    Ok(!unknown.is_empty())
}

fn authority(folder: &Path) -> String {
    format!("sqlite:{}/authority.db", folder.display())
}

/// Takes the right away from a worker that is gone, so that nobody waits for its deadline.
fn revoke(folder: &Path) -> Result<(), Box<dyn Error>> {
    let operator = blocking::wait_for(Tenure::builder().owner("operator").connect(&authority(folder)))?;
    let (resource, actor, reason) = (worker::RESOURCE.parse()?, "operator".parse()?, "it was killed".parse()?);
    // A refusal means that nobody holds it.
    let _ = blocking::wait_for(operator.authority().execute(&Request::Revoke { resource, only: None, actor, reason }))?;
    Ok(())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// One of the two, as a process of its own. It is killed when this is dropped.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(args: &[&str]) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?).args(args).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().ok_or("it has no output")?).lines();
        Ok(Self { child, lines })
    }

    fn next(&mut self) -> Result<String, Box<dyn Error>> {
        Ok(self.lines.next().ok_or("it ended too early")??)
    }

    /// Passes on what it says until it says this.
    fn until(&mut self, word: &str) -> Result<(), Box<dyn Error>> {
        loop {
            match self.next()? {
                line if line == word => return Ok(()),
                line if line == "carried out" => {}
                line => println!("  {line}"),
            }
        }
    }

    /// Passes on what it says until it has ended.
    fn finish(&mut self) -> Result<(), Box<dyn Error>> {
        for line in self.lines.by_ref() {
            println!("  {}", line?);
        }
        match self.child.wait()?.success() {
            true => Ok(()),
            false => Err("a worker has failed".into()),
        }
    }

    fn kill(&mut self) -> Result<(), Box<dyn Error>> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// In a process: says that it has come to this point, if it is the one, and stands still there.
fn reach(wanted: &str, point: &str) {
    if wanted == point {
        println!("at {point}");
        loop {
            std::thread::park();
        }
    }
}
