use super::*;

fn refused(text: &str) -> String {
    text.parse::<Shelf>().map(|shelf| format!("{shelf:?}")).unwrap_err()
}

#[test]
fn a_word_without_a_server_says_which_address_it_wants() {
    assert!(refused("postgres").contains("postgres://USER@HOST/DATABASE"));
    assert!(refused("redis").contains("redis://HOST:PORT"));
    assert!(refused("mongodb://x:hunter2@h").contains("none of sqlite, files"));
    assert!(!refused("mongodb://x:hunter2@h").contains("hunter2"));
}

#[test]
fn names_that_the_demo_chooses_are_left_out_of_the_address() {
    assert!(refused("postgres://h/d?schema=mine").contains("leave schema= out"));
    assert!(refused("redis://h?wait=1s&name=mine").contains("leave name= out"));
    assert!(refused("redis+sentinel://h/primary?rule=sealed").contains("leave rule= out"));
}

#[test]
fn each_scene_of_each_run_has_a_name_of_its_own() {
    let on = |text: &str| Receivers::on(text.parse().unwrap()).unwrap();
    let dir = Path::new("/d");
    let (one, two) = (on("postgres://h/d?sslmode=disable"), on("postgres://h/d"));
    let takeover = one.address("takeover", Kind::HighWater, dir);
    assert!(takeover.starts_with("postgres://h/d?sslmode=disable&schema=demo_"), "{takeover}");
    assert!(takeover.ends_with("_takeover_high_water"), "{takeover}");
    assert_ne!(takeover, one.address("gap", Kind::HighWater, dir));
    assert!(two.address("gap", Kind::None, dir).starts_with("postgres://h/d?schema=demo_"));
    assert_ne!(two.address("gap", Kind::None, dir), on("postgres://h/d").address("gap", Kind::None, dir));
    let bucket = on("s3://b/out/?endpoint=http://h").address("gap", Kind::None, dir);
    assert!(bucket.starts_with("s3://b/out/demo_") && bucket.ends_with("_gap_none?endpoint=http://h"), "{bucket}");
    assert_eq!(on("files").address("gap", Kind::Sealed, dir), "file:/d/receiver");
    assert_eq!(on("files").there(), None);
}
