use super::{parse_key, written_key};
use http::HeaderValue;
use tenure_core::OperationId;

fn parsed(text: &str) -> Result<String, String> {
    parse_key(&HeaderValue::from_bytes(text.as_bytes()).unwrap()).map(|operation| operation.to_string())
}

#[test]
fn every_id_comes_through() {
    for id in ["pay-7", "a b", "\"quoted\" \\ 'single'", "100%", "%\"x\"", "ü/😀", "a,b;c=1", &"ß".repeat(256)] {
        let operation = OperationId::new(id).unwrap();
        assert_eq!(parse_key(&written_key(&operation)).unwrap(), operation, "{:?}", written_key(&operation));
    }
}

#[test]
fn strings_display_strings_and_bare_texts_are_read() {
    assert_eq!(parsed("\"pay-7\""), Ok("pay-7".to_owned()));
    assert_eq!(parsed("pay-7"), Ok("pay-7".to_owned()));
    assert_eq!(parsed("%\"f%c3%bcr\""), Ok("für".to_owned()));
    assert_eq!(parsed(r#""a\"b\\c""#), Ok(r#"a"b\c"#.to_owned()));
}

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    for text in ["\"open", "\"a\"b", "\"a\\n\"", "%\"%c3\"", "%\"%zz\"", "%\"a", "\"a\";p=1", "ü"] {
        let error = parsed(text).unwrap_err();
        assert!(error.contains("Idempotency-Key: \"pay-7\""), "{text}: {error}");
    }
    assert!(parsed("").unwrap_err().contains("empty"));
    assert!(parsed("\"\"").unwrap_err().contains("empty"));
    assert!(parsed("%\"a%00b\"").unwrap_err().contains("control character"));
    assert!(parsed(&"x".repeat(513)).unwrap_err().contains("513 bytes"));
}
