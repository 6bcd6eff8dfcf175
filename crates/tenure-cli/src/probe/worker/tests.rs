use super::*;

fn transcript(marker: &str, tried: &str) -> Transcript {
    Transcript {
        name: "A",
        narrator: Narrator::new(true),
        lines: VecDeque::new(),
        begun: [Vec::new(), Vec::new()],
        broken: [false, false],
        marker: Some(Regex::new(marker).unwrap()),
        tried: Some(Regex::new(tried).unwrap()),
        tried_in: None,
        late: false,
    }
}

fn texts(transcript: &Transcript) -> Vec<(&str, bool)> {
    transcript.lines.iter().map(|line| (line.text.as_str(), line.late)).collect()
}

#[test]
fn the_marker_is_found_once_and_also_in_a_line_that_has_no_end_yet() {
    let mut whole = transcript("^ready", "-");
    assert!(!whole.hear(Origin::Out, b"starting\nrea"));
    assert!(whole.hear(Origin::Out, b"dy to write"));
    assert!(!whole.hear(Origin::Out, b", as I said\nready\n"), "it is looked for once");
    assert_eq!(texts(&whole), [("starting", false), ("ready to write, as I said", false), ("ready", false)]);
}

#[test]
fn the_two_outputs_do_not_mix_within_a_line() {
    let mut both = transcript("never", "-");
    both.hear(Origin::Out, b"to ");
    both.hear(Origin::Err, b"warning\n");
    both.hear(Origin::Out, b"out\n");
    assert_eq!(texts(&both), [("warning", false), ("to out", false)]);
}

#[test]
fn only_what_begins_after_the_wake_is_late() {
    // Otherwise a line that was on its way when the worker was stopped would be taken for a late attempt.
    let mut late = transcript("ready", "writing");
    late.hear(Origin::Out, b"ready\nwriting soon");
    late.break_lines();
    late.late = true;
    late.hear(Origin::Out, b"\n");
    assert_eq!(late.tried_in, None);
    late.hear(Origin::Out, b"writing now\n");
    assert_eq!(late.tried_in.as_deref(), Some("writing now"));
    assert_eq!(texts(&late), [("ready", false), ("writing soon", false), ("writing now", true)]);
}

#[test]
fn a_line_without_an_end_does_not_grow_for_ever() {
    let mut long = transcript("never", "-");
    for _ in 0..LINES * 2 {
        long.hear(Origin::Out, &[b'x'; LINE_BYTES]);
    }
    assert_eq!(long.lines.len(), LINES);
    assert!(long.begun[0].len() < LINE_BYTES * 2);
}
