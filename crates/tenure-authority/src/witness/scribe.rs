use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Writes the newest of what it is told down on a thread of its own, at most once in a second, and once more at the end.
/// Telling it takes a moment, whatever the disk does.
pub struct Scribe<T> {
    desk: Arc<Desk<T>>,
}

struct Desk<T> {
    state: Mutex<State<T>>,
    moved: Condvar,
}

struct State<T> {
    newest: Option<T>,
    ending: bool,
    ended: bool,
}

/// The shortest time between two writings.
const PAUSE: Duration = Duration::from_secs(1);

/// How long the end waits for the last writing. A disk that hangs must not hold up the end of a process.
const LAST: Duration = Duration::from_secs(2);

impl<T: Send + 'static> Scribe<T> {
    /// Starts the thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(mut write: impl FnMut(T) + Send + 'static) -> std::io::Result<Self> {
        let state = State { newest: None, ending: false, ended: false };
        let desk = Arc::new(Desk { state: Mutex::new(state), moved: Condvar::new() });
        let at = Arc::clone(&desk);
        std::thread::Builder::new().name("tenure-scribe".to_owned()).spawn(move || {
            while at.wait() {
                // First, since more is to come, and since what runs for a moment writes once.
                at.rest();
                if let Some(newest) = at.take() {
                    write(newest);
                }
            }
            at.state().ended = true;
            at.moved.notify_all();
        })?;
        Ok(Self { desk })
    }

    /// Tells it the newest. What it was told before and has not written is dropped.
    pub fn tell(&self, newest: T) {
        let mut state = self.desk.state();
        if state.newest.replace(newest).is_none() {
            self.desk.moved.notify_all();
        }
    }
}

impl<T> Drop for Scribe<T> {
    fn drop(&mut self) {
        let mut state = self.desk.state();
        state.ending = true;
        self.desk.moved.notify_all();
        let _ = self.desk.moved.wait_timeout_while(state, LAST, |state| !state.ended);
    }
}

impl<T> Desk<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // It is changed by plain assignments only, so it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is something to write; `false` at the end.
    fn wait(&self) -> bool {
        let idle = |state: &mut State<T>| state.newest.is_none() && !state.ending;
        self.moved.wait_while(self.state(), idle).unwrap_or_else(PoisonError::into_inner).newest.is_some()
    }

    fn take(&self) -> Option<T> {
        self.state().newest.take()
    }

    fn rest(&self) {
        let _ = self.moved.wait_timeout_while(self.state(), PAUSE, |state| !state.ending);
    }
}

impl<T> fmt::Debug for Scribe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scribe")
    }
}
