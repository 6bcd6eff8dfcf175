use super::{Order, bench_calls, parse};
use crate::workspace::Package;

fn parsed(line: &str) -> Result<Order, String> {
    parse(&line.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>())
}

#[test]
fn every_form_of_the_help_is_understood() {
    for line in ["", "help", "--help", "-h"] {
        assert_eq!(parsed(line), Ok(Order::Help), "{line}");
    }
    assert_eq!(parsed("test"), Ok(Order::Test { only: vec![] }));
    assert_eq!(parsed("test --list"), Ok(Order::List));
    let only = vec!["fmt".to_owned(), "doc".to_owned()];
    assert_eq!(parsed("test --only fmt --only doc"), Ok(Order::Test { only }));
    assert_eq!(parsed("bench"), Ok(Order::Bench { args: vec![] }));
    assert_eq!(parsed("break"), Ok(Order::Break { ids: vec![], list: false }));
    let ids = vec!["I2".to_owned(), "V1".to_owned()];
    assert_eq!(parsed("break I2 --list V1"), Ok(Order::Break { ids, list: true }));
    assert_eq!(parsed("bench -- --quick"), Ok(Order::Bench { args: vec!["--quick".to_owned()] }));
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    for line in [
        "tset",
        "test --onyl fmt",
        "test --only",
        "test --list fmt",
        "test --only fmt --list",
        "bench fast",
        "break --all",
        "help me",
    ] {
        assert!(parsed(line).is_err(), "{line}");
    }
    assert_eq!(parsed("tset"), Err("there is no command `tset`".to_owned()));
}

#[test]
fn each_bench_is_called_by_its_name() {
    let package =
        Package { name: "one".to_owned(), benches: vec!["a".to_owned(), "b".to_owned()], ..Package::default() };
    let shown: Vec<String> = bench_calls(&[package], &["--quick".to_owned()]).iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "cargo bench --package one --all-features --bench a -- --quick",
            "cargo bench --package one --all-features --bench b -- --quick",
        ]
    );
}
