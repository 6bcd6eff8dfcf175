//! `tenure unknown`: what a person sees of calls that nobody knows about, and says of them.

use crate::site::{Said, Site};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::BTreeSet;
use tenure::blocking::wait_for;
use tenure::core::fence::Rule;
use tenure::core::operation::Attempt;
use tenure::core::{Epoch, GrantId, OperationId, ResourceName, Token};
use tenure::sink::ledger::{Intended, Intent, NoEffect};
use tenure::sink::{Sink, SqliteLedger, SqliteSink, digest_of};

fn token(resource: &str, epoch: u64) -> Token {
    let (resource, epoch) = (ResourceName::new(resource).unwrap(), Epoch::new(epoch).unwrap());
    Token { resource, epoch, grant: GrantId::from_bits(7) }
}

fn seal(sink: &SqliteSink, token: &Token) {
    let generation = wait_for(sink.describe(&token.resource)).unwrap().generation;
    let _ = wait_for(sink.seal(token, &generation, &BTreeSet::new())).unwrap();
}

/// What a worker says of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Intended,
    Sent,
    NoAnswer,
    Done,
    Refused,
}

fn call(site: &Site, token: &Token, name: &str, says: Says) {
    let mut connection = Connection::open(site.path("book.db")).unwrap();
    let operation = OperationId::new(name).unwrap();
    let intent = Intent {
        operation: operation.clone(),
        digest: digest_of(name.as_bytes()),
        system: "bank".parse().unwrap(),
        owner: "alice@db3/4711".parse().unwrap(),
    };
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert_eq!(SqliteLedger.intent(&tx, token, &intent).unwrap(), Ok(Intended::Written));
    tx.commit().unwrap();
    if says == Says::Intended {
        return;
    }
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let _ = SqliteLedger.sent(tx, token, &operation).unwrap().unwrap();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let told = match says {
        Says::NoAnswer => SqliteLedger.unknown(&tx, token, &operation, &"no answer within 30 s".parse().unwrap()),
        Says::Done => SqliteLedger.done(&tx, token, &operation, &"charge 1".parse().unwrap()),
        Says::Refused => {
            SqliteLedger.failed(&tx, token, &operation, NoEffect::Refused, &"the card is over".parse().unwrap())
        }
        Says::Sent | Says::Intended => return,
    };
    assert!(told.unwrap().is_ok());
    tx.commit().unwrap();
}

/// A receiver with a ledger that holds a call of each kind: `intended`, `sent`, `lost`, `done`. Its address.
pub(crate) fn book(site: &Site) -> String {
    let path = site.path("book.db");
    let sink = SqliteSink::create(&path, "book".parse().unwrap(), Rule::Sealed).unwrap();
    SqliteLedger.install(&Connection::open(&path).unwrap()).unwrap();
    let token = token("orders", 1);
    seal(&sink, &token);
    for (name, says) in
        [("intended", Says::Intended), ("sent", Says::Sent), ("lost", Says::NoAnswer), ("done", Says::Done)]
    {
        call(site, &token, name, says);
    }
    format!("sqlite:{}?id=book", path.display())
}

fn unknown(site: &Site, words: &[&str], book: &str) -> Said {
    site.tenure(&[&["unknown"], words, &["--sink", book]].concat())
}

#[test]
fn ls_shows_what_nobody_knows_and_what_is_not_over_when_asked() {
    let site = Site::new();
    let book = book(&site);
    let names = |more: &[&str]| -> Vec<String> {
        let listed = unknown(&site, &[&["ls", "--json"], more].concat(), &book).ended(0).whole_json();
        let attempts = listed["attempts"].as_array().unwrap().clone();
        attempts.iter().map(|attempt| attempt["operation"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["lost"]);
    assert_eq!(names(&["--open"]), ["intended", "lost", "sent"]);
    assert_eq!(names(&["--all"]), ["done", "intended", "lost", "sent"]);
    assert_eq!(names(&["--resource", "orders"]), ["lost"]);
    assert_eq!(names(&["--resource", "others"]), Vec::<String>::new());
    let said = unknown(&site, &["ls"], &book).ended(0);
    let said = said.with(&["OPERATION", "lost", "unknown", "bank", "alice@db3/4711", "orders", "book"]);
    assert!(!said.out.contains("sent"), "{said:?}");
    let first = unknown(&site, &["ls", "--json"], &book).ended(0).whole_json()["attempts"][0].clone();
    assert_eq!(first["owner"]["pid"], 4711);
    assert_eq!(first["why"], "no answer within 30 s");
    assert!(first["age_ms"].as_u64().is_some() && first["since"].as_str().unwrap().ends_with('Z'), "{first}");
    assert_eq!(first["digest"].as_str().unwrap().len(), 64);
}

#[test]
fn an_empty_list_says_so_and_is_an_empty_list() {
    let site = Site::new();
    let path = site.path("empty.db");
    let url = format!("shop=sqlite:{}", path.display());
    SqliteSink::create(&path, "x".parse().unwrap(), Rule::Sealed).unwrap();
    unknown(&site, &["ls"], &url).ended(69).with(&["has no ledger of calls", "install"]);
    SqliteLedger.install(&Connection::open(&path).unwrap()).unwrap();
    unknown(&site, &["ls"], &url).ended(0).with(&["tenure unknown: nothing is unknown at shop"]);
    let listed = unknown(&site, &["ls", "--json"], &url).ended(0).whole_json();
    assert_eq!(listed["attempts"], serde_json::json!([]));
}

#[test]
fn a_receiver_that_keeps_no_ledger_is_named() {
    let site = Site::new();
    let files = site.files("out");
    unknown(&site, &["ls"], &files).ended(69).with(&[&files, "no ledger"]);
    unknown(&site, &["ls"], "sqlite:missing.db").ended(69).with(&["is not there"]);
    unknown(&site, &["ls"], "what").ended(64).with(&["no address of a sink"]);
    site.tenure(&["unknown", "ls"]).ended(64).with(&["--sink"]);
    assert!(!site.path("missing.db").exists());
}

/// A ledger is no authority's: where no folder for one could be made, nothing was shown and nothing decided.
#[test]
fn no_authority_is_needed() {
    let site = Site::new();
    let book = book(&site);
    for words in [&["ls"][..], &["show", "lost"], &["resolve", "lost", "--applied", "--reason", "x"]] {
        let mut command = site.command(&[&["unknown"], words, &["--sink", &book]].concat());
        command.env_remove("TENURE_AUTHORITY").env_remove("XDG_STATE_HOME").env("HOME", "/proc/nobody");
        Said::of(command.output().unwrap()).ended(0).with(&["lost"]);
    }
}

#[test]
fn show_says_whose_it_is_what_is_known_and_what_to_do() {
    let site = Site::new();
    let book = book(&site);
    let said = unknown(&site, &["show", "lost"], &book).ended(0);
    said.with(&["unknown", "orders, epoch 1", "bank", "alice@db3, pid 4711", "no answer within 30 s"]).with(&[
        "Nobody knows",
        "tenure unknown resolve lost --sink",
        "--not-applied --reason TEXT",
    ]);
    unknown(&site, &["show", "sent"], &book).ended(0).with(&["may still hear the answer"]);
    unknown(&site, &["show", "done"], &book).ended(0).with(&["charge 1", "is not made again"]);
    unknown(&site, &["show", "lots"], &book).ended(1).with(&["there is no lots in the ledger of book"]);
    let json = unknown(&site, &["show", "lost", "--json"], &book).ended(0).json();
    assert_eq!(json["attempts"][0]["state"], "unknown");
}

#[test]
fn resolve_is_final_and_keeps_who_said_it_and_why() {
    let site = Site::new();
    let book = book(&site);
    let resolve = |answer: &str, more: &[&str]| {
        let words = [&["resolve", "lost", answer, "--reason", "in the statement of 3 May"], more].concat();
        unknown(&site, &words, &book)
    };
    let said = resolve("--applied", &["--outcome", "charge 1", "--json"]).ended(0).json();
    assert_eq!((&said["state"], &said["resolved"]), (&"applied".into(), &true.into()));
    assert!(said["by"].as_str().unwrap().starts_with("op@"), "{said}");
    // The same again is no news, whoever says it; the opposite is refused.
    let again = resolve("--applied", &["--owner", "eve@home", "--json"]).ended(0).json();
    assert_eq!((&again["resolved"], &again["by"]), (&false.into(), &said["by"]));
    resolve("--not-applied", &[]).ended(65).with(&["is applied, as op@", "final"]);
    unknown(&site, &["show", "lost"], &book).ended(0).with(&[
        "applied",
        "decided by",
        "in the statement of 3 May",
        "charge 1",
    ]);
    unknown(&site, &["ls"], &book).ended(0).with(&["nothing is unknown at book"]);
    // The next holder finds it done.
    let sink = SqliteSink::open(site.path("book.db"), "book".parse().unwrap(), Rule::Sealed).unwrap();
    let second = token("orders", 2);
    seal(&sink, &second);
    let mut connection = Connection::open(site.path("book.db")).unwrap();
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let intent = Intent {
        operation: "lost".parse().unwrap(),
        digest: digest_of(b"lost"),
        system: "bank".parse().unwrap(),
        owner: "bob".parse().unwrap(),
    };
    let intended = SqliteLedger.intent(&tx, &second, &intent).unwrap();
    assert!(matches!(intended, Ok(Intended::Effective { outcome: Some(_), .. })), "{intended:?}");
}

#[test]
fn a_person_decides_what_is_unknown_and_nothing_else() {
    let site = Site::new();
    let book = book(&site);
    let resolve = |name: &str, answer: &str| unknown(&site, &["resolve", name, answer, "--reason", "x"], &book);
    for name in ["sent", "intended"] {
        resolve(name, "--not-applied").ended(75).with(&["was left as it is", "only what is unknown"]);
    }
    resolve("done", "--not-applied").ended(65).with(&["is done", "final"]);
    resolve("none", "--applied").ended(1).with(&["there is no none"]);
    unknown(&site, &["resolve", "lost", "--reason", "x"], &book).ended(64).with(&["--applied"]);
    unknown(&site, &["resolve", "lost", "--applied", "--not-applied", "--reason", "x"], &book).ended(64);
    unknown(&site, &["resolve", "lost", "--applied", "--reason", " "], &book).ended(64).with(&["say why"]);
    unknown(&site, &["resolve", "lost", "--not-applied", "--outcome", "x", "--reason", "x"], &book).ended(64);
    let listed = unknown(&site, &["ls", "--json"], &book).ended(0).whole_json();
    assert_eq!(listed["attempts"][0]["state"], Attempt::Unknown.name());
}

/// A call that had failed was called applied when a person said that it was not: what is over was thought to be done.
#[test]
fn what_has_failed_is_not_called_applied() {
    let site = Site::new();
    let book = book(&site);
    call(&site, &token("orders", 1), "refused", Says::Refused);
    let resolve = |answer: &str| unknown(&site, &["resolve", "refused", answer, "--reason", "x"], &book);
    resolve("--not-applied").ended(0).with(&["refused of orders, epoch 1: not applied, as it was known before."]);
    resolve("--applied").ended(65).with(&["is failed", "final"]);
}

#[test]
fn one_id_under_several_resources_must_be_named() {
    let site = Site::new();
    let book = book(&site);
    let sink = SqliteSink::open(site.path("book.db"), "book".parse().unwrap(), Rule::Sealed).unwrap();
    let other = token("refunds", 1);
    seal(&sink, &other);
    call(&site, &other, "lost", Says::NoAnswer);
    let resolve =
        |more: &[&str]| unknown(&site, &[&["resolve", "lost", "--applied", "--reason", "x"], more].concat(), &book);
    resolve(&[]).ended(64).with(&["orders (epoch 1", "refunds (epoch 1", "--resource"]);
    resolve(&["--resource", "refunds"]).ended(0).with(&["lost of refunds, epoch 1: applied"]);
    resolve(&[]).ended(0).with(&["lost of orders"]);
}
