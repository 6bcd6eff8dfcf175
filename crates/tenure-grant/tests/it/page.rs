//! The page shows what the program does.

use crate::sink;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::sync::Arc;
use tenure_grant::{PublicKeys, Verifier, WallClock};

fn page() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/signed-grants.md")).unwrap()
}

/// The blocks of one kind, in order.
fn blocks(page: &str, kind: &str) -> Vec<String> {
    let begin = format!("```{kind}\n");
    page.split(&begin).skip(1).map(|rest| rest.split("```").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn the_page_shows_a_grant_that_its_key_set_verifies_and_what_it_says() {
    let page = page();
    let signed = blocks(&page, "text").remove(0);
    let [claims, keys] = <[String; 2]>::try_from(blocks(&page, "json")).unwrap();
    let said: serde_json::Value = serde_json::from_str(&claims).unwrap();
    let payload = URL_SAFE_NO_PAD.decode(signed.split('.').nth(1).unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&payload).unwrap(), said);
    let verifier = Verifier::new(PublicKeys::parse(keys.as_bytes()).unwrap());
    let at = |seconds: u64| verifier.clone().with_clock(WallClock::Manual(Arc::new(seconds.into())));
    let issued = said["iat"].as_u64().unwrap();
    let read = at(issued).verify_for(&signed, &sink("shop")).unwrap();
    assert_eq!((read.token.resource.as_str(), read.authority.as_str()), ("tenant-7", "prod"));
    assert_eq!(at(issued + 300).verify(&signed).unwrap_err().name(), "expired");
}

#[test]
fn the_page_shows_the_script_that_is_tested() {
    let script = include_str!("verify.py").trim();
    assert_eq!(
        blocks(&page(), "python"),
        [script],
        "docs/signed-grants.md shows another script than tests/it/verify.py"
    );
}
