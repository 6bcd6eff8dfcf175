use super::Settings;

fn of(url: &str) -> Settings {
    Settings::of(url).expect("an address")
}

fn refused(url: &str) -> String {
    Settings::of(url).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_address_names_every_member() {
    let settings = of("etcd://a:1,b,[::1]:2?name=jobs&create=true&max_ttl=5m");
    assert_eq!(settings.members, ["http://a:1", "http://b:2379", "http://[::1]:2"]);
    assert_eq!((settings.name.as_str(), settings.create), ("jobs", true));
    assert_eq!(settings.new_max_ttl().get(), std::time::Duration::from_mins(5));
    let settings = of("etcds://me:p%40ss@a/?tls_ca=/etc/ca.pem");
    assert_eq!(settings.members, ["https://a:2379"]);
    assert_eq!(settings.user, Some(("me".to_owned(), "p@ss".to_owned())));
    assert_eq!((settings.name.as_str(), settings.create, settings.max_ttl), ("tenure", false, None));
    assert_eq!(settings.new_max_ttl().get(), std::time::Duration::from_mins(10));
}

#[test]
fn what_is_wrong_is_said_and_no_password_is_shown() {
    for (url, why) in [
        ("etcd://", "write etcd://HOST:PORT"),
        ("etcd://a,,b", "write etcd://HOST:PORT"),
        ("etcd://a?name=x/y", "the name \"x/y\" is none"),
        ("etcd://a?tls_ca=x", "tls_ca is for etcds://"),
        ("etcd://a?nmae=x", "no parameter \"nmae\""),
        ("etcd://a?max_ttl=5", "max_ttl"),
        ("etcd://secret@a", "a user needs a password"),
        ("etcd://me:secret@a?create=maybe", "create"),
        ("etcd://me:x?:secret@a", "%3F"),
        ("etcd://me:x?:secret=y@a?name=z", "%3F"),
    ] {
        let said = refused(url);
        assert!(said.contains(why) || (why == "max_ttl" && !said.is_empty()), "{url}: {said}");
        assert!(!said.contains(":secret"), "{said}");
    }
}
