use super::*;
use tenure::authority::Clock;
use tenure::authority::store::memory::MemoryStore;

fn read_at(millis: u64) -> Read {
    let store = MemoryStore::new(Clock::Boot(tenure::authority::BootClock), tenure::Ttl::DEFAULT).unwrap();
    let read = wait_for(store.read(&Keys::default())).unwrap();
    Read { now: tenure::core::Instant::from_nanos(millis * 1_000_000), ..read }
}

#[test]
fn clocks_that_are_more_than_a_second_apart_are_told() {
    let (before, after) = (WallTime::from_millis(100_000), WallTime::from_millis(100_400));
    for (there, verdict, says) in [
        (100_200, Verdict::Ok, "agrees"),
        (101_400, Verdict::Ok, "1.0 s ahead of"),
        (101_401, Verdict::Warn, "ahead of"),
        (99_000, Verdict::Ok, "1.0 s behind"),
        (40_000, Verdict::Warn, "60 s behind"),
    ] {
        let found = apart(before, &read_at(there), after);
        assert!(found.verdict == verdict && found.says.contains(says), "{there}: {found:?}");
    }
}

#[test]
fn a_warning_of_the_store_ends_with_what_to_do() {
    let found = setting("fsync=off: a crash may lose grants; switch it on");
    assert_eq!(found.says, "fsync=off: a crash may lose grants");
    assert_eq!((found.verdict, found.advice.as_deref()), (Verdict::Warn, Some("switch it on")));
    assert!(setting("odd").advice.is_some());
}

#[test]
fn what_is_lost_with_its_process_is_a_warning() {
    let store = MemoryStore::new(Clock::Boot(tenure::authority::BootClock), tenure::Ttl::DEFAULT).unwrap();
    let can = store.capabilities();
    assert_eq!(durability(can.durability, false).verdict, Verdict::Warn);
    assert_eq!(durability(Durability::MayLose, false).verdict, Verdict::Ok);
    assert!(waking(Capabilities { wakes: false, ..can }).says.contains("looks again"));
}
