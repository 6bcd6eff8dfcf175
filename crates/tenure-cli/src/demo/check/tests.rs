use super::*;

fn differences(stored: &Value, fresh: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", stored, fresh, &mut found);
    found
}

#[test]
fn a_difference_is_named_by_its_place() {
    let stored = json!({ "a": [1, { "b": "old" }], "gone": true });
    assert_eq!(differences(&stored, &stored), [""; 0]);
    let found = differences(&stored, &json!({ "a": [1, { "b": "new" }], "came": 1 }));
    assert_eq!(
        found,
        ["a[1].b: stored \"old\", now \"new\"", "gone: stored true, now null", "came: stored null, now 1"]
    );
    assert_eq!(differences(&json!([1]), &json!([1, 2])).len(), 1);
}

#[test]
fn a_file_without_a_result_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.json");
    for text in ["{}", "not json", "[]"] {
        std::fs::write(&path, text).unwrap();
        assert!(matches!(Stored::read(&path), Err(DemoError::NoResult { .. })), "{text}");
    }
    assert!(matches!(Stored::read(&dir.path().join("missing")), Err(DemoError::File { .. })));
}
