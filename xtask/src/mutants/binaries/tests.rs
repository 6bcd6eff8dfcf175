use super::{Binaries, Ended, fits};
use std::path::PathBuf;

#[test]
fn modules_of_tests_may_be_left_out_and_no_others_put_in() {
    assert!(fits("fence::closed", "fence::tests::closed"));
    assert!(fits("model::takeover::holds", "model::takeover::cases::holds"));
    assert!(fits("closed", "closed"));
    assert!(!fits("fence::closed", "fence::tests::closed_too"));
    assert!(!fits("gate::closed", "fence::tests::closed"));
    assert!(!fits("tests::fence::closed", "fence::tests::closed"));
}

/// These tests' own binary is one that can be asked.
fn own() -> Binaries {
    let path = std::env::current_exe().unwrap();
    Binaries { dir: PathBuf::from("."), paths: [("own".to_owned(), path)].into() }
}

#[test]
fn a_test_is_found_by_its_name_and_run() {
    let own = own();
    let (target, test) = own.find("binaries::modules_of_tests_may_be_left_out_and_no_others_put_in").unwrap();
    assert_eq!(target, "own");
    assert_eq!(own.run(&target, &test), Ok(Ended::Passed));
    assert!(own.find("binaries::no_such_test").unwrap_err().contains("no test is called"));
}
