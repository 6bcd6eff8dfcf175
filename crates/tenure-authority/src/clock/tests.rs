use super::*;
use std::process::Command;

#[test]
fn every_process_that_shares_a_clock_file_sees_it_move() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clock");
    FileClock::set_millis(&path, 1_500).unwrap();
    let [first, second] = [FileClock::open(&path).unwrap(), FileClock::open(&path).unwrap()].map(Clock::File);
    assert_eq!(first.now_nanos().unwrap(), 1_500_000_000);
    FileClock::set_millis(&path, 10_000).unwrap();
    assert_eq!(first.now_nanos().unwrap(), 10_000_000_000);
    assert_eq!(second.now_nanos().unwrap(), 10_000_000_000);
    assert_eq!(first.origin(), second.origin());
    assert_ne!(first.origin(), Clock::Boot(BootClock).origin());
}

#[test]
fn a_clock_file_that_is_missing_or_holds_nonsense_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clock");
    assert!(FileClock::open(&path).unwrap_err().to_string().contains("clock cannot be read"));
    for nonsense in ["", "soon", "-1", "1.5"] {
        std::fs::write(&path, nonsense).unwrap();
        let error = FileClock::open(&path).unwrap_err().to_string();
        assert!(error.contains("write a number of milliseconds into it"), "{nonsense:?}: {error}");
    }
}

#[test]
fn the_machines_clock_counts_up() {
    let first = BootClock.now_nanos();
    assert!(first > 0);
    assert!(BootClock.now_nanos() >= first);
}

/// Run by the test below, in a process with another environment.
#[test]
fn tell_the_time_of_the_environment() {
    println!("told: {:?}", Clock::from_env().and_then(|clock| clock.now_nanos()).map_err(|error| error.to_string()));
}

#[test]
fn the_environment_names_a_shared_clock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("clock");
    FileClock::set_millis(&path, 7).unwrap();
    let told = |value: String| {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "clock::tests::tell_the_time_of_the_environment", "--nocapture"])
            .env("TENURE_CLOCK", value)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shared = told(format!("file:{}", path.display()));
    if cfg!(feature = "lab") {
        assert!(shared.contains("told: Ok(7000000)"), "{shared}");
        let nonsense = told("tomorrow".into());
        assert!(nonsense.contains("TENURE_CLOCK is written file:PATH"), "{nonsense}");
    } else {
        assert!(shared.contains("without the `lab` feature"), "{shared}");
    }
}
