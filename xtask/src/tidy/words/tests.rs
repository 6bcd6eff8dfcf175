use super::check;
use crate::tidy::File;

fn found(path: &str, text: &str) -> usize {
    check(&[File::new(path, text)]).len()
}

#[test]
fn a_wrong_word_is_found_where_it_names_a_thing_of_ours() {
    for text in [
        "pub struct LeaderInfo;",
        "fn send_heartbeat() {}",
        "struct A {\n    master_id: u8,\n}",
        "enum Term { One }",
        "pub struct LeaseLock;",
        "pub fn lock(&self) {}",
        "pub fn try_unlock(&self) {}",
        "// the leader renews\n",
        "/// Sends a heartbeat.\nstruct A;",
        "const A: &str = \"no master found\";",
        "// raised with each new term\n",
        "/// Asks the lock server.\nstruct A;",
    ] {
        assert_eq!(found("crates/a/src/b.rs", text), 1, "{text}");
    }
    assert_eq!(found("README.md", "Tenure is a lock service."), 1);
}

#[test]
fn the_locks_of_the_machine_and_common_language_are_left_alone() {
    for text in [
        "let guard = self.state.lock(); // the lock is held for one line",
        "fn lock(&self) -> MutexGuard<'_, State> {}",
        "pub struct FileLock;",
        "pub fn advisory_lock_key() {}",
        "// in terms of the terminal, determined by Cargo.lock; SQLite's write lock\n",
        "pub struct BlockStore;",
        "let a = group.leader();",
        "use std::sync::PoisonError;",
    ] {
        assert_eq!(found("crates/a/src/b.rs", text), 0, "{text}");
    }
}

#[test]
fn a_test_may_tell_how_another_system_failed_but_names_nothing_so() {
    assert_eq!(found("crates/a/tests/it/field.rs", "// The heartbeat thread had died and the leader went on.\n"), 0);
    assert_eq!(found("crates/a/tests/it/field.rs", "fn the_leader_goes_on() {}\n"), 1);
}
