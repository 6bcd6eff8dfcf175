//! At most one of several crontabs runs the nightly job; the others say who does, and end with status 75.
//!
//! In each crontab:
//!
//! ```text
//! 0 3 * * *  cron-job sqlite:/var/lib/tenure.db?create=true $(date +\%F)
//! ```
//!
//! Without arguments it plays one night of three crontabs on an authority of its own.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use tenure::core::decide::Refusal;
use tenure::{AcquireError, Tenure, blocking};

/// sysexits' EX_TEMPFAIL: not now, and nothing is wrong.
const NOT_NOW: u8 = 75;

/// Runs the job of one night, unless somebody does or has done it. Returns the exit status.
fn nightly(
    url: &str,
    name: &str,
    night: &str,
    job: impl FnOnce(&blocking::Lease) -> Result<String, Box<dyn Error>>,
) -> Result<u8, Box<dyn Error>> {
    let connecting = Tenure::builder().owner(name).connect(url);
    let tenure = blocking::Tenure::from(blocking::wait_for(connecting)?);
    // One name for each night, so that a crontab whose clock is late finds it done. Zero: do not wait for a turn.
    let wish = tenure.wish(format!("nightly-report/{night}")).wait(Duration::ZERO);
    let lease = match tenure.acquire(wish) {
        Ok(lease) => lease,
        Err(AcquireError::Refused { refusal: Refusal::Completed { owner, outcome, .. }, .. }) => {
            println!("{name}: done already by {}: {outcome}", owner.name);
            return Ok(0);
        }
        // It says who holds it, since when, under which epoch, and for how long still.
        Err(refused @ AcquireError::Refused { .. }) => {
            println!("{name}: {refused}");
            return Ok(NOT_NOW);
        }
        Err(error) => return Err(error.into()),
    };
    println!("{name}: runs the job of {night} under epoch {}", lease.token().epoch);
    let outcome = job(&lease)?;
    lease.complete(&outcome)?; // an error means: not accepted, somebody else has the last word
    println!("{name}: completed: {outcome}");
    Ok(0)
}

/// The job itself. It asks before each step that costs or changes something; once lost, the question mark leaves.
fn report(lease: &blocking::Lease) -> Result<String, Box<dyn Error>> {
    for _page in 1..=3 {
        lease.ensure_owned()?;
        // Make the page here.
    }
    Ok("3 pages".to_owned())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    if let Some(url) = args.next() {
        let night = args.next().ok_or("give the night as the second argument, such as $(date +%F)")?;
        return Ok(nightly(&url, "cron", &night, report)?.into());
    }
    let folder = tempfile::tempdir()?; // removed at the end
    let (url, night) = (format!("sqlite:{}/authority.db?create=true", folder.path().display()), "2026-03-01");
    nightly(&url, "cron-a", night, |lease| {
        let status = nightly(&url, "cron-b", night, report)?; // while a is at work
        println!("cron-b: ends with status {status}");
        report(lease)
    })?;
    let status = nightly(&url, "cron-c", night, report)?; // its clock is late
    println!("cron-c: ends with status {status}");
    Ok(ExitCode::SUCCESS)
}
