use super::Fault;
use crate::SinkError;
use object_store::Error as StoreError;

fn generic(text: &str) -> StoreError {
    StoreError::Generic { store: "S3", source: text.into() }
}

fn denied(text: &str) -> StoreError {
    StoreError::PermissionDenied { path: "a/b".into(), source: text.into() }
}

fn refused(error: &StoreError) -> String {
    match Fault::of(error, "s3://bucket/a") {
        Fault::Refused(error @ SinkError::Failed { .. }) => error.to_string(),
        other => panic!("it is no refusal: {other:?}"),
    }
}

/// A status of the server's own trouble says nothing about whether the put was done; one about the request says that it was not.
#[test]
fn a_server_s_trouble_is_unsure_and_a_bad_request_is_not() {
    let status =
        |code: &str| generic(&format!("Server returned non-2xx status code: {code}: <Error><Code>X</Code></Error>"));
    for code in
        ["500 Internal Server Error", "503 Slow Down", "502 Bad Gateway", "429 Too Many", "408 Timeout", "409 Conflict"]
    {
        assert!(matches!(Fault::of(&status(code), "p"), Fault::Unsure(why) if why == "X"), "{code}");
    }
    for code in ["400 Bad Request", "405 Method Not Allowed", "413 Too Large"] {
        assert!(refused(&status(code)).contains('X'), "{code}");
    }
    assert!(matches!(Fault::of(&generic("the connection was reset"), "p"), Fault::Unsure(_)));
}

#[test]
fn what_was_signed_is_not_repeated() {
    let answer = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
                  <Code>SignatureDoesNotMatch</Code><Message>The signature does not match</Message>\
                  <AWSAccessKeyId>AKIASECRET</AWSAccessKeyId><StringToSign>AWS4-SECRET</StringToSign></Error>";
    let said = refused(&denied(answer));
    assert!(said.contains("SignatureDoesNotMatch: The signature does not match"), "{said}");
    assert!(said.contains("docs/object-sink.md") && !said.contains("SECRET"), "{said}");
}

#[test]
fn a_bucket_that_is_not_there_is_told_from_an_object() {
    let not_found = |text: &str| StoreError::NotFound { path: "a/b".into(), source: text.into() };
    assert!(matches!(Fault::of(&not_found("<Code>NoSuchKey</Code>"), "p"), Fault::Gone));
    assert!(refused(&not_found("<Code>NoSuchBucket</Code>")).contains("no bucket of this name"));
}

#[test]
fn without_credentials_the_variables_are_named() {
    for address in ["169.254.169.254/latest/api/token", "169.254.170.2/v2/credentials", "169.254.170.23/v1/credentials"]
    {
        let said = refused(&generic(&format!("Error performing PUT http://{address} in 5s")));
        assert!(said.contains("AWS_ACCESS_KEY_ID"), "{said}");
    }
    // A store at an address of the same kind: it was called a refusal that no answer came to a put.
    let reset = "Error performing PUT http://169.254.10.1:8333/bucket/manifests/x.json in 5s: connection reset";
    assert!(matches!(Fault::of(&generic(reset), "p"), Fault::Unsure(_)));
}
