use super::named;

#[test]
fn a_name_goes_before_the_address_and_is_no_part_of_it() {
    for (word, name, url) in [
        ("shop=sqlite:/srv/shop.db", Some("shop"), "sqlite:/srv/shop.db"),
        ("shop=sqlite:/srv/shop.db?id=x", Some("shop"), "sqlite:/srv/shop.db?id=x"),
        ("sqlite:/srv/shop.db?id=x", None, "sqlite:/srv/shop.db?id=x"),
        ("sqlite:a=b.db", None, "sqlite:a=b.db"),
        ("=sqlite:a.db", None, "=sqlite:a.db"),
    ] {
        assert_eq!(named(word), (name, url));
    }
}
