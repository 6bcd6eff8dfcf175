use super::report::{Report, tables};
use super::verdict::Verdict;
use crate::problem::Problem;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use std::path::Path;

/// How wide the tables in it are, in columns.
const WIDTH: usize = 120;

/// Writes a report that machines of continuous integration read: one test case for each round. An undecided round is an
/// error there, and never passes.
pub(super) fn write(report: &Report<'_>, path: &Path) -> Result<(), Problem> {
    let mut suite = TestSuite::new("tenure probe");
    for (number, round) in (1..).zip(&report.rounds) {
        let judgement = &round.judgement;
        let mut status = match judgement.verdict {
            Verdict::Pass => TestCaseStatus::success(),
            Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
            Verdict::Undecided => TestCaseStatus::non_success(NonSuccessKind::Error),
        };
        if judgement.verdict != Verdict::Pass {
            status.set_message(judgement.reason.as_str()).set_type(judgement.verdict.name());
        }
        let mut case = TestCase::new(format!("round {number}: {}", report.command()), status);
        case.set_classname("tenure.probe")
            .set_system_out(anstream::adapter::strip_str(&tables(round, WIDTH)).to_string());
        suite.add_test_case(case);
    }
    let mut whole = quick_junit::Report::new("tenure probe");
    whole.add_test_suite(suite);
    let text = whole.to_string().map_err(Problem::failure)?;
    std::fs::write(path, text)
        .map_err(|error| Problem::failure(format_args!("{} cannot be written: {error}", path.display())))
}
