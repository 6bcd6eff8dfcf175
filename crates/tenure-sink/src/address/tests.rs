use super::connect;
use crate::SinkError;

#[test]
fn nonsense_is_refused_and_the_message_says_what_would_be_right() {
    let cases = [
        ("", "write file:FOLDER or sqlite:PATH"),
        ("/srv/out", "write file:FOLDER or sqlite:PATH"),
        ("s3:bucket", "write file:FOLDER or sqlite:PATH"),
        ("file:%4", "write %25"),
        ("file:out?create", "write create="),
        ("file:out?create=yes", "neither true nor false"),
        ("file:out?rule=open", "write sealed, high-water or held"),
        ("file:out?wait=5", "250ms, 5s, 2m, 1h"),
        ("file:out?wait=2h", "at most 1h"),
        ("file:out?mode=ro", "no parameter \"mode\"; it has id, rule, create, wait"),
        ("file:out?id=a&id=b", "write it once"),
    ];
    for (url, right) in cases {
        let error = connect(url).expect_err(url);
        assert!(matches!(error, SinkError::Address { .. }), "{url}: {error:?}");
        assert!(!error.is_transient(), "{url}");
        let message = error.to_string();
        assert!(message.contains(right), "{url}: {message}");
        assert!(message.contains(&format!("{url:?}")), "{url}: {message}");
    }
}

#[cfg(not(feature = "file"))]
#[test]
fn a_file_sink_needs_its_feature() {
    assert!(connect("file:out").expect_err("left out").to_string().contains("without the `file` feature"));
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn a_sqlite_sink_needs_its_feature() {
    assert!(connect("sqlite:out.db").expect_err("left out").to_string().contains("without the `sqlite` feature"));
}

#[cfg(all(feature = "file", feature = "sqlite"))]
mod opened {
    use super::super::{Opened, connect, open};
    use crate::SinkError;
    use tenure_core::address::escaped;
    use tenure_core::fence::Rule;

    #[test]
    fn a_place_is_checked_as_well() {
        let cases = [
            ("file:", "write file:PATH"),
            ("sqlite:", "write sqlite:PATH"),
            ("file://host/out", "file:///ABSOLUTE/PATH"),
            ("sqlite:x.db?id=", "choose one with id=NAME"),
            ("sqlite:x.db?id=a%0Ab", "control character at byte 1"),
        ];
        for (url, right) in cases {
            let message = connect(url).expect_err(url).to_string();
            assert!(message.contains(right), "{url}: {message}");
        }
    }

    #[test]
    fn nothing_is_made_unless_it_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        for (scheme, name) in [("file", "out"), ("sqlite", "out.db")] {
            let path = folder.path().join(name);
            let url = format!("{scheme}:{}", path.display());
            assert!(connect(&url).is_err(), "{url}");
            assert!(!path.exists(), "{url}");
            connect(&format!("{url}?create=true")).unwrap();
            connect(&url).unwrap();
            assert!(path.exists(), "{url}");
        }
    }

    /// Whoever finds such an id enrolled can open the sink by it, whatever the folder is called.
    #[test]
    fn the_usual_id_is_the_sink_s_address() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(&base, base.join("link")).unwrap();
        for name in ["out", "50% what? & more", "two\nlines", "größe"] {
            let plain = base.join(name).display().to_string();
            let through_a_link = base.join("link").join(name).display().to_string();
            for scheme in ["file", "sqlite"] {
                let (plain, link) = (format!("{plain}.{scheme}"), format!("{through_a_link}.{scheme}"));
                let made = connect(&format!("{scheme}:{}?create=true", escaped(&link))).unwrap();
                assert_eq!(made.id().as_str(), format!("{scheme}:{}", escaped(&plain)));
                let found = connect(made.id().as_str()).unwrap();
                assert_eq!(found.id(), made.id());
            }
        }
    }

    #[test]
    fn parameters_are_heeded() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file://{}?create=true&id=the%26out&rule=high-water", folder.path().display());
        let sink = connect(&url).unwrap();
        assert_eq!((sink.id().as_str(), sink.rule()), ("the&out", Rule::HighWater));
        let error = connect(&format!("file:{}", folder.path().display())).expect_err("another rule");
        assert!(matches!(error, SinkError::Rule { .. }), "{error}");
        assert!(matches!(open(&url), Ok(Opened::File(_))));
    }
}
