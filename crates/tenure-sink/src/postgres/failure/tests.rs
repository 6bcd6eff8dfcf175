use super::*;

fn said(code: &str) -> SinkError {
    let at = Where { place: "schema tenure", doing: "sealing", waited: Duration::from_secs(5), rights: "ask for it" };
    refusal(
        &at,
        &Said { code, message: "words", detail: Some("Held by pid 7."), hint: Some("End it."), constraint: None },
    )
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

/// `lock_timeout` in the caller's own session: it said "did not come free within 0 ms", by nobody, and not what to do.
#[test]
fn a_lock_that_was_waited_for_in_vain_is_a_transaction_to_repeat() {
    let at = Where { place: "schema tenure", doing: "checking", waited: Duration::ZERO, rights: "ask for it" };
    let words = "canceling statement due to lock timeout";
    let error = refusal(&at, &Said { code: "55P03", message: words, detail: None, hint: None, constraint: None });
    assert!(matches!(error, SinkError::Repeat { .. }) && error.to_string().contains(words), "{error}");
}

#[test]
fn whoever_holds_it_up_is_named() {
    let message = said("55P03").to_string();
    assert!(message.contains("held by another transaction") && message.contains("Held by pid 7. End it."), "{message}");
}
