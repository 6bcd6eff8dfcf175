//! What a store promises and what weakens that, and how it is brought up to date.

use super::{Kind, on_every_store};
use crate::site::{Site, made};
use serde_json::Value;
use tenure_servers::{Postgres, Redis};

on_every_store!(a_store_is_looked_at, nothing_is_to_be_migrated);

fn checks(site: &Site) -> Vec<Value> {
    let said = site.tenure(&["doctor", "--json"]);
    said.whole_json()["checks"].as_array().unwrap().clone()
}

#[track_caller]
fn check<'a>(checks: &'a [Value], name: &str) -> &'a Value {
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {checks:#?}"))
}

fn a_store_is_looked_at(kind: Kind) {
    let site = kind.site();
    println!("{}", site.tenure(&["doctor"]).ended(0).out);
    let checks = checks(&site);
    assert!(checks.iter().all(|check| check["verdict"] != "fail" && check["verdict"] != "unseen"), "{checks:#?}");
    for name in ["authority", "identity", "durability", "waiting", "speed", "quarantine", "ttl", "schema"] {
        assert!(check(&checks, name)["says"].as_str().is_some_and(|says| !says.is_empty()));
    }
    assert!(check(&checks, "ttl")["says"].as_str().unwrap().contains("the authority allows at most"));
    let is_file = kind == Kind::Sqlite;
    assert_eq!(checks.iter().any(|check| check["name"] == "disk"), is_file);
    assert_eq!(checks.iter().any(|check| check["name"] == "server's clock"), !is_file);
    assert_eq!(checks.iter().any(|check| check["name"] == "settings"), !is_file);
    let weakened = check(&checks, "durability")["says"].as_str().unwrap().contains("settings above");
    // The shared PostgreSQL of the tests does not wait for its disk, and the shared etcd is alone.
    assert_eq!(weakened, matches!(kind, Kind::Postgres | Kind::Etcd));
    let may_lose = check(&checks, "durability")["says"].as_str().unwrap().contains("failover");
    assert_eq!(may_lose, kind == Kind::Redis);
}

fn nothing_is_to_be_migrated(kind: Kind) {
    let site = kind.site();
    site.tenure(&["migrate"]).ended(0).with(&["Nothing is to be done"]);
    let said = site.tenure(&["migrate", "--json", "--dry-run"]).ended(0).json();
    assert_eq!((&said["migrated"], &said["steps"]), (&false.into(), &Value::Array(Vec::new())), "{said}");
    assert_eq!(said["from"], said["to"]);
}

#[test]
fn the_schema_is_shown_and_then_made() {
    let url = Postgres::shared().database();
    let site = Site::new();
    let migrate = |url: &str, more: &[&str]| site.tenure(&[&["migrate", "--authority", url], more].concat());
    // Nothing was asked to be made.
    migrate(&url, &[]).ended(69).with(&["create=true"]);
    let said = migrate(&made(&url), &["--dry-run"]).ended(0);
    assert!(said.out.starts_with("-- 1: ") && said.out.contains("CREATE TABLE"), "{said:#?}");
    said.with(&["would bring", "from version 0 to 1"]);
    site.tenure(&["ls", "--authority", &url]).ended(69);
    let said = migrate(&made(&url), &["--json"]).ended(0).json();
    assert_eq!((&said["from"], &said["to"], &said["migrated"]), (&0.into(), &1.into(), &true.into()), "{said}");
    site.tenure(&["ls", "--authority", &url]).ended(0);
    migrate(&url, &[]).ended(0).with(&["Nothing is to be done"]);
}

/// redis: a server that evicts forgets a lease when it is short of memory, and nobody is told.
#[test]
fn settings_that_weaken_a_promise_are_named() {
    let redis = Redis::options().appendonly(false).maxmemory_policy("allkeys-lru").conf("maxmemory 64mb").start();
    let site = Site::on(redis.url());
    let checks = checks(&site);
    let settings: Vec<&str> = checks
        .iter()
        .filter(|check| check["name"] == "settings" && check["verdict"] == "warn")
        .map(|check| check["says"].as_str().unwrap())
        .collect();
    assert!(settings.iter().any(|says| says.contains("maxmemory-policy")), "{settings:#?}");
    assert!(settings.iter().any(|says| says.contains("append")), "{settings:#?}");
    site.tenure(&["doctor"]).ended(0).with(&["warn", "maxmemory-policy"]);
}
