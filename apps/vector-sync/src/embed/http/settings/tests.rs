use super::*;

#[test]
fn an_address_says_how_a_model_is_asked() {
    let address =
        "http://127.0.0.1:8080/v1/embeddings?api-version=2#BAAI/bge:small&dimensions=384&batch=8&max-tokens=900";
    let settings = HttpSettings::parse(address).unwrap();
    assert_eq!(settings.url, "http://127.0.0.1:8080/v1/embeddings?api-version=2");
    assert_eq!((settings.model.as_str(), settings.dimensions, settings.batch), ("BAAI/bge:small", 384, 8));
    assert_eq!((settings.max_tokens, settings.max_calls), (Some(900), None));
    assert_eq!(settings.shown(), "http://127.0.0.1:8080/v1/embeddings");
}

#[test]
fn the_name_changes_with_what_the_vectors_depend_on_alone() {
    let name = |address: &str| HttpSettings::parse(address).unwrap().name();
    let this = name("http://[::1]:1/v1#m&dimensions=3");
    assert!(this.starts_with("m@"), "{this}");
    assert_eq!(this, name("http://[::1]:1/v1?a=b#m&batch=9&dimensions=3&wait=5"));
    for other in
        ["http://[::1]:2/v1#m&dimensions=3", "http://[::1]:1/v1#n&dimensions=3", "http://[::1]:1/v1#m&dimensions=4"]
    {
        assert_ne!(this, name(other));
    }
}

#[test]
fn a_wrong_address_says_what_would_be_right() {
    let wrong = [
        ("https://host/v1", "write https://HOST/PATH#MODEL"),
        ("https://host/v1#", "write https://HOST/PATH#MODEL"),
        ("https://host/v1#m", "#m&dimensions=N"),
        ("https://host/v1#m&dimensions=0", "from 1 to"),
        ("https://host/v1#m&dimensions=x", "whole number"),
        ("https://host/v1#m&dimensions=3&batch=0", "from 1 to"),
        ("https://host/v1#m&dimensions=3&batch", "no value"),
        ("https://host/v1#m&dimensions=3&speed=9", "no setting \"speed\""),
        ("https://me:secret@host/v1#m&dimensions=3", "environment"),
        ("https:///v1#m&dimensions=3", "no host"),
        ("ftp://host/v1#m&dimensions=3", "write https://"),
        ("https://host/v1#m&dimensions=3&key=NO_SUCH_VARIABLE_AT_ALL", "NO_SUCH_VARIABLE_AT_ALL"),
        // Any variable that is set will do.
        ("http://example.org/v1#m&dimensions=3&key=PATH", "use https://"),
    ];
    for (address, right) in wrong {
        let why = HttpSettings::parse(address).err().unwrap_or_else(|| panic!("{address} was taken"));
        assert!(why.contains(right) && !why.contains("secret"), "{address}: {why}");
    }
}
