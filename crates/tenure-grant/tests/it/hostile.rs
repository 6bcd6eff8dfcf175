//! What is not a good signed grant, and what is said of it.

use crate::{NOW, Pair, authority, sink, sinks, token};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use ring::signature::Ed25519KeyPair;
use std::sync::atomic::Ordering;
use tenure_core::Epoch;
use tenure_grant::{
    ALLOWANCE, BYTES_MAX, KeyId, LIFETIME, PublicKey, PublicKeys, Signer, SigningKey, Verifier, VerifyError, WallClock,
};

/// Signs whatever it is told to, as somebody does who has the key and another program.
struct Scribe {
    pair: Ed25519KeyPair,
    verifier: Verifier,
}

const GOOD: &str = r#"{"alg":"EdDSA","kid":"k","typ":"tenure-grant+jwt"}"#;

fn claims(change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) -> String {
    let mut claims = serde_json::json!({
        "v": 1, "iss": "prod", "sub": "r", "aud": ["shop"], "jti": format!("{:032x}", 7), "epoch": 4,
        "iat": NOW, "nbf": NOW - 60, "exp": NOW + 300,
    });
    change(claims.as_object_mut().unwrap());
    claims.to_string()
}

impl Scribe {
    fn new() -> Self {
        use ring::signature::KeyPair as _;
        let pair = Ed25519KeyPair::from_seed_unchecked(&[9; 32]).unwrap();
        let public = PublicKey::new(KeyId::new("k").unwrap(), pair.public_key().as_ref().try_into().unwrap());
        let clock = WallClock::Manual(std::sync::Arc::new(NOW.into()));
        Self { pair, verifier: Verifier::new(PublicKeys::new([public])).with_clock(clock) }
    }

    fn sign(&self, header: &str, payload: &str) -> String {
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(self.pair.sign(message.as_bytes())))
    }

    #[track_caller]
    fn refuses(&self, header: &str, payload: &str, name: &str, says: &str) {
        let error = self.verifier.verify(&self.sign(header, payload)).unwrap_err();
        assert_eq!(error.name(), name, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_good_one_says_what_was_granted() {
    let pair = Pair::new();
    let token = token("tenant 7 \"ü\" '; --", Epoch::MAX_VALUE);
    let signed = pair.sign(&token);
    let claims = pair.verifier.verify(signed.as_str()).unwrap();
    assert_eq!((&claims.token, &claims.authority), (&token, &authority("prod")));
    assert_eq!(claims.sinks, sinks(&["shop", "files"]));
    assert_eq!(claims.expires.since(claims.issued), LIFETIME);
    assert_eq!(claims.issued.since(claims.not_before), ALLOWANCE);
    assert_eq!(pair.verifier.verify_token(signed.as_str(), &sink("shop"), &token).unwrap(), claims);
    // What a foreign hand writes by the book is accepted as well.
    let scribe = Scribe::new();
    let by_hand = scribe.verifier.verify(&scribe.sign(GOOD, &claims_of_hand())).unwrap();
    assert_eq!(by_hand.token.epoch.get(), 4);
}

fn claims_of_hand() -> String {
    claims(|_| ())
}

#[test]
fn a_signature_is_good_from_a_minute_before_it_was_made_until_five_after() {
    let pair = Pair::new();
    let signed = pair.sign(&token("r", 1));
    let at = |seconds: u64| {
        pair.verifiers_time.store(seconds, Ordering::Release);
        pair.verifier.verify(signed.as_str()).map(drop)
    };
    assert_eq!(at(NOW - 61).unwrap_err(), VerifyError::NotYet { by: std::time::Duration::from_secs(1) });
    at(NOW - 60).unwrap();
    at(NOW + 299).unwrap();
    assert_eq!(at(NOW + 300).unwrap_err(), VerifyError::Expired { by: std::time::Duration::ZERO });
    let error = at(NOW + 342).unwrap_err().to_string();
    assert!(error.contains("expired 42 s ago") && error.contains("clock"), "{error}");
    let error = at(NOW - 100).unwrap_err().to_string();
    assert!(error.contains("40 s from now") && error.contains("NTP"), "{error}");
    // The signer's clock is what is wrong.
    pair.verifiers_time.store(NOW, Ordering::Release);
    pair.signers_time.store(NOW + 61, Ordering::Release);
    let ahead = pair.sign(&token("r", 1));
    assert_eq!(pair.verifier.verify(ahead.as_str()).unwrap_err().name(), "not-yet");
}

#[test]
fn other_headers_are_refused_each_by_its_name() {
    let scribe = Scribe::new();
    let good = claims_of_hand();
    let cases = [
        (r#"{"alg":"none","kid":"k","typ":"tenure-grant+jwt"}"#, "algorithm", "\"none\""),
        (r#"{"alg":"HS256","kid":"k","typ":"tenure-grant+jwt"}"#, "algorithm", "\"HS256\""),
        (r#"{"alg":"eddsa","kid":"k","typ":"tenure-grant+jwt"}"#, "algorithm", "only EdDSA"),
        (r#"{"alg":"EdDSA","kid":"k","typ":"JWT"}"#, "type", "\"JWT\""),
        (r#"{"alg":"EdDSA","kid":"k"}"#, "malformed", "missing field `typ`"),
        (r#"{"alg":"EdDSA","typ":"tenure-grant+jwt"}"#, "malformed", "missing field `kid`"),
        (r#"{"alg":"EdDSA","kid":"","typ":"tenure-grant+jwt"}"#, "malformed", "kid"),
        (r#"{"alg":"EdDSA","kid":"a b","typ":"tenure-grant+jwt"}"#, "malformed", "kid"),
        (r#"{"alg":"EdDSA","kid":"other","typ":"tenure-grant+jwt"}"#, "unknown-key", "other"),
        (r#"{"alg":"EdDSA","kid":"k","typ":"tenure-grant+jwt","crit":["exp"]}"#, "malformed", "unknown field `crit`"),
        (r#"{"alg":"EdDSA","kid":"k","typ":"tenure-grant+jwt","jku":"https://x"}"#, "malformed", "unknown field `jku`"),
        (r#"{"alg":"EdDSA","kid":"k","typ":"tenure-grant+jwt","b64":false}"#, "malformed", "unknown field `b64`"),
        (r#"{"alg":"EdDSA","alg":"none","kid":"k","typ":"tenure-grant+jwt"}"#, "malformed", "duplicate field `alg`"),
        ("[]", "malformed", "header"),
        ("null", "malformed", "header"),
        ("", "malformed", "no JSON object"),
    ];
    for (header, name, says) in cases {
        scribe.refuses(header, &good, name, says);
    }
    // An unsigned one, as libraries of old have accepted it.
    let header = URL_SAFE_NO_PAD.encode(cases[0].0);
    let unsigned = format!("{header}.{}.", URL_SAFE_NO_PAD.encode(&good));
    assert_eq!(scribe.verifier.verify(&unsigned).unwrap_err().name(), "algorithm");
}

#[test]
fn other_claims_are_refused_each_by_its_name() {
    let scribe = Scribe::new();
    let set =
        |name: &'static str, value: serde_json::Value| claims(|claims| drop(claims.insert(name.to_owned(), value)));
    let cases = [
        (set("epoch", (1_u64 << 63).into()), "claim", "epoch is wrong: an epoch is at most 9223372036854775807"),
        (set("epoch", u64::MAX.into()), "claim", "epoch"),
        (set("epoch", 0.into()), "claim", "an epoch is positive"),
        (set("epoch", (-1).into()), "malformed", "payload"),
        (set("epoch", 4.5.into()), "malformed", "payload"),
        (set("epoch", "4".into()), "malformed", "payload"),
        (set("sub", "".into()), "claim", "sub is wrong: the resource name is empty"),
        (set("sub", "a\u{0}b".into()), "claim", "control character"),
        (set("sub", "x".repeat(513).into()), "claim", "513 bytes"),
        (set("iss", "".into()), "claim", "iss"),
        (set("jti", "7".into()), "claim", "jti is wrong: an id is written as 32 hexadecimal digits"),
        (set("aud", "shop".into()), "malformed", "payload"),
        (set("aud", vec!["shop", "shop"].into()), "claim", "named twice"),
        (set("aud", vec!["a\nb"].into()), "claim", "control character"),
        (set("v", 2.into()), "version", "version 2"),
        (set("exp", (NOW + 100_000).into()), "claim", "good for longer"),
        (set("exp", NOW.into()), "claim", "do not follow each other"),
        (set("nbf", (NOW + 1).into()), "claim", "do not follow each other"),
        (set("scope", "all".into()), "malformed", "payload"),
        (claims(|claims| drop(claims.remove("exp"))), "malformed", "payload"),
        (claims_of_hand().replace(r#""epoch":4"#, r#""epoch":4,"epoch":5"#), "malformed", "payload"),
        ("{}".to_owned(), "malformed", "payload"),
        (String::new(), "malformed", "payload"),
        ("[".repeat(3_000), "malformed", "payload"),
    ];
    for (payload, name, says) in cases {
        scribe.refuses(GOOD, &payload, name, says);
    }
}

#[test]
fn what_is_shown_in_the_wrong_place_is_refused_there() {
    let pair = Pair::new();
    let signed = pair.sign(&token("r", 3));
    let text = signed.as_str();
    let error = pair.verifier.verify_for(text, &sink("mail")).unwrap_err();
    assert!(error.is_elsewhere() && error.to_string().contains("not for the receiver \"mail\""), "{error}");
    let error = pair.verifier.verify_token(text, &sink("shop"), &token("other", 3)).unwrap_err();
    assert!(error.is_elsewhere() && error.to_string().contains("is for \"r\""), "{error}");
    let error = pair.verifier.verify_token(text, &sink("shop"), &token("r", 4)).unwrap_err();
    assert!(error.to_string().contains("epoch is wrong"), "{error}");
    let same_epoch = tenure_core::Token { grant: tenure_core::GrantId::from_bits(1), ..token("r", 3) };
    let error = pair.verifier.verify_token(text, &sink("shop"), &same_epoch).unwrap_err();
    assert!(error.to_string().contains("jti is wrong"), "{error}");
    let error = pair.verifier.clone().authority(authority("test")).verify(text).unwrap_err();
    assert!(error.is_elsewhere() && error.to_string().contains("\"prod\""), "{error}");
    pair.verifier.authority(authority("prod")).verify(text).unwrap();
}

#[test]
fn a_key_of_the_same_id_that_did_not_sign_is_of_no_use() {
    let pair = Pair::new();
    let signed = pair.sign(&token("r", 1));
    let other = Scribe::new();
    let header = URL_SAFE_NO_PAD.decode(signed.as_str().split('.').next().unwrap()).unwrap();
    let payload = URL_SAFE_NO_PAD.decode(signed.as_str().split('.').nth(1).unwrap()).unwrap();
    let forged = other.sign(std::str::from_utf8(&header).unwrap(), std::str::from_utf8(&payload).unwrap());
    assert_eq!(pair.verifier.verify(&forged).unwrap_err(), VerifyError::Signature);
}

/// Every byte of it counts, in each of the three parts, and every shortening of it is noticed.
#[test]
fn nothing_of_a_text_can_be_changed_or_cut_off() {
    let pair = Pair::new();
    let signed = pair.sign(&token("r", 1));
    let text = signed.as_str();
    for at in 0..text.len() {
        assert!(pair.verifier.verify(&text[..at]).is_err(), "cut at {at}");
        for other in ["A", "-", "."] {
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            if changed != text {
                assert!(pair.verifier.verify(&changed).is_err(), "{other} at {at}");
            }
        }
    }
    for longer in [format!("{text}="), format!("{text}."), format!(" {text}"), format!("{text}\n"), format!("{text}A")]
    {
        assert!(pair.verifier.verify(&longer).is_err(), "{longer}");
    }
    let error = pair.verifier.verify(&"a".repeat(BYTES_MAX + 1)).unwrap_err();
    assert!(matches!(error, VerifyError::TooLong { .. }), "{error}");
}

/// A signature that says the same in other bits: S and S plus the order of the group. Whoever remembers texts would take it
/// for another one.
#[test]
fn a_signature_has_one_form() {
    let pair = Pair::new();
    let signed = pair.sign(&token("r", 1));
    let (message, signature) = signed.as_str().rsplit_once('.').unwrap();
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    // The order of the group, little-endian (RFC 8032, 5.1).
    let order = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010";
    let order = (0..32).map(|at| u8::from_str_radix(&order[2 * at..2 * at + 2], 16).unwrap());
    let mut carry = 0_u16;
    for (byte, add) in bytes[32..].iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = (sum & 0xff).try_into().unwrap();
        carry = sum >> 8;
    }
    let other = format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes));
    assert_eq!(pair.verifier.verify(&other).unwrap_err(), VerifyError::Signature);
}

#[test]
fn what_would_not_fit_into_a_header_is_not_signed() {
    let signer = Signer::of_key(SigningKey::generate().unwrap(), authority("prod"));
    let many: Vec<String> = (0..30).map(|n| format!("{n}{}", "x".repeat(400))).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = signer.sign(&token("r", 1), &sinks(&many)).unwrap_err().to_string();
    assert!(error.contains("shorter ids"), "{error}");
}

#[test]
fn neither_a_text_nor_a_key_is_shown_by_debug() {
    let pair = Pair::new();
    let signed = pair.sign(&token("r", 1));
    let shown = format!("{signed:?} {:?} {:?}", pair.signer, pair.verifier);
    for part in signed.as_str().split('.') {
        assert!(!shown.contains(part), "{shown}");
    }
    let folder = tempfile::tempdir().unwrap();
    let keys = tenure_grant::KeyFolder::new(folder.path().join("keys"));
    let signer = Signer::of_folder(keys.clone(), authority("prod"));
    drop(keys.make().unwrap());
    let text = std::fs::read_to_string(folder.path().join("keys/keys.json")).unwrap();
    let secret = text.split("\"d\": \"").nth(1).unwrap().split('"').next().unwrap();
    assert!(!format!("{keys:?} {signer:?} {:?}", keys.list()).contains(secret));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_refused_without_a_panic(text in "\\PC*") {
        let scribe = Scribe::new();
        prop_assert!(scribe.verifier.verify(&text).is_err());
    }

    #[test]
    fn any_three_parts_are_refused_without_a_panic(header in any::<Vec<u8>>(), payload in any::<Vec<u8>>(), end in any::<Vec<u8>>()) {
        let scribe = Scribe::new();
        let parts = [header, payload, end].map(|part| URL_SAFE_NO_PAD.encode(part));
        prop_assert!(scribe.verifier.verify(&parts.join(".")).is_err());
    }

    /// Signed by the right key: only the payload's own checks stand between it and a receiver.
    #[test]
    fn any_signed_payload_is_a_grant_or_refused(payload in "\\PC*", epoch in any::<u64>(), name in "[a-z]{1,5}") {
        let scribe = Scribe::new();
        prop_assert!(scribe.verifier.verify(&scribe.sign(GOOD, &payload)).is_err());
        let with_epoch = claims(|claims| drop(claims.insert("epoch".to_owned(), epoch.into())));
        prop_assert_eq!(scribe.verifier.verify(&scribe.sign(GOOD, &with_epoch)).is_ok(), Epoch::new(epoch).is_ok());
        let known = ["v", "iss", "sub", "aud", "jti", "epoch", "iat", "nbf", "exp"].contains(&name.as_str());
        let more = claims(|claims| drop(claims.insert(name.clone(), serde_json::Value::Null)));
        prop_assert!(scribe.verifier.verify(&scribe.sign(GOOD, &more)).is_err(), "known: {}", known);
    }

    /// Whatever names people choose: what was signed is what is read.
    #[test]
    fn what_is_signed_is_read_again(resource in "[^\\p{Cc}]{1,60}", sink_name in "[^\\p{Cc}]{1,60}", epoch in 1..=Epoch::MAX_VALUE) {
        let pair = Pair::new();
        let token = token(&resource, epoch);
        let signed = pair.signer.sign(&token, &sinks(&[&sink_name])).unwrap();
        let claims = pair.verifier.verify_token(signed.as_str(), &sink(&sink_name), &token).unwrap();
        prop_assert_eq!(claims.token, token);
    }
}
