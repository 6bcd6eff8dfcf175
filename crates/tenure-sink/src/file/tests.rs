use super::*;
use crate::conformance::answered;
use std::collections::BTreeSet;
use tempfile::TempDir;
use tenure_core::GrantId;

fn token(epoch: u64) -> Token {
    Token {
        resource: ResourceName::new("r").unwrap(),
        epoch: Epoch::new(epoch).unwrap(),
        grant: GrantId::from_bits(epoch.into()),
    }
}

fn create(rule: Rule) -> (TempDir, FileSink) {
    let folder = TempDir::new().unwrap();
    let sink = FileSink::create(folder.path(), SinkId::new("sink").unwrap(), rule).unwrap();
    (folder, sink)
}

fn grant(sink: &FileSink, token: &Token) {
    if sink.rule() == Rule::Sealed {
        let generation = answered(sink.describe(&token.resource)).unwrap().generation;
        assert!(matches!(answered(sink.seal(token, &generation, &BTreeSet::new())), Ok(Sealing::Seal(_))));
    }
}

fn operation(name: &str) -> Operation {
    Operation { id: OperationId::new(name).unwrap(), outcome: Outcome::new("done").unwrap() }
}

/// The same folder in a process that ends at a step.
fn ending_at(sink: &FileSink, step: Step) -> FileSink {
    FileSink(Arc::new(Place { stop_at: Some(step), ..(*sink.0).clone() }))
}

const STEPS: [(Step, bool); 4] =
    [(Step::Aside, false), (Step::Promised, false), (Step::Renamed, true), (Step::Recorded, true)];

/// Ends a write of epoch 2 at a step, and checks the content.
fn crash(rule: Rule, step: Step, renamed: bool) -> (TempDir, FileSink) {
    let (folder, sink) = create(rule);
    grant(&sink, &token(1));
    assert_eq!(sink.write(&token(1), None, "target", b"old").unwrap(), Verdict::Written);
    grant(&sink, &token(2));
    let ended = ending_at(&sink, step).write(&token(2), Some(&operation("one")), "target", b"new");
    assert!(matches!(ended, Err(SinkError::Failed { doing: "ending", .. })), "{step:?}: {ended:?}");
    let content: &[u8] = if renamed { b"new" } else { b"old" };
    assert_eq!(sink.read("target").unwrap().as_deref(), Some(content), "{step:?}");
    (folder, sink)
}

#[test]
fn after_a_crash_at_any_step_a_repeat_is_a_replay_or_is_written() {
    for rule in [Rule::Sealed, Rule::HighWater] {
        for (step, renamed) in STEPS {
            let (_folder, sink) = crash(rule, step, renamed);
            let repeated = sink.write(&token(2), Some(&operation("one")), "target", b"new").unwrap();
            assert_eq!(repeated.name(), if renamed { "replay" } else { "written" }, "{rule:?} {step:?}");
            let again = sink.write(&token(2), Some(&operation("one")), "target", b"new").unwrap();
            assert_eq!(again.name(), "replay", "{rule:?} {step:?}");
            assert_eq!(sink.read("target").unwrap().as_deref(), Some(&b"new"[..]));
        }
    }
}

#[test]
fn after_a_crash_at_any_step_the_record_says_what_the_content_says() {
    for rule in [Rule::Sealed, Rule::HighWater] {
        for (step, renamed) in STEPS {
            let (_folder, sink) = crash(rule, step, renamed);
            let found = sink.lookup(&token(2), &operation("one").id).unwrap().unwrap();
            assert_eq!(matches!(found, Lookup::Found(_)), renamed, "{rule:?} {step:?}: {found:?}");
            // What was found absent never turns up later.
            assert_eq!(sink.write(&token(2), None, "other", b"x").unwrap(), Verdict::Written);
            assert_eq!(sink.lookup(&token(2), &operation("one").id).unwrap().unwrap(), found, "{rule:?} {step:?}");
        }
    }
}

#[test]
fn a_raised_fence_goes_back_with_the_effect_that_did_not_happen() {
    for (step, renamed) in STEPS {
        let (_folder, sink) = crash(Rule::HighWater, step, renamed);
        let row = answered(sink.describe(&token(1).resource)).unwrap().row.unwrap();
        assert_eq!(row.epoch, token(if renamed { 2 } else { 1 }).epoch, "{step:?}");
        let older = sink.write(&token(1), None, "target", b"older").unwrap();
        assert_eq!(older.name(), if renamed { "stale" } else { "written" }, "{step:?}");
    }
}

#[test]
fn what_a_crash_left_is_settled_by_whoever_comes_next() {
    for (step, renamed) in STEPS {
        for next in ["seal", "forget", "write"] {
            let (_folder, sink) = crash(Rule::Sealed, step, renamed);
            match next {
                "seal" => grant(&sink, &token(3)),
                "forget" => {
                    assert!(answered(sink.forget(&token(1).resource, token(2).epoch)).is_ok());
                    grant(&sink, &token(3));
                }
                _ => assert_eq!(sink.write(&token(2), None, "other", b"x").unwrap(), Verdict::Written),
            }
            let holder = token(if next == "write" { 2 } else { 3 });
            let found = sink.lookup(&holder, &operation("one").id).unwrap().unwrap();
            assert_eq!(matches!(found, Lookup::Found(_)), renamed, "{step:?}, then {next}");
        }
    }
}

#[test]
fn a_crash_while_settling_is_settled_as_well() {
    for (step, renamed) in STEPS {
        let (_folder, sink) = crash(Rule::HighWater, step, renamed);
        // The next one ends while it keeps the promise; only a promise that is kept has that step.
        let next = ending_at(&sink, Step::Recorded).lookup(&token(2), &operation("one").id);
        assert_eq!(next.is_err(), renamed, "{step:?}: {next:?}");
        let repeated = sink.write(&token(2), Some(&operation("one")), "target", b"new").unwrap();
        assert_eq!(repeated.name(), if renamed { "replay" } else { "written" }, "{step:?}");
    }
}

#[test]
fn the_same_operation_on_another_target_is_a_conflict() {
    let (_folder, sink) = create(Rule::Sealed);
    grant(&sink, &token(1));
    assert_eq!(sink.write(&token(1), Some(&operation("one")), "target", b"a").unwrap(), Verdict::Written);
    assert_eq!(sink.write(&token(1), Some(&operation("one")), "other", b"a").unwrap().name(), "conflict");
    assert_eq!(sink.read("other").unwrap(), None);
}

#[test]
fn a_full_disk_is_said_to_be_full() {
    let error = durable::io_error(&Folder::new(Path::new("place")), "writing", &std::io::ErrorKind::StorageFull.into());
    assert!(matches!(error, SinkError::Full { .. }) && error.to_string().contains("Make room"), "{error}");
}
