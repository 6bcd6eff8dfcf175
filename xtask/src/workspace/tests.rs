use super::{Package, parse};

#[test]
fn a_package_is_read_with_all_that_the_rules_ask_for() {
    let text = r#"{
        "workspace_root": "/r",
        "packages": [{
            "name": "one", "manifest_path": "/r/crates/one/Cargo.toml", "description": null,
            "features": {"default": ["a"], "a": []},
            "targets": [
                {"kind": ["lib"], "name": "one"}, {"kind": ["test"], "name": "it"}, {"kind": ["bench"], "name": "speed"}
            ],
            "dependencies": [
                {"name": "two", "kind": null}, {"name": "two", "kind": "dev"}, {"name": "three", "kind": "build"}
            ]
        }]
    }"#;
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        parse(text).unwrap(),
        [Package {
            name: "one".to_owned(),
            dir: "crates/one".to_owned(),
            description: String::new(),
            is_library: true,
            features: owned(&["a", "default"]),
            test_binaries: owned(&["it"]),
            benches: owned(&["speed"]),
            dependencies: owned(&["three", "two"]),
        }]
    );
}

#[test]
fn an_answer_in_another_form_is_an_error() {
    assert!(parse("no JSON").is_err());
    assert!(parse("{}").is_err());
    assert!(
        parse(r#"{"workspace_root": "/r", "packages": [{"name": "one", "manifest_path": "/else/Cargo.toml"}]}"#)
            .is_err()
    );
}
