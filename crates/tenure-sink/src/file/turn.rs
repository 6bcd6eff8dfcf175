//! One turn at a resource: everything from taking its file lock to letting it go.

use super::folder::Records;
use super::hold::{Hold, Mode};
use super::record::{Effect, Fence, Promise};
use super::{Operation, Place, Step, durable};
use crate::{ApplyError, Description, Found, Lookup, SinkError};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tenure_core::fence::{Admission, FenceRow, Forgetting, Sealing, admit, forget as judge_forget, seal as judge_seal};
use tenure_core::{Digest, Epoch, Generation, OperationId, Replayed, ResourceName, SinkId, Token, Verdict};

/// What a turn is to write, and where.
pub(super) struct Write<'a> {
    pub(super) operation: Option<&'a Operation>,
    pub(super) target: PathBuf,
    pub(super) digest: Digest,
}

/// Nobody else is at the resource while this lives, and nobody changes the sink as a whole.
pub(super) struct Turn<'a> {
    place: &'a Place,
    records: Records,
    generation: Generation,
    floor: Option<Epoch>,
    fence: Fence,
    row: Option<FenceRow>,
    _held: (Hold, Hold),
}

impl<'a> Turn<'a> {
    /// Waits for the turn, and finishes what a turn that ended early has left.
    pub(super) fn begin(place: &'a Place, resource: &ResourceName) -> Result<Self, SinkError> {
        let folder = &place.folder;
        // A sink that is not there is an error, not a reason to create something.
        place.namespace()?;
        let mut left = place.wait;
        let shared = Hold::wait(folder, &folder.guard(), Mode::Shared, &mut left)?;
        let namespace = place.namespace()?;
        let records = folder.resource(resource);
        records.create(folder)?;
        let alone = Hold::wait(folder, &records.guard(), Mode::Alone, &mut left)?;
        let fence = settled(place, &records, Fence::load(folder, &records, resource)?)?;
        Ok(Self {
            place,
            generation: namespace.generation(folder)?,
            floor: namespace.floor(folder)?,
            row: fence.row(&records)?,
            records,
            fence,
            _held: (shared, alone),
        })
    }

    pub(super) fn describe(self) -> Result<Description, SinkError> {
        Ok(Description { generation: self.generation, row: self.row, floor: self.floor })
    }

    pub(super) fn seal(
        mut self,
        token: &Token,
        bound: &Generation,
        enrolled: &BTreeSet<SinkId>,
    ) -> Result<Sealing, SinkError> {
        let sealing = judge_seal(self.row.as_ref(), self.floor, &self.generation, token, bound, enrolled);
        if let Sealing::Seal(row) = &sealing {
            self.register(row)?;
        }
        Ok(sealing)
    }

    pub(super) fn lookup(
        mut self,
        token: &Token,
        operation: &OperationId,
    ) -> Result<Result<Lookup, Verdict>, SinkError> {
        match self.admit(token) {
            Admission::Refuse(verdict) => return Ok(Err(verdict)),
            Admission::Admit => {}
            Admission::Raise(row) => self.register(&row)?,
        }
        let found = Effect::find(&self.place.folder, &self.records, operation)?;
        Ok(Ok(found.map_or(Lookup::Absent, Lookup::Found)))
    }

    /// The order of the steps is the one in the documentation of the module.
    pub(super) fn write<E>(
        mut self,
        token: &Token,
        write: &Write<'_>,
        effect: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<Verdict, ApplyError<E>> {
        let raise = match self.admit(token) {
            Admission::Refuse(verdict) => return Ok(verdict),
            Admission::Admit => None,
            Admission::Raise(row) => Some(row),
        };
        let folder = &self.place.folder;
        if let Some(operation) = write.operation
            && let Some(found) = Effect::find(folder, &self.records, &operation.id)?
        {
            if let Some(row) = &raise {
                self.register(row)?;
            }
            return Ok(if found.digest == write.digest {
                Verdict::Replay(Replayed { epoch: found.epoch, outcome: found.outcome })
            } else {
                Verdict::Conflict { current: found.epoch }
            });
        }
        self.put_aside(&write.target, effect)?;
        self.place.passed(Step::Aside)?;
        if write.operation.is_some() || raise.is_some() {
            let seal_no = raise.as_ref().or(self.row.as_ref()).map_or(0, |row| row.seal_no);
            let effect = write.operation.map(|operation| {
                let found = Found { epoch: token.epoch, digest: write.digest, outcome: operation.outcome.clone() };
                Effect::new(&token.resource, &operation.id, seal_no, &found)
            });
            self.fence.promise = Some(Promise::new(raise.as_ref(), effect));
            self.fence.save(folder, &self.records)?;
        }
        self.place.passed(Step::Promised)?;
        self.rename(&write.target)?;
        self.place.passed(Step::Renamed)?;
        settled(self.place, &self.records, self.fence)?;
        Ok(Verdict::Written)
    }

    fn admit(&self, token: &Token) -> Admission {
        admit(self.place.rule, self.row.as_ref(), self.floor, &self.generation, token)
    }

    fn register(&mut self, row: &FenceRow) -> Result<(), SinkError> {
        self.fence.set_row(row);
        self.fence.save(&self.place.folder, &self.records)
    }

    fn put_aside<E>(
        &self,
        target: &Path,
        effect: impl FnOnce(&mut File) -> Result<(), E>,
    ) -> Result<(), ApplyError<E>> {
        let (folder, aside) = (&self.place.folder, self.records.aside());
        let fail = |doing| move |error: io::Error| durable::io_error(folder, doing, &error);
        // One that a crash has left may have any permissions.
        durable::remove(folder, &aside)?;
        let mut file = File::create_new(&aside).map_err(fail("writing a target aside"))?;
        effect(&mut file).map_err(ApplyError::Effect)?;
        if let Ok(metadata) = fs::metadata(target)
            && metadata.is_file()
        {
            file.set_permissions(metadata.permissions()).map_err(fail("keeping the permissions of a target"))?;
        }
        file.sync_all().map_err(fail("making a target durable"))?;
        Ok(durable::sync(folder, self.records.path())?)
    }

    fn rename(&self, target: &Path) -> Result<(), SinkError> {
        let folder = &self.place.folder;
        if let Err(error) = fs::rename(self.records.aside(), target) {
            // The content is still aside, so that this takes the promise back. If it fails too, the next turn does it.
            let _ = settled(self.place, &self.records, self.fence.clone());
            return Err(durable::io_error(folder, "replacing a target", &error));
        }
        durable::sync(folder, folder.path())?;
        durable::sync(folder, self.records.path())
    }
}

/// Keeps or takes back the promise of a turn that has renamed, or has ended before it could.
fn settled(place: &Place, records: &Records, mut fence: Fence) -> Result<Fence, SinkError> {
    let Some(promise) = fence.promise.take() else { return Ok(fence) };
    let folder = &place.folder;
    let aside = records.aside();
    let renamed = !aside.try_exists().map_err(|error| durable::io_error(folder, "looking for a file", &error))?;
    if renamed {
        // The turn may have ended between the rename and this.
        durable::sync(folder, folder.path())?;
        durable::sync(folder, records.path())?;
        if let Some(effect) = &promise.operation {
            effect.save(folder, records)?;
        }
        place.passed(Step::Recorded)?;
        fence.keep(promise);
    }
    fence.save(folder, records)?;
    Ok(fence)
}

/// Forgets a resource. It needs the sink alone, since the floor is every resource's.
pub(super) fn forget(place: &Place, resource: &ResourceName, cut: Epoch) -> Result<Forgetting, SinkError> {
    let folder = &place.folder;
    place.namespace()?;
    let _held = Hold::wait(folder, &folder.guard(), Mode::Alone, &mut place.wait.clone())?;
    let namespace = place.namespace()?;
    let records = folder.resource(resource);
    let fence = if records.is_there() {
        settled(place, &records, Fence::load(folder, &records, resource)?)?.row(&records)?
    } else {
        None
    };
    let forgetting = judge_forget(fence.as_ref(), namespace.floor(folder)?, cut);
    if let Forgetting::Forget { floor } = forgetting {
        // The floor first: a crash in between leaves the row, which refuses as much as the floor does, or more.
        namespace.with_floor(floor).save(folder)?;
        if records.is_there() {
            durable::remove(folder, &records.fence())?;
        }
    }
    Ok(forgetting)
}
