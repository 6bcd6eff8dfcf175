//! Files pass the suite, under both rules.

use crate::id;
use sha2::{Digest as _, Sha256};
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::fence::Rule;
use tenure_core::{Digest, OperationId, Outcome, ResourceName, Token, Verdict};
use tenure_sink::conformance::{Capabilities, Held, SinkUnderTest, run_all};
use tenure_sink::file::Operation;
use tenure_sink::{ApplyError, FileSink, Lookup, Sink, SinkError};

#[test]
fn files_pass_the_suite_under_the_sealed_rule() {
    run_all(|| Box::new(Folder::create(Rule::Sealed)));
}

#[test]
fn files_pass_the_suite_under_the_high_water_rule() {
    run_all(|| Box::new(Folder::create(Rule::HighWater)));
}

struct Folder {
    folder: Arc<TempDir>,
    sink: FileSink,
}

impl Folder {
    fn create(rule: Rule) -> Self {
        let folder = Arc::new(TempDir::new().unwrap());
        let sink = FileSink::create(folder.path(), id(), rule).unwrap().with_wait(Duration::from_millis(300));
        Self { folder, sink }
    }
}

/// The target of a resource.
fn target(resource: &ResourceName) -> String {
    Sha256::digest(resource.as_str()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl SinkUnderTest for Folder {
    fn sink(&self) -> &dyn Sink {
        &self.sink
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { seals_past_a_stopped_writer: false }
    }

    fn another(&self) -> Box<dyn SinkUnderTest> {
        let sink = FileSink::open(self.folder.path(), id(), self.sink.rule()).unwrap();
        Box::new(Self { folder: Arc::clone(&self.folder), sink: sink.with_wait(Duration::from_millis(300)) })
    }

    fn open_missing(&self) -> (Option<SinkError>, bool) {
        let path = self.folder.path().join("missing");
        let error = FileSink::open(&path, id(), self.sink.rule()).err();
        (error, path.exists())
    }

    fn write(&self, token: &Token, operation: Option<&OperationId>, value: &str) -> Result<Verdict, SinkError> {
        let outcome = Outcome::new(format!("wrote {value}")).unwrap();
        let operation = operation.map(|id| Operation { id: id.clone(), outcome });
        self.sink.write(token, operation.as_ref(), &target(&token.resource), value.as_bytes())
    }

    fn write_failing(&self, token: &Token, operation: Option<&OperationId>) {
        let operation = operation.map(|id| Operation { id: id.clone(), outcome: Outcome::new("half").unwrap() });
        let name = target(&token.resource);
        let failed = self.sink.apply(token, operation.as_ref(), &name, &Digest([0; 32]), |file| {
            file.write_all(b"half").unwrap();
            Err("the effect's own reason")
        });
        assert!(matches!(failed, Err(ApplyError::Effect("the effect's own reason"))), "{failed:?}");
        // And one that fails as late as it can, in the rename: its target is a folder.
        let blocked = self.folder.path().join("blocked");
        std::fs::create_dir_all(&blocked).unwrap();
        let failed = self.sink.write(token, operation.as_ref(), "blocked", b"half");
        assert!(matches!(failed, Err(SinkError::Failed { .. })), "{failed:?}");
    }

    fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        self.sink.lookup(token, operation)
    }

    fn value(&self, resource: &ResourceName) -> Option<String> {
        self.sink.read(&target(resource)).unwrap().map(|content| String::from_utf8(content).unwrap())
    }

    fn hold(&self, token: &Token) -> Box<dyn Held + '_> {
        let (value, effect): (_, Receiver<String>) = channel();
        let (checked, wait) = channel();
        let (sink, token) = (self.sink.clone(), token.clone());
        let writer = std::thread::spawn(move || {
            let done = sink.apply(&token, None, &target(&token.resource), &Digest([1; 32]), |file| {
                checked.send(()).unwrap();
                file.write_all(effect.recv().unwrap().as_bytes()).unwrap();
                Ok::<_, Infallible>(())
            });
            done.map_err(|error| error.to_string())
        });
        wait.recv().unwrap();
        Box::new(Open { value, writer })
    }
}

/// A write that has checked its token, and whose effect waits to be told its value.
struct Open {
    value: Sender<String>,
    writer: JoinHandle<Result<Verdict, String>>,
}

impl Held for Open {
    fn finish(self: Box<Self>, value: &str) -> Result<Verdict, String> {
        self.value.send(value.to_owned()).unwrap();
        self.writer.join().unwrap()
    }
}
