use super::*;

fn said(code: &str) -> SinkError {
    let at = Where { place: "schema tenure", doing: "sealing", waited: Duration::from_secs(5), rights: "ask for it" };
    refusal(&at, &Said { code, message: "words", detail: Some("Held by pid 7."), hint: Some("End it."), constraint: None })
}

#[test]
fn what_may_succeed_by_itself_is_transient_and_nothing_else() {
    for code in ["40001", "40P01", "55P03", "57P01", "57P03", "08006", "53300", "25006"] {
        assert!(said(code).is_transient(), "{code}: {}", said(code));
    }
    for code in ["42501", "53100", "3F000", "42883", "XX001", "TN105", "22023", "25P02", "57014"] {
        assert!(!said(code).is_transient(), "{code}: {}", said(code));
    }
}

#[test]
fn whoever_holds_it_up_is_named() {
    let message = said("55P03").to_string();
    assert!(message.contains("held by another transaction") && message.contains("Held by pid 7. End it."), "{message}");
}
