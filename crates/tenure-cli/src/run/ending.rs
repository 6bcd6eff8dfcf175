//! The end of a run: the resource is released when the last process of the command is gone, and not before.

use super::keep::{Event, Keep, WATCHDOG_GONE};
use super::link::{Gone, Status, Tidings};
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
            // By a key, and not by somebody who sent it to this process alone.
            let by_key = matches!(signal, SIGINT | SIGQUIT) && self.passed_on != Some(signal);
            self.report.interrupted = Some(signal).filter(|_| by_key && self.report.lost.is_none());
        }
        self.foreground.take_back();
        if let Some(file) = &self.token_file {
            file.remove();
        }
        if let (Some(since), Some(gone)) = (self.still_since, &self.report.gone) {
            self.report.frozen += Duration::from_nanos(gone.at.saturating_sub(since));
        }
        self.call_off_the_way_back();
        self.release();
        self.look_for_a_successor();
        self.wait_for_the_hook();
        self.report
    }

    /// An attempt that is under way may have a lease by now, which is released like any other.
    fn call_off_the_way_back(&mut self) {
        self.settle_on_the_end();
        while self.attempt.is_some() {
            match self.events.recv_timeout(LOOK) {
                Ok(event) => self.react(event),
                Err(_) => break,
            }
        }
    }

    fn release(&mut self) {
        let Some(lease) = self.lease.take() else {
            self.report.release = Release::Lost;
            return;
        };
        for sink in lease.excused() {
            self.voice.say(format!(
                "the receiver {sink} was never sealed by this run: a former holder may be accepted there until the next one \
                 seals it"
            ));
        }
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
                // Whoever was in a hurry before has sent one already; whoever sends one now was told what it costs.
                Ok(Event::Signal(signal)) if patience.is_none() && signals::asks_for_the_end(signal) => return,
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

    /// Waits for the watchdog, which runs the command for a loss; an interruption leaves both to themselves.
    fn wait_for_the_hook(&mut self) {
        if self.hook_is_ours
            && let (Some(lost), Some(command)) = (self.report.lost.clone(), self.task.on_loss.clone())
        {
            let environment = self.report.tokens.last().map(|token| self.task.environment(token));
            let tell = self.tell.clone();
            let hook = move || {
                let status = hook::run_with(&command, &lost, environment.into_iter().flatten());
                drop(tell.send(Event::Tidings(Tidings::Hook(status))));
            };
            if thread::Builder::new().name("hook".into()).spawn(hook).is_ok() {
                self.wait_until(|keep| keep.report.hook.is_some());
            }
        }
        self.wait_until(|keep| !matches!(keep.watchdog.try_wait(), Ok(None)));
        // What it told last may still be on its way.
        self.wait_until(|keep| keep.watchdog_gone);
    }

    fn wait_until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        while !is_so(self) {
            self.wake_the_watchdog();
            match self.events.recv_timeout(Duration::from_millis(20)) {
                Ok(Event::Signal(signal)) if signals::asks_for_the_end(signal) => break,
                Ok(event) => self.react(event),
                Err(_) => {}
            }
        }
    }

    /// The watchdog was killed, and with it the command. Whatever else came from it is here now, and is ended at once:
    /// there is nobody left who would do so in time.
    pub(super) fn end_without_watchdog(&mut self) {
        let mut gone = Gone { killed_at: Some(now()), ..Gone::default() };
        // One that ended before that has lost nothing.
        let in_time = self.report.status.is_some();
        let mut told = false;
        loop {
            let left = self.members();
            let mut refused = Vec::new();
            for process in &left {
                let _ = process.signal(Signal::STOP);
                if process.signal(Signal::KILL).is_err() {
                    refused.push(process.to_string());
                }
            }
            if !refused.is_empty() && !std::mem::replace(&mut told, true) {
                self.hear(Tidings::Refused(refused));
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
        if self.report.pid.is_some() && !in_time {
            self.report.lost.get_or_insert_with(|| WATCHDOG_GONE.to_owned());
            self.hook_is_ours = true;
        }
        self.settle_on_the_end();
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
