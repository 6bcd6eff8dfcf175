//! The end of a run: the resource is released when the last process of the command is gone, and not before.

use super::keep::{Event, Keep, Standing, WATCHDOG_GONE};
use super::link::{Gone, Status};
use super::report::{Release, Report};
use super::tree::{self, Process};
use super::watchdog::{now, pause};
use super::{hook, signals};
use rustix::process::{Pid, Signal, WaitOptions, getpid, waitpid};
use signal_hook::consts::{SIGINT, SIGQUIT};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;
use tenure::FinishError;
use tenure::blocking::wait_for;
use tenure::core::record::LeaseRecord;

/// How long a release is waited for beyond the own deadline: the authority may hang in a way that no timeout reaches.
const RELEASE: Duration = Duration::from_secs(2);

/// After so long it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a look at the authority after a loss may take.
const LOOK: Duration = Duration::from_secs(1);

impl Keep<'_> {
    /// The last process of the command is gone.
    pub(super) fn end(mut self) -> Report {
        if let (true, Some(Status::Killed(signal))) = (self.foreground.is_given(), self.report.status) {
            self.report.interrupted = Some(signal).filter(|signal| matches!(*signal, SIGINT | SIGQUIT));
        }
        self.foreground.take_back();
        if let Some(file) = &self.token_file {
            file.remove();
        }
        self.call_off_the_way_back();
        self.release();
        self.look_for_a_successor();
        self.wait_for_the_hook();
        let _ = self.watchdog.wait();
        self.voice.finish();
        self.report
    }

    /// An attempt that is under way may have a lease by now, which is released like any other.
    fn call_off_the_way_back(&mut self) {
        let Standing::Stopped { attempt, .. } = &self.standing else { return };
        attempt.cancel();
        self.standing = Standing::Ending;
        while let Ok(event) = self.events.recv_timeout(LOOK) {
            let is_the_end = matches!(event, Event::Back(_));
            self.react(event);
            if is_the_end {
                break;
            }
        }
    }

    fn release(&mut self) {
        let Some(lease) = self.lease.take() else {
            self.report.release = Release::Lost;
            return;
        };
        let until = now().saturating_add(super::keep::nanos(lease.time_left().unwrap_or_default() + RELEASE));
        let tell = self.tell.clone();
        let asking = thread::Builder::new().name("release".into());
        let asking = asking.spawn(move || drop(tell.send(Event::Released(wait_for(lease.release())))));
        let mut patience = Some(now().saturating_add(super::keep::nanos(PATIENCE)));
        while asking.is_ok() && now() < until {
            match self.events.recv_timeout(PATIENCE) {
                Ok(Event::Released(Ok(()))) => {
                    self.report.release = Release::Released;
                    return;
                }
                Ok(Event::Released(Err(FinishError::Lost(_) | FinishError::Refused { .. }))) => {
                    self.report.release = Release::Lost;
                    return;
                }
                Ok(Event::Released(Err(_))) => return,
                Ok(Event::Signal(signal)) if signals::asks_for_the_end(signal) => return,
                Ok(event) => self.react(event),
                Err(_) => {}
            }
            if patience.is_some_and(|patience| now() >= patience) {
                patience = None;
                let resource = &self.task.resource;
                self.voice
                    .say(format!("the authority does not answer to the release of {resource} yet; interrupt to leave"));
            }
        }
    }

    /// Who has it now, if the authority tells that in a moment: whoever reads of a loss asks this first.
    fn look_for_a_successor(&mut self) {
        if self.report.lost.is_none() {
            return;
        }
        let (tenure, resource) = (self.task.tenure.clone(), self.task.resource.clone());
        let (tell, told) = channel();
        let looking = thread::Builder::new().name("successor".into());
        let looking = looking.spawn(move || drop(tell.send(wait_for(tenure.authority().inspect(&resource)))));
        let Ok(Ok(read)) = looking.map_err(drop).and_then(|_| told.recv_timeout(LOOK).map_err(drop)) else { return };
        let newer = |lease: &LeaseRecord| self.report.tokens.last().is_some_and(|token| lease.epoch > token.epoch);
        self.report.successor = read.view.lease.filter(newer).map(|lease| (lease.owner.name.to_string(), lease.epoch));
    }

    fn wait_for_the_hook(&mut self) {
        let (Some(lost), Some(command)) = (&self.report.lost, &self.task.on_loss) else { return };
        if lost == WATCHDOG_GONE {
            // Nobody else is there to run it.
            let environment = self.report.tokens.last().map(|token| self.task.environment(token));
            self.report.hook = hook::run_with(command, lost, environment.into_iter().flatten()).ok();
            return;
        }
        while self.report.hook.is_none() {
            match self.events.recv_timeout(hook::AT_MOST * 2) {
                Ok(Event::WatchdogGone) | Err(_) => break,
                Ok(Event::Signal(signal)) if signals::asks_for_the_end(signal) => break,
                Ok(event) => self.react(event),
            }
        }
    }

    /// The watchdog was killed, and with it the command. Whatever else came from it is here now, and is ended at once:
    /// there is nobody left who would do so in time.
    pub(super) fn end_without_watchdog(&mut self) {
        let mut gone = Gone { killed_at: Some(now()), ..Gone::default() };
        loop {
            let left = self.members();
            for signal in [Signal::STOP, Signal::KILL] {
                for process in &left {
                    let _ = process.signal(signal);
                }
            }
            self.reap(&left);
            if left.is_empty() {
                break;
            }
            pause(Duration::from_millis(5));
        }
        gone.at = now();
        self.report.gone = Some(gone);
        // A watchdog that never told of the command has not started it: that is a failure, not a loss.
        if self.report.pid.is_some() {
            self.report.lost = Some(WATCHDOG_GONE.to_owned());
        }
        self.standing = Standing::Ending;
    }

    /// What came from the command: everything below this process, but for what was there before, and what came from that.
    fn members(&self) -> Vec<Process> {
        let spared = |process: &Process| self.others.iter().any(|other| other.is_same(process));
        let all = tree::descendants(getpid());
        let below_spared: Vec<Pid> = all
            .iter()
            .filter(|process| spared(process))
            .flat_map(|process| tree::descendants(process.pid))
            .map(|process| process.pid)
            .collect();
        all.into_iter().filter(|process| !spared(process) && !below_spared.contains(&process.pid)).collect()
    }

    fn reap(&mut self, left: &[Process]) {
        let command = self.report.pid.and_then(Pid::from_raw);
        for pid in left.iter().map(|process| process.pid).chain(command) {
            match waitpid(Some(pid), WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == command => {
                    self.report.status = status.terminating_signal().map(Status::Killed).or(self.report.status);
                }
                // Not a child of this process, or not gone yet.
                Ok(_) | Err(_) => {}
            }
        }
    }
}
