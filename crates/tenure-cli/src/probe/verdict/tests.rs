use super::*;
use serde_json::json;

fn value(text: &str) -> Reading {
    Reading::of(text)
}

fn unreadable() -> Reading {
    Reading::failed("exit 1", "no such file")
}

fn itself(success: bool) -> Ended {
    Ended::Itself { success, how: format!("exit {}", u8::from(!success)) }
}

fn killed() -> Ended {
    Ended::Killed { how: "ended by the probe after 60 s".to_owned() }
}

/// A late write that left no trace: only evidence is missing.
fn nothing_landed() -> Facts {
    Facts {
        paused: value("old"),
        b: itself(true),
        after_b: [value("B"), value("B")],
        a: itself(false),
        after_a: value("B"),
        refusals: None,
        tried: None,
        asked_tried: false,
    }
}

/// A alone changes the value.
fn control() -> ControlFacts {
    ControlFacts { reached: Ok(()), paused: value("B"), ended: itself(true), after: value("A") }
}

fn verdict(facts: &Facts, control: Option<&ControlFacts>) -> (Verdict, String) {
    let judgement = judge_with(facts, control);
    (judgement.verdict, judgement.reason)
}

#[test]
fn each_kind_of_evidence_is_enough() {
    let facts = nothing_landed();
    let judgement = judge_with(&facts, Some(&control()));
    assert_eq!((judgement.verdict, judgement.evidence), (Verdict::Pass, vec![Evidence::Control]));

    let facts = Facts { tried: Some("stale".to_owned()), ..nothing_landed() };
    let judgement = judge_with(&facts, None);
    assert_eq!(
        (judgement.verdict, judgement.evidence),
        (Verdict::Pass, vec![Evidence::Tried { line: "stale".to_owned() }])
    );

    let facts = Facts { refusals: Some([value("0"), value("1")]), ..nothing_landed() };
    let judgement = judge(&facts).expect("a recorded refusal needs no control run");
    let refusal = Evidence::Refusal { before: value("0"), after: value("1") };
    assert_eq!((judgement.verdict, judgement.evidence), (Verdict::Pass, vec![refusal]));
}

#[test]
fn a_record_of_refusals_that_is_made_by_the_first_one_counts() {
    let facts = Facts { refusals: Some([unreadable(), value("1")]), ..nothing_landed() };
    assert_eq!(judge_with(&facts, None).verdict, Verdict::Pass);
    let facts = Facts { refusals: Some([value("1"), unreadable()]), ..nothing_landed() };
    assert_eq!(judge_with(&facts, None).verdict, Verdict::Undecided);
}

#[test]
fn without_evidence_nothing_is_proved() {
    let facts = Facts { refusals: Some([value("1"), value("1")]), asked_tried: true, ..nothing_landed() };
    let (found, reason) = verdict(&facts, None);
    assert_eq!(found, Verdict::Undecided);
    assert!(reason.contains("fits --tried") && reason.contains("--refusals did not change"), "{reason}");
    assert_eq!(judge(&facts), None, "a control run may still tell");
}

#[test]
fn a_late_write_is_a_failure_whatever_else_is_wrong() {
    let landed = Facts { after_a: value("A"), ..nothing_landed() };
    let and_more = [
        landed.clone(),
        Facts { b: itself(false), ..landed.clone() },
        Facts { a: killed(), ..landed.clone() },
        Facts { paused: value("B"), ..landed.clone() },
        Facts { refusals: Some([value("0"), value("1")]), tried: Some("stale".to_owned()), ..landed },
    ];
    for facts in and_more {
        let judgement = judge(&facts).expect("needs no control run");
        assert_eq!(judgement.verdict, Verdict::Fail, "{facts:?}");
        assert!(judgement.reason.contains("\"B\"") && judgement.reason.contains("\"A\""), "{}", judgement.reason);
    }
}

#[test]
fn what_spoils_a_round_is_named_and_never_passes() {
    let evidence = Facts { refusals: Some([value("0"), value("1")]), tried: Some("x".to_owned()), ..nothing_landed() };
    let spoilt = [
        (Facts { after_b: [unreadable(), unreadable()], ..evidence.clone() }, "the value after B is not readable"),
        (Facts { after_b: [value("B"), value("C")], ..evidence.clone() }, "changes by itself"),
        (Facts { after_a: unreadable(), ..evidence.clone() }, "the value after A went on is not readable"),
        (Facts { b: itself(false), ..evidence.clone() }, "B did not succeed (exit 1)"),
        (Facts { b: killed(), ..evidence.clone() }, "B did not succeed (ended by the probe"),
        (Facts { paused: value("B"), ..evidence.clone() }, "B changed nothing"),
        (Facts { a: killed(), ..evidence }, "A did not end after it was woken"),
    ];
    for (facts, why) in spoilt {
        let (found, reason) = verdict(&facts, Some(&control()));
        assert_eq!(found, Verdict::Undecided, "{facts:?}");
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn a_control_run_speaks_only_when_a_late_write_would_be_seen() {
    // A worker that writes the same whoever it is: what it says of itself proves nothing.
    let facts = Facts { tried: Some("writing".to_owned()), ..nothing_landed() };
    let silent = [
        (ControlFacts { after: value("B"), paused: value("old"), ..control() }, "as B does"),
        (ControlFacts { after: value("B"), ..control() }, "A alone changes nothing"),
        (ControlFacts { after: value("old"), paused: value("old"), ..control() }, "A alone changes nothing"),
        (ControlFacts { after: unreadable(), ..control() }, "not readable"),
        (ControlFacts { ended: killed(), ..control() }, "did not end"),
        (ControlFacts { reached: Err("A never reached the marker".to_owned()), ..control() }, "never reached"),
    ];
    for (control, why) in silent {
        let (found, reason) = verdict(&facts, Some(&control));
        assert_eq!(found, Verdict::Undecided, "{control:?}");
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn the_worst_verdict_is_the_greatest() {
    let mut all = [Verdict::Fail, Verdict::Pass, Verdict::Undecided];
    all.sort();
    assert_eq!(all, [Verdict::Pass, Verdict::Undecided, Verdict::Fail]);
    assert_eq!(json!(all), json!(["pass", "undecided", "fail"]));
}
