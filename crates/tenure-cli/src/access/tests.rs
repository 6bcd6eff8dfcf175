use super::without_create;
use crate::cli::Cli;
use clap::CommandFactory;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn whoever_only_looks_makes_no_store() {
    let cases = [
        ("sqlite:a.db", "sqlite:a.db"),
        ("sqlite:a.db?create=true", "sqlite:a.db"),
        ("sqlite:a.db?create=true&max_ttl=1h", "sqlite:a.db?max_ttl=1h"),
        ("sqlite:a.db?max_ttl=1h&create=true&busy_timeout=1s", "sqlite:a.db?max_ttl=1h&busy_timeout=1s"),
    ];
    for (given, expected) in cases {
        assert_eq!(without_create(given), expected);
    }
}
