//! Models by their names.

use vector_sync::embed::{EmbedError, choose};

#[test]
fn a_name_that_stands_for_nothing_says_what_there_is() {
    let wrong = [
        ("", "words, minilm"),
        ("word", "words, minilm"),
        ("minilmx", "words, minilm"),
        ("minilm#threads=0", "threads=N"),
        ("minilm#threads=", "threads=N"),
        ("minilm#fast", "threads=N"),
        ("minilm:/no/such/folder", "vector-sync fetch"),
        ("https://host/v1", "#MODEL"),
        ("https://me:secret@host/v1?code=secret#m&dimensions=3", "environment"),
    ];
    for (name, right) in wrong {
        let error = choose(name).err().unwrap_or_else(|| panic!("{name:?} was taken"));
        assert!(matches!(error, EmbedError::Unfit { .. }), "{error:?}");
        let said = error.to_string();
        assert!(said.contains(right) && !said.contains("secret"), "{name:?}: {said}");
    }
}

#[test]
fn names_lead_to_models() {
    let words = choose("words").unwrap();
    assert_eq!((words.model(), words.dimensions()), ("words@1", 256));
    let http = choose("http://127.0.0.1:9/v1#small&dimensions=12&batch=5").unwrap();
    assert!(http.model().starts_with("small@"), "{http:?}");
    assert_eq!((http.dimensions(), http.batch()), (12, 5));
}
