//! Addresses: what each opens, what is said about those that make no sense, and what is never shown.

use vector_sync::index::{IndexError, connect};

#[test]
fn an_address_that_makes_no_sense_says_what_would() {
    for (url, wanted) in [
        ("", "there is no index called"),
        ("vectors", "sqlite:FOLDER"),
        ("mysql://localhost/x", "there is no index called \"mysql\""),
        ("sqlite:", "names no place"),
        ("sqlite://relative", "absolute path"),
        ("sqlite:/etc/passwd", "is a file: name a folder"),
        ("sqlite:index?create=true", "no parameter \"create\""),
        ("postgres://u@h/db?rule=sealed", "no parameter \"rule\""),
        ("postgres://u@h/db?create=true", "no parameter \"create\""),
        ("postgres://u@h/db?schema=Bad-Name", "no name for its schema"),
        ("postgres://u@h/db?wait=0ms", "wait is how long"),
        ("postgres:///db", "no host"),
        ("chroma:http://localhost:8000", "catalog=sqlite:FOLDER"),
        ("chroma:http://localhost:8000?catalog=", "no catalog called"),
        ("chroma:http://localhost:8000?catalog=chroma:http://h", "no catalog called \"chroma\""),
        ("chroma:localhost:8000?catalog=sqlite:x", "chroma:http://HOST:PORT"),
        ("chroma:http://localhost:8000/path?catalog=sqlite:x", "chroma:http://HOST:PORT"),
        ("chroma:http://u:p@localhost?catalog=sqlite:x", "leave it out"),
        ("chroma:http://localhost?catalog=sqlite:x&timeout=3s", "it has catalog, wait, tls_ca"),
        ("chroma:http://localhost?catalog=sqlite:x&wait=1h", "from 1ms to 60s"),
        ("chroma:https://localhost?catalog=sqlite:x&tls_ca=/none.pem", "tls_ca /none.pem"),
    ] {
        let said = connect(url).map(drop).unwrap_err();
        assert!(matches!(said, IndexError::Address { .. } | IndexError::Sink(_)), "{url}: {said:?}");
        assert!(said.to_string().contains(wanted), "{url}: {said}");
    }
}

#[test]
fn no_password_is_shown() {
    for url in [
        "postgres://user:hunter2@db/vectors",
        "postgres://user:hunter2@db/vectors?rule=sealed",
        "postgres://user:hunter2@db:x/vectors",
        "postgres://db/vectors?password=hunter2",
        "chroma:http://localhost:8000?catalog=postgres://user:hunter2@db/vectors",
        "chroma:http://localhost:8000?catalog=postgres://user:hunter2%40db/vectors&odd=1",
        "chroma:http://user:hunter2@localhost:8000?catalog=sqlite:x",
        "mysql://user:hunter2@db/vectors",
        "chroma:http://localhost:8000?catalog=mysql://user:hunter2@db/vectors",
    ] {
        let said = match connect(url) {
            Ok(index) => format!("{} {index:?}", index.place()),
            Err(error) => format!("{error} {error:?}"),
        };
        assert!(!said.contains("hunter2"), "{said}");
    }
}
