use super::*;
use alloc::string::ToString;

#[test]
fn an_address_is_taken_apart() {
    let address = Address::parse("sqlite:/a%3Fb%25.db?create=true&&id=x=y").unwrap();
    assert_eq!((address.scheme(), address.path(), address.place()), ("sqlite", "/a?b%.db", Ok("/a?b%.db")));
    assert_eq!(address.parameters(), [("create", "true"), ("id", "x=y")]);
    assert_eq!(Address::parse("file:///srv/out").unwrap().place(), Ok("/srv/out"));
    assert_eq!(Address::parse("memory:").unwrap().path(), "");
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    let place = |url| Address::parse(url).and_then(|address| address.place().map(str::to_owned));
    for (url, right) in [
        ("tenure.db", "a colon"),
        ("sqlite:%4", "write %25"),
        ("sqlite:%FF", "write %25"),
        ("sqlite:x?create", "write create="),
        ("sqlite:x?a=1&a=2", "write it once"),
        ("sqlite://host/x", "write sqlite:PATH or sqlite:///ABSOLUTE/PATH"),
        ("file:?create=true", "write file:PATH"),
    ] {
        let message = place(url).unwrap_err().to_string();
        assert!(message.contains(right), "{url}: {message}");
    }
}

#[test]
fn values_are_spans_and_flags() {
    assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
    assert_eq!((span("24h"), span("1d")), (Ok(Duration::from_hours(24)), Ok(Duration::from_hours(24))));
    for wrong in ["", "5", "s", "-1s", "1.5h", "5 s", "99999999999999999999d", "9999999999999999d"] {
        assert_eq!(span(wrong), Err(AddressError::Span { value: wrong.to_owned() }));
    }
    assert_eq!((flag("true"), flag("false")), (Ok(true), Ok(false)));
    assert!(flag("yes").is_err());
}

#[test]
fn what_stands_for_a_port_and_is_none_is_not_shown() {
    for (place, shown) in [
        ("redis://app:secret", "redis://app"),
        ("redis://:secret/0", "redis://"),
        ("etcd://e1:2379,e2:2379", "etcd://e1:2379,e2:2379"),
        ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
        ("redis://host/0", "redis://host/0"),
        ("s3:bucket", "s3:bucket"),
        ("nonsense", "nonsense"),
    ] {
        assert_eq!(without_stray_password(place), shown);
    }
}

#[test]
fn what_was_escaped_is_read_back() {
    for text in ["", "/srv/out", "50% what? & more", "two\nlines", "größe", "%3F", "a\u{85}b"] {
        assert_eq!(plain(&escaped(text)).as_deref(), Ok(text));
        assert!(!escaped(text).contains(['?', '\n']), "{text:?}");
    }
}
