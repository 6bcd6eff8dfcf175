use std::path::Path;

use super::{Ending, run};
use crate::call::Call;
use crate::steps::{Step, Work};

fn step(name: &'static str, program: &str) -> Step {
    Step { name, what: "for a test", work: Work::Calls(vec![Call::new(program, &["x"])]) }
}

#[test]
fn the_first_failure_stops_the_run_and_names_the_command() {
    let report = run(&[step("one", "true"), step("two", "false"), step("three", "true")], Path::new("."));
    assert!(!report.passed());
    assert_eq!(report.lines.len(), 2);
    assert_eq!(report.lines[1].2, Ending::Failed("To repeat: false x".to_owned()));
    assert_eq!(report.not_run, ["three"]);
    let summary = report.summary();
    assert!(summary.contains("two failed. To repeat: false x"), "{summary}");
    assert!(summary.contains("cargo xtask test --only two"), "{summary}");
}

#[test]
fn a_program_that_is_not_there_is_a_failure() {
    let report = run(&[step("one", "no-such-program-here")], Path::new("."));
    assert!(!report.passed());
}

#[test]
fn a_tool_that_is_not_there_is_left_out_and_said_so() {
    let optional = |probe: &str, call: &str| Step {
        name: "tool",
        what: "for a test",
        work: Work::Optional {
            probe: Call::new(probe, &[]),
            install: "get-tool".to_owned(),
            calls: vec![Call::new(call, &[])],
        },
    };
    let report = run(&[optional("false", "false")], Path::new("."));
    assert!(report.passed());
    assert!(report.summary().contains("left out: its tool is not installed. To install it: get-tool"));
    // A tool that is there must pass.
    assert!(!run(&[optional("true", "false")], Path::new(".")).passed());
}
