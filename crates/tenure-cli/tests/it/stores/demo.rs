//! The incident on a store that others use.

use super::{Kind, on_every_store};
use crate::site::hold;
use std::path::Path;

on_every_store!(the_incident_is_the_published_one_and_leaves_the_others_alone);

fn the_incident_is_the_published_one_and_leaves_the_others_alone(kind: Kind) {
    // It starts ten workers at once.
    let _alone = crate::run::alone();
    let site = kind.site();
    let worker = site.worker("alice");
    let lease = hold(&worker, "document", &[]);
    // A floor, above which every new resource begins.
    hold(&worker, "old", &[]).release().unwrap();
    site.tenure(&["retire", "old"]).ended(0);
    let published = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/published.json");
    let said =
        site.tenure(&["demo", "--authority", &site.authority(), "--check", published.to_str().unwrap()]).ended(0);
    let said = said.with(&["in real time", "acquires: epoch 2, for 2 s", "is retired", "but for the deadlines"]);
    assert!(said.out.contains("none         written") && said.out.contains("sealed       stale"), "{said:#?}");
    lease.ensure_owned().unwrap();
    let left = site.tenure(&["ls", "--json"]).ended(0).whole_json();
    let names: Vec<_> = left["resources"].as_array().unwrap().iter().map(|row| &row["resource"]).collect();
    assert_eq!(names, ["document"]);
}
