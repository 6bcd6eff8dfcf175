//! Effects as plain files of one folder.
//!
//! # What is not guaranteed
//!
//! * **V4 does not hold.** A process that is stopped inside a write holds the resource's file lock until it goes on or
//!   ends. A seal waits for it, at most [`FileSink::with_wait`], and then answers
//!   [`SinkError::Busy`].
//! * Only writers that go through a [`FileSink`] are refused. Any other program that may write to the folder can change a
//!   target.
//! * A target belongs to one resource: let two resources write the same target, and each fence lets its own holder in.
//! * A folder that was copied back is the same folder as before: call [`Sink::reopen`] after every
//!   restore, before any worker starts.
//! * One write changes one target. Two targets never change together.
//! * Local file systems only, and only those on which a rename is one step also in a power failure (ext4, XFS, Btrfs).
//!
//! # The order of a write, and what a crash leaves
//!
//! All of it happens under the resource's file lock, which the system lets go when the process ends.
//!
//! | step | | after a crash just behind it |
//! |---|---|---|
//! | 1 | the token is checked, then the operation's record | nothing has changed |
//! | 2 | the content is written aside and made durable | old content, nothing recorded |
//! | 3 | the promise is made durable in the fence's file: the raised row and the operation's record, *if* step 4 happens | old content; the next turn finds the content still aside, and takes the promise back |
//! | 4 | **the rename**, and both folders made durable | new content; the next turn finds nothing aside, and keeps the promise |
//! | 5 | the operation's record is made durable | as after 4; keeping a promise twice changes nothing |
//! | 6 | the fence's file is made durable without the promise | all of it |
//!
//! So fence, content and record stand or fall with one rename, and a repeat of the operation answers `Replay` or
//! `Written`. Step 3 and what follows from it are left out when there is neither an operation nor a row to raise.

mod durable;
mod folder;
mod hold;
mod record;
mod turn;

use crate::{Answer, ApplyError, Description, Lookup, Rows, Sink, SinkError};
use folder::Folder;
use hold::{Hold, Mode};
use record::{Fence, Namespace};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tenure_core::fence::{Forgetting, Rule, Sealing};
use tenure_core::{Digest, Epoch, Generation, OperationId, Outcome, ResourceName, SinkId, Token, Verdict};
use turn::Turn;

/// How long a call waits for another process, unless said otherwise.
const WAIT: Duration = Duration::from_secs(5);

/// A folder whose plain files are the effects. Cheap to clone. Its own records are in the folder `.tenure` inside.
#[derive(Clone, Debug)]
pub struct FileSink(Arc<Place>);

#[derive(Clone, Debug)]
struct Place {
    folder: Folder,
    id: SinkId,
    rule: Rule,
    wait: Duration,
    #[cfg(test)]
    stop_at: Option<Step>,
}

/// An operation that a write carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which intent it is; the same across epochs.
    pub id: OperationId,
    /// What a replay will be answered.
    pub outcome: Outcome,
}

/// The steps between which a process may end. The tests end it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Aside,
    Promised,
    Renamed,
    Recorded,
}

impl FileSink {
    /// Makes a folder a sink, and creates it where it is missing. A folder that is a sink already stays as it is.
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError`] when the folder is a sink of another version or rule, or cannot be written.
    pub fn create(folder: impl AsRef<Path>, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        let place = Place::new(folder.as_ref(), id, rule);
        place.check_rule()?;
        place.folder.create()?;
        let _held = Hold::wait(&place.folder, &place.folder.guard(), Mode::Alone, &mut place.wait.clone())?;
        if place.folder.namespace().try_exists().unwrap_or(false) {
            place.namespace()?;
        } else {
            Namespace::new(rule, identity(&place.folder)?).save(&place.folder)?;
        }
        Ok(Self(Arc::new(place)))
    }

    /// Opens a folder that is a sink.
    ///
    /// Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError`]; a folder that is not there, or is no sink, is one, and is left as it is.
    pub fn open(folder: impl AsRef<Path>, id: SinkId, rule: Rule) -> Result<Self, SinkError> {
        let place = Place::new(folder.as_ref(), id, rule);
        place.namespace()?;
        Ok(Self(Arc::new(place)))
    }

    /// Takes the folder and looks at nothing: each call finds out whether it is a sink.
    pub(crate) fn later(folder: impl AsRef<Path>, id: SinkId, rule: Rule) -> Self {
        Self(Arc::new(Place::new(folder.as_ref(), id, rule)))
    }

    /// The same sink with another bound on waiting for another process (5 seconds unless said otherwise).
    #[must_use]
    pub fn with_wait(self, wait: Duration) -> Self {
        Self(Arc::new(Place { wait, ..(*self.0).clone() }))
    }

    /// Checks the token and replaces the whole content of a target, at most once per resource and operation.
    ///
    /// A target that was there keeps its permissions. Blocks; call it outside async code.
    ///
    /// # Errors
    /// [`SinkError`]: the target has its old or its new content, never a part. Repeat the same call: with an operation it
    /// answers `Replay` when the first one stood.
    pub fn write(
        &self,
        token: &Token,
        operation: Option<&Operation>,
        name: &str,
        content: &[u8],
    ) -> Result<Verdict, SinkError> {
        let written = self.apply(token, operation, name, &digest(content), |file| file.write_all(content));
        written.map_err(|error| match error {
            ApplyError::Sink(error) => error,
            ApplyError::Effect(error) => durable::io_error(&self.0.folder, "writing a target aside", &error),
        })
    }

    /// The same for content that is made while it is written. The effect gets an empty file, runs only for
    /// [`Verdict::Written`], and every seal of the resource waits for it: prepare slow things before.
    ///
    /// `digest` is of what the operation is to write: the same operation with another one, or on another target, is a
    /// conflict.
    ///
    /// # Errors
    /// [`ApplyError`], as [`FileSink::write`]. When the effect fails, nothing has changed.
    pub fn apply<E>(
        &self,
        token: &Token,
        operation: Option<&Operation>,
        name: &str,
        digest: &Digest,
        effect: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<Verdict, ApplyError<E>> {
        let write = turn::Write { operation, target: self.0.folder.target(name)?, digest: on_target(name, digest) };
        Turn::begin(&self.0, &token.resource)?.write(token, &write, effect)
    }

    /// Where a target is, whether or not it is there already.
    ///
    /// # Errors
    /// [`SinkError::BadName`] when the name is no plain file name; its message says what to change.
    pub fn path_of(&self, name: &str) -> Result<PathBuf, SinkError> {
        self.0.folder.target(name)
    }

    /// The content of a target; `None` when there is no such file. Never a part of a write.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SinkError> {
        self.0.namespace()?;
        durable::read(&self.0.folder, &self.0.folder.target(name)?)
    }

    /// Looks for the effect of an operation, for a token that is admitted. The inner `Err` is the verdict that refuses
    /// the token: only the holder may ask, because only for the holder is an absence final.
    ///
    /// # Errors
    /// [`SinkError`]: nothing was found out.
    pub fn lookup(&self, token: &Token, operation: &OperationId) -> Result<Result<Lookup, Verdict>, SinkError> {
        Turn::begin(&self.0, &token.resource)?.lookup(token, operation)
    }

    fn answer<'a, T: Send + 'static>(
        &self,
        work: impl FnOnce(&Place) -> Result<T, SinkError> + Send + 'static,
    ) -> Answer<'a, Result<T, SinkError>> {
        let place = Arc::clone(&self.0);
        Box::pin(blocking::unblock(move || work(&place)))
    }
}

impl Sink for FileSink {
    fn id(&self) -> &SinkId {
        &self.0.id
    }

    fn rule(&self) -> Rule {
        self.0.rule
    }

    fn describe<'a>(&'a self, resource: &'a ResourceName) -> Answer<'a, Result<Description, SinkError>> {
        let resource = resource.clone();
        self.answer(move |place| place.describe(&resource))
    }

    fn seal<'a>(
        &'a self,
        token: &'a Token,
        generation: &'a Generation,
        enrolled: &'a BTreeSet<SinkId>,
    ) -> Answer<'a, Result<Sealing, SinkError>> {
        let (token, generation, enrolled) = (token.clone(), generation.clone(), enrolled.clone());
        self.answer(move |place| {
            if place.rule == Rule::HighWater {
                return Err(SinkError::NeverSealed { place: place.folder.to_string() });
            }
            Turn::begin(place, &token.resource)?.seal(&token, &generation, &enrolled)
        })
    }

    fn forget<'a>(&'a self, resource: &'a ResourceName, cut: Epoch) -> Answer<'a, Result<Forgetting, SinkError>> {
        let resource = resource.clone();
        self.answer(move |place| turn::forget(place, &resource, cut))
    }

    fn rows<'a>(&'a self, after: Option<&'a ResourceName>, limit: usize) -> Answer<'a, Result<Rows, SinkError>> {
        let after = after.cloned();
        self.answer(move |place| place.rows(after.as_ref(), limit))
    }

    fn reopen(&self) -> Answer<'_, Result<Generation, SinkError>> {
        self.answer(Place::reopen)
    }
}

impl Place {
    fn new(folder: &Path, id: SinkId, rule: Rule) -> Self {
        Self {
            folder: Folder::new(folder),
            id,
            rule,
            wait: WAIT,
            #[cfg(test)]
            stop_at: None,
        }
    }

    /// No authority is in a folder of files, which [`Rule::Held`] would read.
    fn check_rule(&self) -> Result<(), SinkError> {
        if self.rule != Rule::Held {
            return Ok(());
        }
        let why = "files have no authority beside them that one step could read: take the rule `sealed`".to_owned();
        Err(SinkError::NoAuthority { place: self.folder.to_string(), why })
    }

    fn namespace(&self) -> Result<Namespace, SinkError> {
        self.check_rule()?;
        Namespace::load(&self.folder, self.rule)
    }

    fn describe(&self, resource: &ResourceName) -> Result<Description, SinkError> {
        let namespace = self.namespace()?;
        if !self.folder.resource(resource).is_there() {
            let (generation, floor) = (namespace.generation(&self.folder)?, namespace.floor(&self.folder)?);
            return Ok(Description { generation, row: None, floor });
        }
        Turn::begin(self, resource)?.describe()
    }

    /// In the order of the digests of the names, which name the folders.
    fn rows(&self, after: Option<&ResourceName>, limit: usize) -> Result<Rows, SinkError> {
        let floor = self.namespace()?.floor(&self.folder)?;
        let mut rows = Vec::new();
        for records in self.folder.resources(after)? {
            if rows.len() == limit {
                break;
            }
            // Without a fence nothing was ever registered there, or it was forgotten.
            let Some(resource) = Fence::resource(&self.folder, &records)? else { continue };
            if let Some(row) = Turn::begin(self, &resource)?.describe()?.row {
                rows.push((resource, row));
            }
        }
        Ok(Rows { rows, floor })
    }

    fn reopen(&self) -> Result<Generation, SinkError> {
        self.namespace()?;
        let _held = Hold::wait(&self.folder, &self.folder.guard(), Mode::Alone, &mut self.wait.clone())?;
        let namespace = self.namespace()?.reopened();
        namespace.save(&self.folder)?;
        namespace.generation(&self.folder)
    }

    /// Ends the process here, as far as the folder can tell, when a test asks for it.
    #[cfg_attr(not(test), expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the tests' hook"))]
    fn passed(&self, step: Step) -> Result<(), SinkError> {
        #[cfg(test)]
        if self.stop_at == Some(step) {
            return Err(SinkError::Failed { place: self.folder.to_string(), doing: "ending", why: "a test".into() });
        }
        let _ = step;
        Ok(())
    }
}

fn digest(content: &[u8]) -> Digest {
    Digest(Sha256::digest(content).into())
}

/// The same content for another target is another content.
fn on_target(name: &str, digest: &Digest) -> Digest {
    Digest(Sha256::new().chain_update(digest.0).chain_update(name).finalize().into())
}

/// 128 random bits, in hexadecimal digits.
fn identity(folder: &Folder) -> Result<String, SinkError> {
    let mut bits = [0; 16];
    #[expect(clippy::disallowed_methods, reason = "a sink does not know the authority's source of random bits")]
    getrandom::fill(&mut bits).map_err(|error| SinkError::Failed {
        place: folder.to_string(),
        doing: "drawing an identity",
        why: error.to_string(),
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}

#[cfg(test)]
mod tests;
