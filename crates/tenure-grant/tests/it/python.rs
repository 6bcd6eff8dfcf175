//! A stock library of another language verifies what is signed here: PyJWT, as Debian ships it.

use crate::{authority, sinks, token};
use std::io::Write as _;
use std::process::{Command, Stdio};
use tenure_core::Epoch;
use tenure_grant::{KeyFolder, Signer};

const SCRIPT: &str = include_str!("verify.py");

/// The interpreter that has the library: Debian's own, where another Python stands before it in the path.
fn python() -> &'static str {
    let has = |python: &&str| {
        let tried = Command::new(python).args(["-c", "import jwt, cryptography"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    found.expect("PyJWT is needed: apt-get install --yes python3-jwt python3-cryptography (as root)")
}

/// What the script says of a signed grant: the claims as it read them, or the name of the library's error.
fn said(keys: &str, signed: &str, sink: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("jwks.json");
    std::fs::write(&path, keys).unwrap();
    let mut script = Command::new(python());
    script.args(["-c", SCRIPT]).arg(&path).arg(sink).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut script = script.spawn().unwrap();
    // Not as an argument: everybody on the machine can read those.
    script.stdin.take().unwrap().write_all(signed.as_bytes()).unwrap();
    let output = script.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn pyjwt_verifies_a_signed_grant_and_refuses_a_wrong_one() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFolder::new(folder.path().join("keys"));
    let signer = Signer::of_folder(keys.clone(), authority("prod"));
    let granted = token("tenant-7 \"ü\"", Epoch::MAX_VALUE);
    let signed = signer.sign(&granted, &sinks(&["shop", "files"])).unwrap();
    let public = keys.public_keys().unwrap().to_json();
    assert_eq!(said(&public, signed.as_str(), "shop"), granted.to_string());
    assert_eq!(said(&public, signed.as_str(), "mail"), "InvalidAudienceError");
    let other = KeyFolder::new(folder.path().join("other"));
    other.make().unwrap();
    let other = other.public_keys().unwrap().to_json();
    assert_eq!(said(&other, signed.as_str(), "shop"), "unknown key");
    let (message, signature) = signed.as_str().rsplit_once('.').unwrap();
    let changed = if signature.starts_with('A') { "B" } else { "A" };
    assert_eq!(said(&public, &format!("{message}.{changed}{}", &signature[1..]), "shop"), "InvalidSignatureError");
    // After a rotation the old public keys, which have the next one, are good still.
    keys.rotate().unwrap();
    let signed = signer.sign(&granted, &sinks(&["shop"])).unwrap();
    assert_eq!(said(&public, signed.as_str(), "shop"), granted.to_string());
}
