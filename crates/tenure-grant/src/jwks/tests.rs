use super::PublicKeys;
use crate::key::SigningKey;

#[test]
fn what_is_written_is_read_again() {
    let keys = PublicKeys::new(
        [SigningKey::generate().unwrap(), SigningKey::generate().unwrap()].map(|key| key.public().clone()),
    );
    let text = keys.to_json();
    assert_eq!(PublicKeys::parse(text.as_bytes()).unwrap(), keys);
    assert!(!text.contains("\"d\""), "{text}");
}

/// The example of RFC 8037, appendix A.2 and A.3: the key's thumbprint is its id.
#[test]
fn a_thumbprint_is_that_of_the_standard() {
    let text =
        br#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;
    let read = PublicKeys::parse(text).unwrap();
    let bytes = *read.iter().next().unwrap().bytes();
    // The private half of that key, as the standard prints it.
    let seed = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    let mut secret = zeroize::Zeroizing::new([0; 32]);
    let decoded = base64::Engine::decode_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD, seed, &mut *secret);
    assert_eq!(decoded, Ok(32));
    let key = SigningKey::of_seed(secret).unwrap();
    assert_eq!(*key.public().bytes(), bytes);
    assert_eq!(key.id().as_str(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

/// One id in 64 began with a hyphen, and `tenure keys remove` took it for an option.
#[test]
fn an_id_does_not_look_like_an_option() {
    assert!((0..1_000).all(|_| !SigningKey::generate().unwrap().id().as_str().starts_with('-')));
}

#[test]
fn keys_of_other_kinds_are_passed_over() {
    let text = br#"{"keys":[{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"},{"kty":"OKP","crv":"X25519","kid":"b","x":"AA"},
        {"kty":"OKP","crv":"Ed25519","use":"enc","kid":"c","x":"AA"},{"kty":"OKP","crv":"Ed25519","alg":"ES256","kid":"d","x":"AA"}]}"#;
    assert_eq!(PublicKeys::parse(text).unwrap(), PublicKeys::default());
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    let whole = r#"{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let cases = [
        (String::new(), "tenure keys export"),
        ("{}".to_owned(), "tenure keys export"),
        (format!("[{whole}]"), "tenure keys export"),
        (format!(r#"{{"keys":[{whole},{whole}]}}"#), "the key a is there twice"),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qY"}]}"#.to_owned(), "no kid"),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qY"}]}"#.to_owned(), "32 bytes"),
        (r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"AAAA","d":"AAAA"}]}"#.to_owned(), "private key"),
        (" ".repeat(300_000), "are no key set"),
    ];
    for (text, right) in cases {
        let error = PublicKeys::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(right), "{error}");
    }
}
