use super::{LIBRARY, Verb};
use crate::digest_of;

/// A server that has a library of this number keeps it. With another text under the same number, programs of two versions
/// would each take the other's for their own.
#[test]
fn the_librarys_text_belongs_to_its_number() {
    let digest: String = digest_of(LIBRARY.as_bytes()).0.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "3d2f595890785d36", "the text has changed: raise NUMBER, and write the new digest here");
}

#[test]
fn every_verb_is_its_own_place_in_the_list() {
    for (at, verb) in Verb::ALL.into_iter().enumerate() {
        assert_eq!(verb as usize, at);
        assert!(verb.program().function.as_ref().is_some_and(|name| name.ends_with(verb.name())));
    }
}
