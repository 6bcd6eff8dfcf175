use crate::access::Access;
use crate::exit::Exit;
use crate::problem::Problem;
use crate::receivers::Receivers;
use crate::screen::table::{Column, Table, mark};
use crate::screen::{Out, clean, width};
use finding::{Finding, Verdict};
use serde_json::json;

mod engine;
mod finding;
mod place;
mod receivers;
mod records;
mod server;

/// Look at everything that a lease depends on, and say what to do about what is not right.
///
/// It looks at the configuration, the authority, its file or its server, the clocks, the records and the receivers, and
/// changes nothing. What it could not look at, it says as well ("unseen").
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    receivers: Receivers,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: Access,
}

const AFTER_HELP: &str = "\
Examples:
  tenure doctor
  TENURE_AUTHORITY='redis://:PASSWORD@cache1' tenure doctor
  tenure doctor --sink file:/srv/out --json | jq '.checks[] | select(.verdict != \"ok\")'

Exit status:
  0   all is well, or there are only warnings
  1   something is wrong";

const COLUMNS: [Column; 3] = [Column::text("VERDICT"), Column::text("CHECK"), Column::flexible("FINDING")];

impl Args {
    pub(crate) fn run(&self) -> Result<Exit, Problem> {
        let setup = self.access.setup()?;
        let mut findings = vec![finding::config(&setup)];
        let path = place::path_of(&setup.url);
        if path.is_some() {
            findings.push(engine::version());
        }
        findings.extend(engine::clock());
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
                findings.extend(server::look(&setup.url, &authority));
                findings.extend(records::look(&setup, &authority)?);
                findings.extend(receivers::look(&self.receivers.reach()?, Some(&authority))?);
            }
            Err(failed) => {
                findings.push(failed);
                findings.push(Finding::unseen(
                    "records",
                    "what the authority holds, promises and is set to was not looked at: it does not answer",
                    "mend that first, and look again",
                ));
                findings.extend(receivers::look(&self.receivers.reach()?, None)?);
            }
        }
        self.report(&findings)
    }

    fn report(&self, findings: &[Finding]) -> Result<Exit, Problem> {
        let ok = findings.iter().all(|finding| finding.verdict != Verdict::Fail);
        if self.json {
            let checks: Vec<_> = findings.iter().map(Finding::json).collect();
            Out::new().json(&json!({ "ok": ok, "checks": checks }))?;
        } else {
            let mut table = Table::new(width(), &COLUMNS);
            for Finding { name, verdict, says, advice } in findings {
                table.row(vec![mark(verdict.tint(), verdict.name()), (*name).to_owned(), clean(says)]);
                if let Some(advice) = advice {
                    table.row(vec![String::new(), String::new(), format!("-> {}", clean(advice))]);
                }
            }
            Out::new().write(&table.draw())?;
        }
        Ok(if ok { Exit::Success } else { Exit::Different })
    }
}
