use super::*;

#[test]
fn an_address_is_read() {
    let (place, id) =
        Place::parse("postgres://app:se%40cret@db1:6000/shop?schema=sinks&rule=high-water&wait=2s&create=true&id=shop")
            .unwrap();
    assert_eq!((place.schema.as_str(), place.rule, place.create), ("sinks", Rule::HighWater, true));
    assert_eq!(place.wait, Duration::from_secs(2));
    assert_eq!(place.config.get_password(), Some(&b"se@cret"[..]));
    assert_eq!(id.as_ref().map(SinkId::as_str), Some("shop"));
}

#[test]
fn the_usual_id_is_the_same_for_whoever_opens_it_and_opens_it() {
    let cases = [
        ("postgres://app:x@db1/shop?wait=1s", "postgres://db1:5432/shop"),
        ("postgresql://other@db1:5432/shop?rule=sealed", "postgres://db1:5432/shop"),
        ("postgres://app@db1/shop?schema=other", "postgres://db1:5432/shop?schema=other"),
        ("postgres://app@db1,db2:7/shop", "postgres://db1:5432,db2:7/shop"),
        ("postgres://app@[::1]:7/shop", "postgres://[::1]:7/shop"),
        ("postgres://app@%2Frun%2Fpg/shop", "postgres://%2Frun%2Fpg:5432/shop"),
        ("postgres://app@db1/a%2Fb", "postgres://db1:5432/a%2Fb"),
    ];
    for (url, right) in cases {
        let id = Place::parse(url).unwrap().0.usual_id().unwrap();
        assert_eq!(id.as_str(), right);
        assert_eq!(Place::parse(id.as_str()).unwrap().0.usual_id().unwrap(), id);
    }
}

#[test]
fn a_password_is_never_shown() {
    let urls = [
        "postgres://app:hunter2@db1/shop",
        "postgres://app:hun@ter2@db1/shop?nonsense=1",
        "postgres://app:hunter2%4@db1/shop?id=%4",
        "postgres://app@db1/shop?password=hunter2&schema=UP",
        "postgres://app@db1/shop?pasword=hunter2",
        "postgres://app:hunter2?x@db1:port/shop",
        "postgres://app:hunter2",
        "postgres://app:hunter2/shop",
    ];
    for url in urls {
        let said = match Place::parse(url) {
            Ok((place, _)) => format!("{place} {place:?} {}", place.usual_id().unwrap()),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!said.contains("ter2"), "{url}: {said}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would_be_right() {
    let cases = [
        ("postgres://db1/shop?schema=Tenure", "no name for its schema"),
        ("postgres://db1/shop?schema=pg_x", "no name for its schema"),
        ("postgres://db1/shop?rule=open", "write sealed, high-water or held"),
        ("postgres://db1/shop?create=yes", "neither true nor false"),
        ("postgres://db1/shop?wait=2h", "at most 1h"),
        ("postgres://db1/shop?wait", "write wait=…"),
        ("postgres://db1/shop?max_ttl=1s", "it has id, rule, create, wait, schema"),
        ("postgres://db1/shop?sslmode=allow", "take disable, prefer or verify-full"),
        ("postgres://db1/shop?sslmode=disable&tls_ca=/none", "leave one of them out"),
        ("postgres://db1/shop?tls_ca=/none/such.pem", "holds no certificates"),
        ("postgres:///shop", "it names no host"),
        ("postgres://db1:x/shop", "write postgres://USER:PASSWORD@HOST"),
        ("postgres://db1/shop?id=", "choose one with id=NAME"),
    ];
    for (url, right) in cases {
        let error = Place::parse(url).expect_err(url);
        assert!(matches!(error, SinkError::Address { .. }), "{url}: {error:?}");
        assert!(error.to_string().contains(right), "{url}: {error}");
    }
}
