//! A worker is stopped, or killed, at each of the seven points of its round.

use crate::site::{Kind, Site};
use crate::worker::Worker;
use serde_json::Value;
use vector_sync::point::{KILL, Point, STOP};

/// Runs a drill at each point, all at once, each with a tenant of its own in one index.
fn at_each_point(kind: Kind, drill: impl Fn(&Site, &str, Point) + Sync) {
    let site = Site::new(kind);
    std::thread::scope(|scope| {
        for point in Point::ALL {
            let (site, drill) = (&site, &drill);
            scope.spawn(move || drill(site, &format!("t-{}", point.name()), point));
        }
    });
}

/// The story: a worker that had built half of an index was suspended; another one built and published all of it; the first
/// woke up, went on where it was, and its old half was served from then on.
fn a_stopped_builder_is_superseded(site: &Site, tenant: &str, point: Point) {
    site.edition(tenant, "first");
    assert_eq!(site.round(tenant)["outcome"], "published");
    site.edition(tenant, "second");
    let mut old = Worker::start(site, tenant, &[], &[(STOP, point.name())]);
    old.is_stopped();
    let before = site.search(tenant, "edition");
    let live_then = if point == Point::BeforeRecord { 2 } else { 1 };
    assert_eq!(before["version"], live_then, "{point}");

    site.edition(tenant, "third");
    let (said, outcome) = Worker::start(site, tenant, &[], &[]).ends();
    let outcome = outcome.unwrap_or_else(|| panic!("{point}: {said:?}"));
    assert_eq!(outcome["outcome"], "published", "{point}: {said:?}");
    let published = site.standing(tenant);
    assert_eq!(published["live"]["version"], live_then + 1, "{point}: {published}");

    old.wake();
    let (said, outcome) = old.ends();
    let outcome = outcome.unwrap_or_else(|| panic!("{point}: {said:?}"));
    assert_eq!((said.status, outcome["outcome"].as_str()), (76, Some("superseded")), "{point}: {said:?}");
    assert!(outcome["by"].as_u64() > outcome["epoch"].as_u64(), "{point}: {outcome}");

    if point == Point::BeforeSwitch {
        // It had looked right before: the index alone can refuse what it sends then.
        assert!(said.out.contains("the index refused a write"), "{said:?}");
    }
    let had_gone_live = if point == Point::BeforeRecord { 2.into() } else { Value::Null };
    assert_eq!(outcome["version"], had_gone_live, "{point}: {outcome}");

    // Nothing that the old one did after it woke is to be seen anywhere.
    assert_eq!(site.standing(tenant), published, "{point}");
    let epoch = &published["live"]["epoch"];
    let found = site.search(tenant, "edition third page");
    assert_eq!(&found["epoch"], epoch);
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.iter().all(|hit| &hit["epoch"] == epoch && hit["document"].is_string()), "{point}: {found}");
    assert!(hits.iter().any(|hit| text(hit).contains("Edition third")), "{point}: {found}");
    assert!(!hits.iter().any(|hit| text(hit).contains("Edition second")), "{point}: {found}");
    // What dead epochs had left is gone; what is live, and one version before it, is there.
    let kept: Vec<&str> =
        published["generations"].as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
    assert_eq!(kept, ["published", "published"], "{point}: {published}");
}

fn text(hit: &Value) -> &str {
    hit["text"].as_str().unwrap()
}

#[test]
fn a_builder_stopped_at_each_point_is_superseded_on_sqlite() {
    at_each_point(Kind::Sqlite, a_stopped_builder_is_superseded);
}

#[test]
fn a_builder_stopped_at_each_point_is_superseded_on_postgres() {
    at_each_point(Kind::Postgres, a_stopped_builder_is_superseded);
}

#[test]
fn a_builder_stopped_at_each_point_is_superseded_on_chroma() {
    at_each_point(Kind::Chroma, a_stopped_builder_is_superseded);
}

/// The story: a build that died near its end had paid for all of its vectors; the next one bought them all again. And a reader
/// was served what the dead one had written so far.
fn a_killed_builder_leaves_a_whole_version(site: &Site, tenant: &str, point: Point) {
    site.edition(tenant, "first");
    assert_eq!(site.round(tenant)["outcome"], "published");
    site.edition(tenant, "second");
    let killed = Worker::start(site, tenant, &[], &[(KILL, point.name())]);
    let (said, outcome) = killed.ends();
    assert_eq!((said.status, outcome), (-1, None), "{point}: {said:?}");

    let live = site.search(tenant, "edition page");
    let (version, edition) = if point == Point::BeforeRecord { (2, "Edition second") } else { (1, "Edition first") };
    assert_eq!(live["version"], version, "{point}: {live}");
    let hits = live["hits"].as_array().unwrap();
    let titles: Vec<&str> = hits.iter().map(text).filter(|text| text.contains("Edition")).collect();
    assert!(!titles.is_empty() && titles.iter().all(|text| text.contains(edition)), "{point}: {live}");

    let (said, outcome) = Worker::start(site, tenant, &[], &[]).ends();
    let outcome = outcome.unwrap_or_else(|| panic!("{point}: {said:?}"));
    let ending = if point == Point::BeforeRecord { "unchanged" } else { "published" };
    assert_eq!(outcome["outcome"], ending, "{point}: {said:?}");
    // Twenty first pages differ between two editions. Those that the dead one had embedded are not embedded again.
    if point != Point::BeforeRecord {
        let bought = if point < Point::Embedded { 20 } else { 0 };
        assert_eq!(outcome["embedded"], bought, "{point}: {outcome}");
    }
    let standing = site.standing(tenant);
    assert_eq!(standing["live"]["version"], 2, "{point}: {standing}");
    assert_eq!(standing["live"]["recorded"], true, "{point}: {standing}");
    let moves = standing["moves"].as_array().unwrap();
    assert_eq!(moves.len(), 2, "{point}: the alias moved once for each version: {standing}");
    let states: Vec<&str> =
        standing["generations"].as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["published", "published"], "{point}: {standing}");
}

#[test]
fn a_builder_killed_at_each_point_leaves_a_whole_version_on_sqlite() {
    at_each_point(Kind::Sqlite, a_killed_builder_leaves_a_whole_version);
}

#[test]
fn a_builder_killed_at_each_point_leaves_a_whole_version_on_postgres() {
    at_each_point(Kind::Postgres, a_killed_builder_leaves_a_whole_version);
}

#[test]
fn a_builder_killed_at_each_point_leaves_a_whole_version_on_chroma() {
    at_each_point(Kind::Chroma, a_killed_builder_leaves_a_whole_version);
}
