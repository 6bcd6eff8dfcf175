use super::*;

#[test]
fn nothing_is_left_open_in_the_script() {
    for rule in [Rule::Sealed, Rule::HighWater, Rule::Held] {
        let text = script("sinks", rule).unwrap();
        for left in ["{schema}", "{rule}", "{planning}", "{held}", "tenure.sink", "tenure.admit("] {
            assert!(!text.contains(left), "{left}");
        }
        assert!(text.starts_with("BEGIN;\n") && text.ends_with("COMMIT;\n"));
    }
}

#[test]
fn a_schema_that_would_need_quotes_is_refused() {
    for schema in ["", "Tenure", "a b", "a\"b", "a;drop", "pg_catalog", "1a"] {
        assert!(matches!(migrations(schema, Rule::Sealed), Err(SinkError::Address { .. })), "{schema}");
    }
}
