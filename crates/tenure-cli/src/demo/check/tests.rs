use super::*;

fn differences(stored: &Value, fresh: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", stored, fresh, None, &mut found);
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
fn what_is_left_out_is_not_compared_at_any_depth() {
    let (stored, fresh) = (json!([{ "deadline": 20, "epoch": 2 }]), json!([{ "deadline": null, "epoch": 3 }]));
    let mut found = Vec::new();
    compare("", &stored, &fresh, Some("deadline"), &mut found);
    assert_eq!(found, ["[0].epoch: stored 2, now 3"]);
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
