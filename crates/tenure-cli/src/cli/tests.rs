use super::{AFTER_HELP, Cli};
use crate::exit::Exit;
use clap::CommandFactory;

#[test]
fn the_command_line_is_one_that_clap_accepts() {
    Cli::command().debug_assert();
}

#[test]
fn every_exit_status_is_in_the_help() {
    use Exit::{Conflict, Different, Failure, Lost, NotAcquired, Success, Unavailable, Undecided, Usage};
    let mut told: Vec<u8> = AFTER_HELP
        .lines()
        .skip_while(|line| *line != "Exit status:")
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect();
    told.sort_unstable();
    let all = [Success, Different, Undecided, Usage, Conflict, Unavailable, Failure, NotAcquired, Lost];
    assert_eq!(told, all.map(Exit::code));
}
