//! Sentences on standard error, said by a thread of their own: whoever reads them may be stopped or gone, and a run must not
//! wait for that.

use super::report::say;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

/// A voice that ends with another one.
#[derive(Clone, Debug)]
pub(super) struct Whisper(Weak<Sender<String>>);

impl Whisper {
    pub(super) fn say(&self, text: String) {
        if let Some(tell) = self.0.upgrade() {
            let _ = tell.send(text);
        }
    }
}

#[derive(Debug)]
pub(super) struct Voice {
    tell: Option<Arc<Sender<String>>>,
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
        Self { tell: Some(Arc::new(tell)), thread: thread.ok() }
    }

    pub(super) fn say(&self, text: impl Into<String>) {
        if let Some(tell) = &self.tell {
            // Without a thread nothing is said, and nothing is lost by that.
            let _ = tell.send(text.into());
        }
    }

    /// The same for whoever may outlive it: after the end it says nothing, and holds nothing up.
    pub(super) fn whisper(&self) -> Whisper {
        Whisper(self.tell.as_ref().map_or_else(Weak::new, Arc::downgrade))
    }

    /// Waits until everything was said: at the end, when nothing is held any more.
    pub(super) fn finish(mut self) {
        self.tell = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
