use super::Who;

#[test]
fn a_name_gets_this_host_unless_it_says_its_own() {
    let nightly = Who::here(Some("nightly"));
    assert!(nightly.place.starts_with("nightly@") && nightly.is_on_this_host(), "{nightly}");
    assert_eq!(Who::here(Some("ci@elsewhere")).place, "ci@elsewhere");
    assert!(!Who::here(Some("ci@elsewhere")).is_on_this_host());
}

/// A command inside a run gets the run's owner from its environment: a run in a run is the same owner, at another process.
#[test]
fn the_process_of_an_outer_run_is_dropped() {
    let outer = Who::here(Some("nightly")).process();
    let inner = Who::here(Some(&outer.to_string()));
    assert_eq!((inner.place, inner.pid), (outer.place, None));
}

#[test]
fn a_process_is_looked_for_only_on_its_own_host() {
    assert_eq!(Who::here(Some("a")).process().is_running(), Some(true));
    let gone = Who { pid: Some(u32::MAX), ..Who::here(Some("a")) };
    assert_eq!(gone.is_running(), Some(false));
    assert_eq!(Who::parse("a@elsewhere/1").is_running(), None);
    assert_eq!(Who::parse("no process").is_running(), None);
}

#[test]
fn what_is_written_is_read_back() {
    for text in ["a@b/12", "a@b", "path/to/worker", "a/b@c/7"] {
        assert_eq!(Who::parse(text).to_string(), text);
    }
}

/// A process that has ended, and whose parent has not asked for its status, holds nothing.
#[test]
fn a_zombie_does_not_run() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let who = Who { pid: Some(child.id()), ..Who::here(Some("a")) };
    while who.is_running() == Some(true) {
        std::thread::yield_now();
    }
    assert_eq!(who.is_running(), Some(false));
    child.wait().unwrap();
}
