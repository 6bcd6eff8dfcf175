//! Sentences on standard error, said by a thread of their own: whoever reads them may be stopped or gone, and a run must not
//! wait for that.

use super::report::say;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

#[derive(Debug)]
pub(super) struct Voice {
    tell: Option<Sender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl Voice {
    pub(super) fn new() -> Self {
        let (tell, told) = channel::<String>();
        let thread = std::thread::Builder::new().name("voice".into()).spawn(move || {
            for text in told {
                say(&text);
            }
        });
        Self { tell: Some(tell), thread: thread.ok() }
    }

    pub(super) fn say(&self, text: impl Into<String>) {
        if let Some(tell) = &self.tell {
            // Without a thread nothing is said, and nothing is lost by that.
            let _ = tell.send(text.into());
        }
    }

    /// Waits until everything was said: at the end, when nothing is held any more.
    pub(super) fn finish(mut self) {
        self.tell = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
