//! An authority on a network that is not there, or does not answer: clear, bounded, and with the documented status.

use super::Kind;
use crate::run::account;
use crate::site::{Site, hold};
use std::time::Duration;
use tenure::authority::BootClock;
use tenure_servers::{Etcd, Postgres, Proxy, Redis};

/// Longer than any bound of a verb, and far shorter than for ever.
const BOUND: Duration = Duration::from_secs(45);

const NETWORK: [Kind; 3] = [Kind::Postgres, Kind::Redis, Kind::Etcd];

fn port(kind: Kind) -> u16 {
    match kind {
        Kind::Sqlite => unreachable!("a file has no port"),
        Kind::Postgres => Postgres::shared().port(),
        Kind::Redis => Redis::shared().port(),
        Kind::Etcd => Etcd::shared().endpoints()[0].port(),
    }
}

/// Each verb that asks the authority ends with the same status, within a bound.
fn every_verb_says_so(site: &Site, token: &str, url: &str) {
    let verbs: [&[&str]; 9] = [
        &["run", "--resource", "r", "--wait", "1s", "--json", "--", "true"],
        &["check", "--token", token],
        &["release", "--token", token],
        &["ls"],
        &["show", "r"],
        &["history"],
        &["takeover", "r", "--reason", "x"],
        &["migrate"],
        &["demo", "--authority"],
    ];
    std::thread::scope(|scope| {
        for verb in verbs {
            scope.spawn(move || {
                let before = BootClock.now_nanos();
                let output = site.command(verb).env("TENURE_AUTHORITY", url).output().unwrap();
                let took = Duration::from_nanos(BootClock.now_nanos() - before);
                let said = crate::site::Said::of(output).ended(69);
                assert!(took < BOUND, "{verb:?} took {took:?}");
                assert!(!said.err.trim().is_empty(), "{verb:?}: {said:#?}");
                println!("{} {took:?} {}", verb[0], said.err.trim());
                if verb[0] == "run" {
                    assert_eq!(account(&said)["outcome"], "unavailable");
                }
            });
        }
    });
    let output = site.command(&["doctor", "--json"]).env("TENURE_AUTHORITY", url).output().unwrap();
    let doctor = crate::site::Said::of(output).ended(1);
    assert!(doctor.out.contains("unseen") && doctor.out.contains("was not looked at"), "{doctor:#?}");
}

fn where_nobody_listens(kind: Kind) {
    let site = kind.site();
    let token = hold(&site.worker("alice"), "r", &[]).token().to_string();
    let proxy = Proxy::to(port(kind));
    let url = proxy.url(&site.authority());
    drop(proxy);
    every_verb_says_so(&site, &token, &url);
}

fn where_nobody_answers(kind: Kind) {
    let site = kind.site();
    let token = hold(&site.worker("alice"), "r", &[]).token().to_string();
    let proxy = Proxy::to(port(kind));
    proxy.freeze();
    every_verb_says_so(&site, &token, &proxy.url(&site.authority()));
}

#[test]
fn where_nobody_listens_it_is_69() {
    let _alone = crate::run::alone();
    NETWORK.into_iter().for_each(where_nobody_listens);
}

#[test]
fn where_nobody_answers_it_is_69_after_a_bound() {
    let _alone = crate::run::alone();
    NETWORK.into_iter().for_each(where_nobody_answers);
}
