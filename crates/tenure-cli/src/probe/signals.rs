use crate::exit::Exit;
use crate::problem::Problem;
use crate::run::signals::is_ignored;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The signals that end a probe: everything that it has started is ended first.
#[derive(Debug)]
pub(super) struct Signals {
    caught: Arc<AtomicUsize>,
    wakes: UnixStream,
}

impl Signals {
    pub(super) fn catch() -> Result<Self, Problem> {
        let failed = |error| Problem::failure(format_args!("signals cannot be caught: {error}"));
        let (wakes, wake) = UnixStream::pair().map_err(failed)?;
        let caught = Arc::new(AtomicUsize::new(0));
        let asked = [(SIGINT, 2), (SIGTERM, 15), (SIGHUP, 1)];
        for (signal, number) in asked.into_iter().filter(|(signal, _)| !is_ignored(*signal)) {
            signal_hook::flag::register_usize(signal, Arc::clone(&caught), number).map_err(failed)?;
            signal_hook::low_level::pipe::register(signal, wake.try_clone().map_err(failed)?).map_err(failed)?;
        }
        Ok(Self { caught, wakes })
    }

    /// # Errors
    /// When one was caught.
    pub(super) fn check(&self) -> Result<(), Problem> {
        match self.caught.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => {
                let exit = Exit::Command(u8::try_from(128 + number).unwrap_or(u8::MAX));
                Err(Problem::new(exit, "interrupted: the workers were ended, and none was left stopped"))
            }
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}
