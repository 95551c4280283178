//! A drive in its pool: the drive, its identity, its state and its counters.

use crate::drive::{Drive, DriveError, DriveErrorKind, Geometry};
use crate::label::MemberEntry;
use crate::pool::{MemberInfo, MemberState};
use crate::world::World;
use base::{Buf, DriveOffset, Slice, Uuid};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Operations since the pool was opened.
#[derive(Debug, Default)]
struct Counters {
    reads: Cell<u64>,
    writes: Cell<u64>,
    flushes: Cell<u64>,
    errors: Cell<u64>,
}

/// A drive of a pool.
pub struct Member<W: World> {
    /// None when it had failed before the pool was opened and is not there, or was let
    /// go since.
    drive: RefCell<Option<Rc<W::Drive>>>,
    pub name: String,
    pub uuid: Uuid,
    /// Changes when a spare takes the place of another.
    group: Cell<u16>,
    place: Cell<u16>,
    /// Whether it carries a copy of the metadata, of the logs.
    metadata: Cell<bool>,
    log: Cell<bool>,
    pub capacity_bytes: u64,
    state: Cell<MemberState>,
    /// While it is being rebuilt: the zones whose content on it is whole.
    rebuilt: RefCell<BTreeSet<u32>>,
    /// A spare that is to become part of a new group.
    reserved: Cell<bool>,
    counters: Counters,
    outstanding: Cell<u32>,
}

fn bump(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl<W: World> Member<W> {
    /// A drive with its entry in the member table.
    pub fn new(drive: W::Drive, entry: &MemberEntry) -> Self {
        Self::with(Some(drive), entry)
    }

    /// A drive that is not there.
    pub fn absent(entry: &MemberEntry) -> Self {
        Self::with(None, entry)
    }

    fn with(drive: Option<W::Drive>, entry: &MemberEntry) -> Self {
        Member {
            drive: RefCell::new(drive.map(Rc::new)),
            name: entry.name.clone(),
            uuid: entry.uuid,
            group: Cell::new(entry.group),
            place: Cell::new(entry.place),
            metadata: Cell::new(entry.metadata),
            log: Cell::new(entry.log),
            capacity_bytes: entry.capacity_bytes,
            state: Cell::new(entry.state),
            rebuilt: RefCell::default(),
            reserved: Cell::new(false),
            counters: Counters::default(),
            outstanding: Cell::new(0),
        }
    }

    /// Its group, and its place there.
    pub fn group(&self) -> u16 {
        self.group.get()
    }

    /// Its place in its group.
    pub fn place(&self) -> u16 {
        self.place.get()
    }

    /// Moves it to another place.
    pub fn set_place(&self, group: u16, place: u16) {
        self.group.set(group);
        self.place.set(place);
    }

    /// Whether it carries a copy of the metadata.
    pub fn metadata(&self) -> bool {
        self.metadata.get()
    }

    /// Says whether it carries a copy of the metadata.
    pub fn set_metadata(&self, carries: bool) {
        self.metadata.set(carries);
    }

    /// Whether it carries a copy of the logs.
    pub fn log(&self) -> bool {
        self.log.get()
    }

    /// Says whether it carries a copy of the logs.
    pub fn set_log(&self, carries: bool) {
        self.log.set(carries);
    }

    /// Whether a spare is kept for a new group.
    pub fn is_reserved(&self) -> bool {
        self.reserved.get()
    }

    /// Keeps a spare for a new group.
    pub fn reserve(&self) {
        self.reserved.set(true);
    }

    /// Its entry in the member table.
    pub fn entry(&self) -> MemberEntry {
        MemberEntry {
            uuid: self.uuid,
            group: self.group(),
            place: self.place(),
            state: self.state.get(),
            metadata: self.metadata(),
            log: self.log(),
            capacity_bytes: self.capacity_bytes,
            name: self.name.clone(),
        }
    }

    /// Whether it holds all that it should: in use, and not being rebuilt.
    pub fn is_whole(&self) -> bool {
        matches!(
            self.state.get(),
            MemberState::Healthy | MemberState::Suspect
        )
    }

    /// Whether others are asked first.
    pub fn is_suspect(&self) -> bool {
        self.state.get() == MemberState::Suspect
    }

    /// Whether writes go to it.
    pub fn is_writable(&self) -> bool {
        matches!(
            self.state.get(),
            MemberState::Healthy | MemberState::Suspect | MemberState::Rebuilding
        )
    }

    /// Whether it holds what it should in `zone`.
    pub fn is_readable(&self, zone: u32) -> bool {
        match self.state.get() {
            MemberState::Healthy | MemberState::Suspect => true,
            MemberState::Rebuilding => self.rebuilt.borrow().contains(&zone),
            MemberState::Failed | MemberState::Spare => false,
        }
    }

    /// Its state in the pool.
    pub fn state(&self) -> MemberState {
        self.state.get()
    }

    /// Changes its state.
    pub fn set_state(&self, state: MemberState) {
        self.state.set(state);
    }

    /// The zones whose content on it is whole, while it is being rebuilt.
    pub fn rebuilt(&self) -> &RefCell<BTreeSet<u32>> {
        &self.rebuilt
    }

    /// Closes the drive, once what is in flight has ended: another may be opened in its
    /// place.
    ///
    /// # Panics
    /// When it is in use.
    pub fn let_go(&self) {
        assert!(!self.is_writable(), "drive '{}' is in use", self.name);
        self.drive.take();
    }

    /// What the drive is; `None` when it is not there.
    pub fn geometry(&self) -> Option<Geometry> {
        self.drive.borrow().as_ref().map(|drive| drive.geometry())
    }

    /// Operations in flight: a copy with fewer answers sooner.
    pub fn outstanding(&self) -> u32 {
        self.outstanding.get()
    }

    /// Reads into `buf`.
    ///
    /// # Errors
    /// What the drive said; the drive stays in use.
    pub async fn read(&self, at: DriveOffset, buf: Buf) -> Result<Buf, DriveError> {
        bump(&self.counters.reads);
        let drive = self.drive("read", at, buf.len() as u64)?;
        let (buf, outcome) = self.counted(drive.read(at, buf), |(_, r)| r.is_err()).await;
        outcome.map(|()| buf)
    }

    /// Writes durably.
    ///
    /// Each write is made durable by itself. Sharing flushes between writes here
    /// was slower: they then wait for each other in lockstep, while kernel and
    /// drive merge what is in flight together anyway (docs/PERFORMANCE.md).
    ///
    /// # Errors
    /// What the drive said: what was written may be lost or torn.
    pub async fn write_durably(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        bump(&self.counters.writes);
        bump(&self.counters.flushes);
        let drive = self.drive("write", at, data.len() as u64)?;
        self.counted(drive.write_durable(at, data), Result::is_err)
            .await
    }

    /// Writes without making it durable; [`Member::flush`] does.
    ///
    /// # Errors
    /// What the drive said: what was written may be lost or torn.
    pub async fn write(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        bump(&self.counters.writes);
        let drive = self.drive("write", at, data.len() as u64)?;
        self.counted(drive.write(at, data), Result::is_err).await
    }

    /// Makes what an earlier owner may have left in the drive's cache durable.
    ///
    /// # Errors
    /// What the drive said.
    pub async fn flush(&self) -> Result<(), DriveError> {
        bump(&self.counters.flushes);
        let drive = self.drive("flush", DriveOffset(0), 0)?;
        self.counted(drive.flush(), Result::is_err).await
    }

    fn drive(
        &self,
        operation: &'static str,
        at: DriveOffset,
        len_bytes: u64,
    ) -> Result<Rc<W::Drive>, DriveError> {
        self.drive.borrow().clone().ok_or_else(|| DriveError {
            kind: DriveErrorKind::Gone,
            operation,
            at,
            len_bytes,
            context: format!("drive '{}' is not there", self.name),
        })
    }

    async fn counted<T>(
        &self,
        operation: impl Future<Output = T>,
        failed: impl FnOnce(&T) -> bool,
    ) -> T {
        self.outstanding.set(self.outstanding.get() + 1);
        let outcome = operation.await;
        self.outstanding.set(self.outstanding.get() - 1);
        if failed(&outcome) {
            bump(&self.counters.errors);
        }
        outcome
    }

    /// The drive at a glance.
    pub fn info(&self) -> MemberInfo {
        MemberInfo {
            name: self.name.clone(),
            uuid: self.uuid,
            group: self.group(),
            place: self.place(),
            state: self.state.get(),
            capacity_bytes: self.capacity_bytes,
            reads: self.counters.reads.get(),
            writes: self.counters.writes.get(),
            flushes: self.counters.flushes.get(),
            errors: self.counters.errors.get(),
        }
    }
}
