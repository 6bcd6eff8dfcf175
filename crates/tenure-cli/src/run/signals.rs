//! Signals: which are passed on to the command, and which the watchdog outlasts.

use super::keep::Event;
use signal_hook::consts::{
    SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;

const PASSED_ON: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT];
const OUTLASTED: [i32; 10] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU];

/// Whether a signal asks for the end of whoever gets it.
pub(super) const fn asks_for_the_end(signal: i32) -> bool {
    matches!(signal, SIGHUP | SIGINT | SIGQUIT | SIGTERM)
}

/// Whether a terminal sends it to whoever is to stop.
pub(super) const fn is_of_a_terminal(signal: i32) -> bool {
    matches!(signal, SIGTSTP | SIGTTIN | SIGTTOU)
}

/// From now on signals to this process become events.
pub(super) fn watch(events: Sender<Event>) -> io::Result<()> {
    let mut signals = Signals::new(PASSED_ON.into_iter().filter(|signal| !is_ignored(*signal)))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                break;
            }
        }
    })?;
    Ok(())
}

/// From now on a signal that asks for the end ends this process: nothing is held any more, and nothing is left to do.
pub(super) fn let_go() {
    let yes = Arc::new(AtomicBool::new(true));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)) {
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&yes));
    }
}

/// From now on no signal that can be caught ends or stops this process. Not by ignoring them: the command would inherit
/// that.
pub(super) fn outlast() -> io::Result<()> {
    for signal in OUTLASTED.into_iter().filter(|signal| !is_ignored(*signal)) {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Whether the caller has this signal ignored, as nohup does; then it stays so, here and in the command.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
