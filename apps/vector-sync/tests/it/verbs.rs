//! What each verb does and says.

use crate::site::{Kind, Site};

#[test]
fn what_has_not_changed_is_not_published_again() {
    let site = Site::new(Kind::Sqlite);
    site.edition("acme", "first");
    let first = site.round("acme");
    assert_eq!((&first["outcome"], &first["version"]), (&"published".into(), &1.into()), "{first}");
    assert_eq!(first["embedded"], first["manifest"]["chunks"], "{first}");
    let again = site.round("acme");
    assert_eq!((&again["outcome"], &again["version"]), (&"unchanged".into(), &1.into()), "{again}");
    // On request it is, from the vectors that are kept.
    let words = site.sync("acme");
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--again"]).collect();
    let once_more = crate::site::outcome(&site.done(&words)).unwrap();
    assert_eq!((&once_more["version"], &once_more["embedded"]), (&2.into(), &0.into()), "{once_more}");
    // One document more: what it holds is embedded, and nothing else.
    site.write("acme", "new.md", "# News\n\nThere is a new wheel.\n");
    let more = site.round("acme");
    assert_eq!(
        (&more["outcome"], &more["version"], &more["embedded"]),
        (&"published".into(), &3.into(), &1.into()),
        "{more}"
    );
    // One less: nothing at all.
    std::fs::remove_file(site.source("acme").join("manual-03.md")).unwrap();
    let less = site.round("acme");
    assert_eq!(
        (&less["outcome"], &less["version"], &less["embedded"]),
        (&"published".into(), &4.into(), &0.into()),
        "{less}"
    );
    let found = site.search("acme", "manual 3 wheel");
    let hits = found["hits"].as_array().unwrap();
    assert!(hits.iter().all(|hit| hit["document"] != "manual-03.md"), "{found}");
}

/// The story: after a bad import somebody went back to the version before, and the next scheduled run published the bad one
/// again within a minute.
#[test]
fn a_rollback_is_a_version_of_its_own_and_stays() {
    let site = Site::new(Kind::Sqlite);
    site.edition("acme", "good");
    let good = site.round("acme");
    site.edition("acme", "bad");
    let bad = site.round("acme");
    site.done(&["rollback", "--tenant", "acme", "--to", "1"]);
    let standing = site.standing("acme");
    assert_eq!(standing["live"]["version"], 3, "{standing}");
    assert_eq!(standing["live"]["epoch"], good["epoch"], "{standing}");
    let last = standing["moves"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["why"], "rollback");
    assert!(last["by"].as_u64() > bad["epoch"].as_u64(), "under an epoch of its own: {last}");
    let outcome = site.round("acme");
    assert_eq!(outcome["outcome"], "rejected", "{outcome}");
    assert_eq!(site.standing("acme")["live"]["version"], 3);
    // On request it is; and so is anything new.
    let words = site.sync("acme");
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["--again"]).collect();
    site.done(&words);
    assert_eq!(site.standing("acme")["live"]["version"], 4);
}

#[test]
fn a_version_that_is_not_kept_cannot_be_gone_back_to() {
    let site = Site::new(Kind::Sqlite);
    for edition in ["first", "second", "third"] {
        site.edition("acme", edition);
        site.round("acme");
    }
    let said = site.run(&["rollback", "--tenant", "acme", "--to", "1"]);
    assert_eq!(said.status, 70, "{said:?}");
    assert!(said.out.contains("is not kept any more; kept: 2"), "{said:?}");
    let said = site.run(&["rollback", "--tenant", "acme", "--to", "9"]);
    assert!(said.out.contains("was never live; kept: 2"), "{said:?}");
    let said = site.run(&["rollback", "--tenant", "acme", "--to", "3"]);
    assert!(said.out.contains("it is live"), "{said:?}");
    assert_eq!(site.standing("acme")["live"]["version"], 3);
}

#[test]
fn what_cannot_be_used_is_named_and_nothing_is_published() {
    let site = Site::new(Kind::Sqlite);
    site.edition("acme", "first");
    site.round("acme");
    std::fs::write(site.source("acme").join("latin.txt"), b"caf\xe9 au lait").unwrap();
    let huge = std::fs::File::create(site.source("acme").join("huge.md")).unwrap();
    huge.set_len(500 << 20).unwrap();
    let outcome = site.round("acme");
    assert_eq!(outcome["outcome"], "failed", "{outcome}");
    let why = outcome["why"].as_str().unwrap();
    assert!(why.contains("2 of 22 documents") && why.contains("latin.txt") && why.contains("huge.md"), "{why}");
    assert_eq!(site.standing("acme")["live"]["version"], 1);
    // It is in the journal, too.
    assert_eq!(site.standing("acme")["rounds"][0]["outcome"], "failed");

    std::fs::create_dir_all(site.source("empty")).unwrap();
    let outcome = site.round("empty");
    assert_eq!(outcome["outcome"], "failed", "{outcome}");
}

#[test]
fn a_tenants_name_with_tricks_is_refused() {
    let site = Site::new(Kind::Sqlite);
    site.write("acme", "a.md", "# A\n\ntext\n");
    for name in ["../acme", "Acme", "a b", "", "-x", "a;drop table x", "ä", &"a".repeat(49)] {
        let said = site.run(&["search", &format!("--tenant={name}"), "x"]);
        assert_eq!(said.status, 64, "{name:?}: {said:?}");
        assert!(said.err.contains("cannot be a tenant's name"), "{name:?}: {said:?}");
    }
    assert_eq!(std::fs::read_dir(site.path()).unwrap().count(), 1, "only the documents are there");
}

/// The story: a log at its loudest was kept for ninety days, and held customers' documents.
#[test]
fn no_document_is_in_any_output_of_a_round() {
    let site = Site::new(Kind::Sqlite);
    site.write("acme", "secret.md", "# Plans\n\nThe launch code is xyzzy-4711.\n");
    for json in [true, false] {
        let words = site.sync("acme");
        let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| json || *word != "--json").collect();
        let output = site.command(&words).env("VECTOR_SYNC_LOG", "trace").output().unwrap();
        let said = crate::site::Said::of(output);
        assert_eq!(said.status, 0, "{said:?}");
        assert!(!said.out.contains("xyzzy") && !said.err.contains("xyzzy"), "{said:?}");
        assert!(!said.out.is_empty());
    }
    let status = site.standing("acme").to_string();
    assert!(!status.contains("xyzzy"), "{status}");
}

/// What the second command of docs/vector-sync.md shows, with a shorter lease.
#[test]
fn the_demonstration_shows_a_refused_write() {
    let site = Site::new(Kind::Sqlite);
    site.edition("acme", "first");
    let source = site.source("acme").display().to_string();
    let words = ["demo", "--source", &source, "--ttl", "4s"];
    let output = site.command(&words).env_remove("VECTOR_SYNC_INDEX").env_remove("TENURE_AUTHORITY").output().unwrap();
    let said = crate::site::Said::of(output);
    assert_eq!(said.status, 0, "{said:?}");
    for part in [
        "A is stopped",
        "B | demo: version 1 is live: epoch 2",
        "A | demo: the index refused a write",
        "A | demo: superseded while switching: epoch 1 was followed by epoch 2 of B",
        "A ended with status 76",
        "demo: version 1 is live",
    ] {
        assert!(said.out.contains(part), "{part:?} is missing: {said:?}");
    }
    // An index in which the tenant has something already is left alone.
    site.round("acme");
    let said = site.run(&["demo", "--source", &source, "--tenant", "acme", "--index", &site.index]);
    assert_eq!(said.status, 64, "{said:?}");
    assert!(said.err.contains("acme has a version already"), "{said:?}");
}

#[test]
fn people_are_shown_tables_and_bad_words_are_explained() {
    let site = Site::new(Kind::Sqlite);
    assert!(site.done(&["status"]).contains("has no tenant yet"));
    site.edition("acme", "first");
    site.round("acme");
    let all = site.done(&["status"]);
    assert!(
        all.starts_with("TENANT  VERSION  EPOCH") && all.contains("acme    1        1      20         420"),
        "{all}"
    );
    let one = site.done(&["status", "--tenant", "acme"]);
    for part in ["acme: version 1 is live", "The alias", "Generations", "Rounds", "words@1, 256 numbers"] {
        assert!(one.contains(part), "{part:?} is missing: {one}");
    }
    let found = site.done(&["search", "--tenant", "acme", "-n", "2", "wheel 3-7"]);
    assert_eq!(found.lines().count(), 5, "the question, and two lines for each of two: {found}");
    assert!(site.done(&["completions", "bash"]).contains("complete -F"));

    let no_version = site.run(&["search", "--tenant", "nobody", "wheel"]);
    assert_eq!(no_version.status, 70, "{no_version:?}");
    assert!(no_version.err.contains("vector-sync sync --tenant nobody"), "{no_version:?}");
    let no_authority = site
        .command(&["sync", "--tenant", "acme", "--source", "x"])
        .env_remove("TENURE_AUTHORITY")
        .env("VECTOR_SYNC_INDEX", "postgres://u:hush@127.0.0.1:1/x")
        .output()
        .unwrap();
    let said = crate::site::Said::of(no_authority);
    assert_eq!(said.status, 64, "{said:?}");
    assert!(said.err.contains("--authority") && !said.err.contains("hush"), "{said:?}");
    let bad_point = site.command(&["gc"]).env("VECTOR_SYNC_STOP", "nowhere").output().unwrap();
    let said = crate::site::Said::of(bad_point);
    assert!(said.status == 64 && said.err.contains("before-switch"), "{said:?}");
}
