use crate::site::{Said, Site};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use tenure::blocking::wait_for;
use tenure::core::fence::Rule;
use tenure::grant::{KeyFolder, Verifier};
use tenure::sink::http::Routes;
use tenure::sink::{Sink as _, SqliteSink};

fn keys(site: &Site, args: &[&str]) -> Said {
    let folder = site.path("keys").display().to_string();
    site.tenure(&[&["keys", "--keys", &folder], args].concat())
}

/// Makes them where there are none, and lists them.
fn list(site: &Site) -> Vec<(String, String)> {
    let made = keys(site, &["make", "--json"]).ended(0).json();
    let said = keys(site, &["ls", "--json"]).ended(0).json();
    assert_eq!(said, made);
    let all = said["keys"].as_array().unwrap();
    let text = |key: &Value, name: &str| key[name].as_str().unwrap().to_owned();
    all.iter().map(|key| (text(key, "state"), text(key, "id"))).collect()
}

#[test]
fn keys_are_listed_exported_rotated_and_taken_out() {
    let site = Site::new();
    let before = list(&site);
    assert_eq!(before.iter().map(|(state, _)| state.as_str()).collect::<Vec<_>>(), ["active", "next"]);
    keys(&site, &["ls"]).ended(0).with(&[&before[0].1, "active", "it signs", "after the next rotation"]);
    let file = site.path("jwks.json");
    keys(&site, &["export", "--file", file.to_str().unwrap()]).ended(0);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    let exported: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&keys(&site, &["export"]).ended(0).out).unwrap(), exported);
    assert_eq!(exported["keys"].as_array().unwrap().len(), 2);
    assert!(!exported.to_string().contains("\"d\""));

    keys(&site, &["rotate"]).ended(0).with(&[&before[1].1, "Retired", "a few minutes old", "tenure keys export"]);
    let after = list(&site);
    assert_eq!((&after[0].1, &after[2].1), (&before[1].1, &before[0].1));
    keys(&site, &["remove", &after[0].1]).ended(1).with(&["rotate first"]);
    keys(&site, &["remove", &after[2].1]).ended(1).with(&["--at-once"]);
    let removed = keys(&site, &["remove", &after[2].1, "--at-once", "--json"]).ended(0).json();
    assert_eq!(removed["removed"]["id"], after[2].1);
    keys(&site, &["remove", &after[2].1]).ended(1).with(&["there is no key"]);
    keys(&site, &["remove", "a b"]).ended(64).with(&["visible ASCII"]);
    let rotated = keys(&site, &["rotate", "--json"]).ended(0).json();
    assert_eq!(rotated["retired"]["id"], after[0].1);
    assert!(rotated["retired"]["known_until"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn keys_that_others_can_read_are_refused_by_name() {
    let site = Site::new();
    list(&site);
    std::fs::set_permissions(site.path("keys/keys.json"), std::fs::Permissions::from_mode(0o644)).unwrap();
    keys(&site, &["ls"]).ended(70).with(&["keys.json", "can be read by others", "chmod 600"]);
}

/// A receiver behind HTTP that seals signed grants alone, on a port of its own.
struct Shop {
    database: SqliteSink,
    url: String,
    _runtime: tokio::runtime::Runtime,
}

impl Shop {
    /// It knows the keys of this folder.
    fn open(site: &Site, keys: &KeyFolder) -> Self {
        let database = SqliteSink::create(site.path("shop.db"), "shop".parse().unwrap(), Rule::Sealed).unwrap();
        let routes = Routes::new(Arc::new(database.clone()), Verifier::of_folder(keys.clone()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/tenure", listener.local_addr().unwrap());
        let router = axum::Router::new().nest_service("/tenure", routes);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { database, url, _runtime: runtime }
    }

    fn epoch(&self) -> Option<u64> {
        let resource = "job".parse().unwrap();
        wait_for(self.database.describe(&resource)).unwrap().row.map(|row| row.epoch.get())
    }
}

/// The keys of `tenure keys` are those that `tenure run` signs with, and who has others seals nothing.
#[test]
fn a_run_signs_its_seals_with_the_keys_of_the_folder() {
    let site = Site::new();
    drop(list(&site));
    let shop = Shop::open(&site, &KeyFolder::new(site.path("keys")));
    let run = |keys: &str| {
        let mut command =
            site.command(&["run", "--resource", "job", "--sink", &shop.url, "--wait", "0s", "--", "true"]);
        Said::of(command.env("TENURE_KEYS", site.path(keys)).output().unwrap())
    };
    let stranger = run("others").ended(69);
    assert!(stranger.err.contains("not known here") && stranger.err.contains("tenure keys export"), "{stranger:?}");
    assert_eq!(shop.epoch(), None, "it has raised the fence");
    run("keys").ended(0);
    assert!(shop.epoch().is_some());
    let said = site.tenure(&["sinks", "job", "ls", "--sink", &shop.url]).ended(0);
    said.with(&["shop", "as the authority"]);
}

/// Processes that come at once use the keys of whichever was first.
#[test]
fn of_processes_that_come_at_once_all_use_the_same_keys() {
    let site = Site::new();
    let folder = site.path("keys").display().to_string();
    let begin = || {
        let mut command = site.command(&["keys", "make", "--json", "--keys", &folder]);
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let all: Vec<_> =
        [(); 8].map(|()| begin()).into_iter().map(|child| child.wait_with_output().unwrap().stdout).collect();
    assert!(!all[0].is_empty() && all.iter().all(|other| *other == all[0]), "{all:?}");
}

/// `tenure keys export` of a mistyped folder made keys there, and printed public halves of keys that nobody signs with.
#[test]
fn a_folder_without_keys_is_named_and_stays_as_it_is() {
    let site = Site::new();
    let id = tenure::grant::SigningKey::generate().unwrap().id().to_string();
    let verbs =
        [&["ls"][..], &["ls", "--json"], &["export"], &["export", "--file", "out.json"], &["rotate"], &["remove", &id]];
    for verb in verbs {
        let folder = site.path("keys").display().to_string();
        let said = keys(&site, verb).ended(70);
        said.with(&["there are no keys in", &folder, "--keys", "tenure keys make"]);
    }
    assert!(!site.path("keys").exists() && !site.path("out.json").exists());
}

#[test]
fn no_key_is_made_before_one_is_needed() {
    let site = Site::new();
    let out = site.files("out");
    let mut command = site.command(&["run", "--resource", "job", "--sink", &out, "--", "true"]);
    Said::of(command.env("TENURE_KEYS", site.path("keys")).output().unwrap()).ended(0);
    assert!(!site.path("keys").exists());
}
