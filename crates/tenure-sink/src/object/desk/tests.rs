use super::{BREATH_MAX, Memory, ROW};
use std::time::{Duration, Instant};

const TOOK: Duration = Duration::from_millis(10);

/// Puts that took so long each, with a gap before each; which of them were followed by a breath.
fn breaths(count: u32, took: Duration, gap: Duration) -> Vec<Option<Duration>> {
    #[expect(clippy::disallowed_methods, reason = "a beginning to count from; nothing is measured")]
    let mut began = Instant::now();
    let mut memory = Memory::default();
    let put = |_| {
        let ended = began + took;
        let breath = memory.breath(began, ended);
        began = ended + breath.unwrap_or_default() + gap;
        breath
    };
    (0..count).map(put).collect()
}

/// On a busy machine a seal gets in between by luck, so that a real server shows only sometimes that nobody breathes.
#[test]
fn who_puts_one_after_the_other_takes_a_breath_in_which_a_seal_can_be_read_and_put() {
    let all = breaths(100, TOOK, Duration::ZERO);
    let longest = all.split(Option::is_some).map(<[_]>::len).max().unwrap_or_default();
    assert!(longest <= ROW as usize, "{longest} without a breath: {all:?}");
    assert!(all.iter().flatten().all(|breath| *breath == TOOK * 3), "{all:?}");
    // Nor does it take one for longer than that, however slow the store is.
    assert_eq!(breaths(10, Duration::from_secs(5), Duration::ZERO).into_iter().flatten().max(), Some(BREATH_MAX));
    // Who rests by itself is not held up.
    assert_eq!(breaths(100, TOOK, TOOK * 2), vec![None; 100]);
}
