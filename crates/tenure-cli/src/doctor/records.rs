//! Whether the authority answers, and whether what it holds makes sense.

use super::finding::Finding;
use super::place;
use crate::access::Setup;
use crate::problem::Problem;
use crate::span::Span;
use std::sync::mpsc;
use std::time::Duration;
use tenure::authority::{Authority, BootClock, Listed, Page};
use tenure::blocking::wait_for;
use tenure::core::decide::Keys;
use tenure::core::record::{AuthorityRecord, LeaseRecord, Phase, SessionRecord, SessionState};
use tenure::core::{ResourceName, Timing, Ttl};

/// How long to wait for the authority to be opened.
const PATIENCE: Duration = Duration::from_secs(15);

/// How many readings are timed, and how many sessions are looked at.
const READINGS: usize = 21;
const SESSIONS_MAX: usize = 1_000;

/// How many names a finding lists.
const NAMES_MAX: usize = 5;

/// Opens the authority and asks it once, in a bounded time.
pub(super) fn open(setup: &Setup, named_by: &str) -> Result<(Authority, Finding), Finding> {
    let (tell, told) = mpsc::channel();
    let asked = setup.clone();
    std::thread::spawn(move || {
        // Nobody listens any more after the bound.
        let _ = tell.send(asked.existing().and_then(|authority| {
            let before = BootClock.now_nanos();
            wait_for(authority.store().read(&Keys::default()))?;
            Ok((authority, Duration::from_nanos(BootClock.now_nanos().saturating_sub(before))))
        }));
    });
    let at = format!("{} (named by {named_by})", setup.shown_url());
    match told.recv_timeout(PATIENCE) {
        Ok(Ok((authority, _))) if place::path_of(&setup.url).is_some() => {
            Ok((authority, Finding::ok("authority", format!("{at} answers"))))
        }
        Ok(Ok((authority, took))) => {
            let says = format!("{at} answers; to connect and read took {:?}", rounded(took));
            Ok((authority, Finding::ok("authority", says)))
        }
        Ok(Err(problem)) => Err(Finding::fail("authority", format!("{at}: {problem}"), advice(setup))),
        Err(_) => Err(Finding::fail(
            "authority",
            format!("{at} gave no answer within {}", Span(PATIENCE)),
            "see whether the disk or the network hangs, or a stopped process holds the file",
        )),
    }
}

fn advice(setup: &Setup) -> &'static str {
    if setup.url.contains("create=true") {
        "nothing was ever held there if the file is not there yet: the first `tenure run` makes it"
    } else {
        "every worker that names this address is refused in the same way"
    }
}

pub(super) fn look(setup: &Setup, authority: &Authority) -> Result<Vec<Finding>, Problem> {
    let (latency, record) = readings(authority)?;
    let mut findings = vec![speed(latency), quarantine(authority, &record)?];
    findings.push(ttl(setup.settings.ttl.unwrap_or(Ttl::DEFAULT.get()), record.max_ttl, latency));
    findings.extend(resources(authority, &record)?);
    findings.push(sessions(authority)?);
    Ok(findings)
}

/// The median of some readings. Nothing is written: how long a commit takes shows only when something is granted.
fn readings(authority: &Authority) -> Result<(Duration, AuthorityRecord), Problem> {
    let mut spans = Vec::with_capacity(READINGS);
    let mut record = None;
    for _ in 0..READINGS {
        let before = BootClock.now_nanos();
        let read = wait_for(authority.store().read(&Keys::default()))?;
        spans.push(BootClock.now_nanos().saturating_sub(before));
        record = Some(read.view.authority);
    }
    spans.sort_unstable();
    let median = spans.get(READINGS / 2).copied().unwrap_or_default();
    let record = record.ok_or_else(|| Problem::failure("the authority was not read"))?;
    Ok((Duration::from_nanos(median), record))
}

fn speed(latency: Duration) -> Finding {
    let says = format!("a reading takes {:?}", rounded(latency));
    if latency > Duration::from_millis(250) {
        return Finding::warn("speed", says, "see what else uses the disk or the network: renewals wait as long");
    }
    Finding::ok("speed", says)
}

fn rounded(span: Duration) -> Duration {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX))
}

fn quarantine(authority: &Authority, record: &AuthorityRecord) -> Result<Finding, Problem> {
    let now = wait_for(authority.store().read(&Keys::default()))?.now;
    Ok(match record.quarantine(now) {
        Some(left) => Finding::warn(
            "quarantine",
            format!("the store went back in time, and nothing is granted for {} more", Span(left)),
            "let it learn meanwhile what its receivers know (tenure restore --learn-from URL --reason TEXT); if no backup \
             was put back, find out who changed the store: the newest rows of tenure history say why",
        ),
        None => Finding::ok("quarantine", format!("none; incarnation {}", record.incarnation)),
    })
}

fn ttl(span: Duration, max: Ttl, latency: Duration) -> Finding {
    let ttl = match Ttl::new(span) {
        Ok(ttl) if ttl <= max => ttl,
        Ok(_) => {
            return Finding::fail(
                "ttl",
                format!("the ttl of {} is above the authority's longest, {}", Span(span), Span(max.get())),
                "give a shorter ttl in tenure.toml, or with --ttl",
            );
        }
        Err(error) => return Finding::fail("ttl", error.to_string(), "give another ttl in tenure.toml"),
    };
    let timing = Timing::of(ttl);
    let says = format!(
        "{}, renewed every {}; the authority allows at most {}",
        Span(span),
        Span(timing.renew_every()),
        Span(max.get())
    );
    if latency * 10 > timing.renew_every() {
        return Finding::warn("ttl", format!("{says}; a reading takes {latency:?}"), "give a longer ttl");
    }
    Finding::ok("ttl", says)
}

fn resources(authority: &Authority, record: &AuthorityRecord) -> Result<Vec<Finding>, Problem> {
    let (mut all, mut held) = (0_usize, 0_usize);
    let (mut unsealed, mut excused, mut retiring): (Vec<String>, Vec<String>, Vec<String>) = Default::default();
    let mut page: Page<ResourceName> = Page { after: None, limit: 1_000 };
    loop {
        let listed = wait_for(authority.store().leases(page.clone()))?;
        let Some(last) = listed.last() else { break };
        page.after = Some(last.lease.resource.clone());
        for Listed { lease, holder, now } in listed {
            all += 1;
            if matches!(lease.phase, Phase::Retiring { .. }) {
                retiring.push(lease.resource.to_string());
            }
            let standing = SessionRecord::standing(holder.as_ref(), record, now);
            if lease.is_granted() && standing == tenure::core::record::Standing::Valid {
                held += 1;
                unsealed.extend(without_a_seal(&lease));
                excused.extend(lease.excused().iter().map(|id| format!("{id} of {}", lease.resource)));
            }
        }
    }
    let mut findings = vec![Finding::ok("resources", format!("{all} known, {held} held now"))];
    findings.push(if unsealed.is_empty() {
        Finding::ok("seals", "every receiver of what is held is sealed")
    } else {
        Finding::warn(
            "seals",
            format!("{} receiver(s) of what is held are not sealed: {}", unsealed.len(), some(&unsealed)),
            "they accept nothing until the holder seals them; see tenure sinks RESOURCE ls",
        )
    });
    if !excused.is_empty() {
        findings.push(Finding::warn(
            "excuses",
            format!("{} receiver(s) were excused from what is held: {}", excused.len(), some(&excused)),
            "each refuses the holder and may accept a former one until it is sealed, which goes on by itself: bring it back",
        ));
    }
    if !retiring.is_empty() {
        findings.push(Finding::warn(
            "retirements",
            format!("{} are under way: {}", retiring.len(), some(&retiring)),
            "nobody can acquire them: finish each with tenure retire RESOURCE",
        ));
    }
    Ok(findings)
}

fn without_a_seal(lease: &LeaseRecord) -> Vec<String> {
    // While its receivers are being sealed, a grant is not announced.
    if lease.phase == Phase::Sealing {
        return Vec::new();
    }
    let open = lease.sinks.iter().filter(|(_, mark)| !mark.sealed && !mark.excused);
    open.map(|(id, _)| format!("{id} of {}", lease.resource)).collect()
}

fn sessions(authority: &Authority) -> Result<Finding, Problem> {
    let ids = wait_for(authority.store().idle_sessions(SESSIONS_MAX))?;
    let more = if ids.len() == SESSIONS_MAX { " or more" } else { "" };
    let mut overdue = 0;
    for id in &ids {
        let keys = Keys { session: Some(*id), ..Keys::default() };
        let read = wait_for(authority.store().read(&keys))?;
        let live = read.view.caller.is_some_and(|session| session.state == SessionState::Live);
        overdue += usize::from(live);
    }
    let says = format!(
        "{overdue} passed their deadline and were not ended yet, {}{more} have ended and wait to be swept",
        ids.len() - overdue
    );
    if more.is_empty() {
        return Ok(Finding::ok("sessions", says));
    }
    Ok(Finding::warn("sessions", says, "each connection of a worker sweeps some; many short runs leave many"))
}

fn some(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
    let more = names.len().saturating_sub(NAMES_MAX);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

#[cfg(test)]
mod tests;
