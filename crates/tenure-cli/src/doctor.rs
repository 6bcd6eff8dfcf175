use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::receivers::Receivers;
use finding::{Finding, Verdict};
use serde_json::json;

mod engine;
mod finding;
mod place;
mod receivers;
mod records;

/// Look at everything that a lease depends on, and say what to do about what is not right.
///
/// It looks at the configuration, the authority and its file, the clocks, the records and the receivers, and changes
/// nothing.
///
/// Exit status: 0 all well, or only warnings; 1 something is wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenure doctor
  tenure doctor --sink file:/srv/out --json | jq '.checks[] | select(.verdict != \"ok\")'")]
pub(crate) struct Args {
    #[command(flatten)]
    receivers: Receivers,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let mut findings = vec![finding::config(&setup), engine::version()];
        findings.extend(engine::clock());
        let path = place::path_of(&setup.url);
        if let Some(path) = &path {
            findings.extend(place::look(path));
        }
        let named_by = self.access.named_by(&setup.settings);
        match records::open(&setup, &named_by) {
            Ok((authority, reached)) => {
                findings.push(reached);
                if let Some(path) = &path {
                    findings.extend(engine::file(path));
                }
                findings.extend(records::look(&setup, &authority)?);
                findings.extend(receivers::look(&self.receivers.reach()?, Some(&authority))?);
            }
            Err(failed) => {
                findings.push(failed);
                findings.extend(receivers::look(&self.receivers.reach()?, None)?);
            }
        }
        Ok(self.report(&findings))
    }

    fn report(&self, findings: &[Finding]) -> Exit {
        let ok = findings.iter().all(|finding| finding.verdict != Verdict::Fail);
        if self.json {
            let checks: Vec<_> = findings.iter().map(Finding::json).collect();
            println!("{}", json!({ "ok": ok, "checks": checks }));
        } else {
            let width = findings.iter().map(|finding| finding.name.len()).max().unwrap_or(0);
            for finding in findings {
                println!("{:4}  {:width$}  {}", finding.verdict.name(), finding.name, finding.says);
                if let Some(advice) = &finding.advice {
                    println!("{:4}  {:width$}  -> {advice}", "", "");
                }
            }
        }
        if ok { Exit::Success } else { Exit::Different }
    }
}
