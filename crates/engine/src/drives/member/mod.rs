//! A drive in its pool: the drive, its identity, its state and its counters.

mod reads;

use super::SPARE_GROUP;
use super::overdue::{Class, Command, Newcomer, Overdue};
use super::succession::Successor;
use super::vitals::{Kind, NOT_YET, Outcome, Patience, Vitals, bump};
use crate::drive::{Drive, DriveError, DriveErrorKind, Geometry};
use crate::group_commit::GroupCommit;
use crate::label::MemberEntry;
use crate::label::MemberState;
use crate::lane::View;
use crate::world::World;
use base::{DriveOffset, Slice, Time, Uuid};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

/// A drive as the pool sees it.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    /// The name the site gave it.
    pub name: String,
    /// Identity from its label.
    pub uuid: Uuid,
    /// Which group, which place in it.
    pub group: u16,
    /// Which place in the group.
    pub place: u16,
    /// In use or not.
    pub state: MemberState,
    /// Name of the drive that it is copied to.
    pub successor: Option<String>,
    /// Why it is suspect, or can't stand in, where that was found since the pool was opened.
    pub trouble: Option<String>,
    /// Capacity of the drive.
    pub capacity_bytes: u64,
    /// Its serial number, where it has one and is there.
    pub serial: Option<String>,
    /// Operations and bytes since the pool was opened.
    pub reads: u64,
    /// Operations since the pool was opened.
    pub writes: u64,
    /// Flushes since the pool was opened.
    pub flushes: u64,
    /// Failed operations since the pool was opened.
    pub errors: u64,
    /// Blocks of it that were put right since the pool was opened.
    pub mends: u64,
    /// Mean latency of reads, of late.
    pub read_latency: Duration,
    /// Mean latency of writes and flushes, of late.
    pub write_latency: Duration,
}

/// A drive of a pool.
pub struct Member<W: World> {
    /// None when it had failed before the pool was opened and is not there, or was let
    /// go since.
    drive: RefCell<Option<Rc<View<W::Drive>>>>,
    world: W,
    pub name: String,
    pub uuid: Uuid,
    /// Changes when a spare takes the place of another.
    group: Cell<u16>,
    place: Cell<u16>,
    /// Whether it carries a copy of the metadata, of the logs.
    metadata: Cell<bool>,
    /// Whether it gets a copy of the metadata, which is not whole yet.
    takes_metadata: Cell<bool>,
    log: Cell<bool>,
    /// Whether it was taken out of use by command.
    ordered_out: Cell<bool>,
    pub capacity_bytes: u64,
    state: Cell<MemberState>,
    /// While it is being rebuilt: the zones whose content on it is whole.
    rebuilt: RefCell<BTreeSet<u32>>,
    /// A spare that is to become part of a new group.
    reserved: Cell<bool>,
    /// The drive that it is copied to.
    successor: RefCell<Option<Successor<W>>>,
    /// A spare that another drive is copied to, whose group and place these are.
    succeeds: Cell<bool>,
    vitals: Vitals,
    overdue: Overdue,
    flushing: GroupCommit<Result<(), DriveError>>,
    /// Since when it is suspect, as was noted.
    suspect_since: Cell<Option<Time>>,
    /// When it was last to be copied without a command.
    copied_at: Cell<Option<Time>>,
    /// The last finding against it, until it is healthy again.
    trouble: RefCell<Option<String>>,
    /// When a read last failed for another reason than damage.
    silent_at: Cell<Option<Time>>,
    damaged_at: Cell<Option<Time>>,
    /// When damage was believed last.
    believed_at: Cell<Option<Time>>,
}

impl<W: World> Member<W> {
    /// A drive, as the pool's lane sees it, with its entry in the member table.
    pub fn new(world: &W, drive: View<W::Drive>, entry: &MemberEntry) -> Self {
        Self::with(world, Some(drive), entry)
    }

    /// A drive that is not there.
    pub fn absent(world: &W, entry: &MemberEntry) -> Self {
        Self::with(world, None, entry)
    }

    fn with(world: &W, drive: Option<View<W::Drive>>, entry: &MemberEntry) -> Self {
        let (group, place) = entry.succeeds.unwrap_or((entry.group, entry.place));
        Member {
            drive: RefCell::new(drive.map(Rc::new)),
            world: world.clone(),
            name: entry.name.clone(),
            uuid: entry.uuid,
            group: Cell::new(group),
            place: Cell::new(place),
            metadata: Cell::new(entry.metadata),
            takes_metadata: Cell::new(false),
            log: Cell::new(entry.log),
            ordered_out: Cell::new(entry.ordered_out),
            capacity_bytes: entry.capacity_bytes,
            state: Cell::new(entry.state),
            rebuilt: RefCell::default(),
            reserved: Cell::new(entry.reserved),
            successor: RefCell::default(),
            succeeds: Cell::new(entry.succeeds.is_some()),
            vitals: Vitals::default(),
            overdue: Overdue::default(),
            flushing: GroupCommit::default(),
            suspect_since: Cell::new(None),
            copied_at: Cell::new(None),
            trouble: RefCell::default(),
            silent_at: Cell::new(None),
            damaged_at: Cell::new(None),
            believed_at: Cell::new(None),
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

    /// Whether it carries a copy of the metadata, a whole one.
    pub fn metadata(&self) -> bool {
        self.metadata.get()
    }

    /// Says whether it carries a whole copy of the metadata.
    pub fn set_metadata(&self, carries: bool) {
        self.takes_metadata.set(false);
        self.metadata.set(carries);
    }

    /// Whether what is written of the metadata goes to it, too.
    pub fn takes_metadata(&self) -> bool {
        self.metadata.get() || self.takes_metadata.get()
    }

    /// It takes what is written of the metadata from now on. What was there before is to
    /// follow, and then [`Member::set_metadata`]: until then nobody counts on its copy.
    pub fn take_metadata(&self) {
        self.takes_metadata.set(true);
        if self
            .world
            .planted("copy of the metadata counts before it is whole")
        {
            self.metadata.set(true);
        }
    }

    /// Whether it carries a copy of the logs.
    pub fn log(&self) -> bool {
        self.log.get()
    }

    /// Says whether it carries a copy of the logs.
    pub fn set_log(&self, carries: bool) {
        self.log.set(carries);
    }

    /// Whether it was taken out of use by command.
    pub fn is_ordered_out(&self) -> bool {
        self.ordered_out.get()
    }

    /// It is taken out of use by command.
    pub fn order_out(&self) {
        self.ordered_out.set(true);
        self.set_state(MemberState::Failed);
    }

    /// Whether a spare is kept for a new group.
    pub fn is_reserved(&self) -> bool {
        self.reserved.get()
    }

    /// Keeps a spare for a new group, or no longer.
    pub fn set_reserved(&self, reserved: bool) {
        self.reserved.set(reserved);
    }

    /// The drive that it is copied to.
    pub fn successor(&self) -> Option<Rc<Member<W>>> {
        let successor = self.successor.borrow();
        successor.as_ref().map(|beside| Rc::clone(beside.member()))
    }

    /// Has another drive get what is written to this one, too, or no longer.
    pub(super) fn set_successor(&self, successor: Option<Successor<W>>) {
        self.successor.replace(successor);
    }

    /// Whether another drive is copied to this one, a spare.
    pub fn succeeds(&self) -> bool {
        self.succeeds.get()
    }

    /// Has it be the spare that another drive is copied to, or no longer.
    pub(super) fn set_succeeds(&self, succeeds: bool) {
        self.succeeds.set(succeeds);
    }

    /// Its entry in the member table. A drive that another is copied to is a spare there, so a
    /// version that knows nothing of copies takes it for one.
    pub fn entry(&self) -> MemberEntry {
        let standing = (self.group(), self.place());
        let succeeds = self.succeeds().then_some(standing);
        MemberEntry {
            uuid: self.uuid,
            group: succeeds.map_or(standing.0, |_| SPARE_GROUP),
            place: standing.1,
            state: succeeds.map_or(self.state.get(), |_| MemberState::Spare),
            succeeds,
            metadata: self.metadata(),
            log: self.log(),
            ordered_out: self.is_ordered_out(),
            reserved: self.is_reserved(),
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

    /// How long it has been suspect, as far as was looked; nothing when it is not.
    pub fn suspect_for(&self) -> Duration {
        let now = self.world.now();
        let since = self.suspect_since.get().unwrap_or(now);
        self.suspect_since.set(self.is_suspect().then_some(since));
        now.since(since)
    }

    /// Notes that it is to be copied without a command. False when that was so a while ago.
    pub fn note_copied(&self, pause: Duration) -> bool {
        let now = self.world.now();
        let is_soon = self.copied_at.get().is_some_and(|at| now.since(at) < pause);
        if !is_soon {
            self.copied_at.set(Some(now));
        }
        !is_soon
    }

    /// Whether others are asked first: it is suspect, or lets a read wait just now.
    pub fn is_asked_last(&self) -> bool {
        self.is_suspect() || self.vitals.is_late()
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

    /// Whether its trouble counts: a drive in use may have recovered from a bad moment.
    fn is_doubted(&self) -> bool {
        matches!(self.state(), MemberState::Suspect | MemberState::Spare)
    }

    /// Changes its state in memory, not in labels.
    pub fn set_state(&self, state: MemberState) {
        self.state.set(state);
    }

    /// Keeps or takes back the reason for which it is suspect, or may become so.
    pub fn set_trouble(&self, trouble: Option<String>) {
        self.trouble.replace(trouble);
    }

    /// Whether something was found against it, and it is not healthy again.
    pub fn has_trouble(&self) -> bool {
        self.trouble.borrow().is_some()
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

    /// Closes the drive of a pool that was closed: nothing is read or written there any more.
    pub fn release(&self) {
        self.drive.take();
    }

    /// What the drive is; `None` when it is not there.
    pub fn geometry(&self) -> Option<Geometry> {
        self.drive.borrow().as_ref().map(|drive| drive.geometry())
    }

    /// Whether it is there and spins: each command moves its arm.
    pub fn is_rotational(&self) -> bool {
        self.geometry().is_some_and(|drive| drive.rotational)
    }

    /// Its serial number, where it has one and is there.
    pub fn serial(&self) -> Option<String> {
        let drive = self.drive.borrow();
        drive.as_ref()?.serial().map(str::to_owned)
    }

    /// Where it is in its group, and its serial number, for people.
    pub fn whereabouts(&self) -> String {
        let place = format!("place {} of group {}", self.place(), self.group());
        match self.serial() {
            Some(serial) => format!("{place}, serial {serial}"),
            None => place,
        }
    }

    /// Operations in flight: a copy with fewer answers sooner.
    pub fn outstanding(&self) -> u32 {
        self.vitals.outstanding()
    }

    /// Counters and latencies of its operations.
    pub fn vitals(&self) -> &Vitals {
        &self.vitals
    }

    /// Whether a drive in use has not answered a read since then, for another reason than
    /// damage: what it holds may be whole, so no block is given up for want of it.
    pub fn was_silent_since(&self, began: Time) -> bool {
        self.is_writable() && self.silent_at.get().is_some_and(|at| at >= began)
    }

    /// Whether a drive in use has said since then that a block is damaged.
    pub fn was_damaged_since(&self, began: Time) -> bool {
        self.is_writable() && self.damaged_at.get().is_some_and(|at| at >= began)
    }

    /// Damage of this drive was found in look after look.
    pub fn note_believed(&self) {
        self.believed_at.set(Some(self.world.now()));
    }

    /// How long ago that was.
    pub fn believed_since(&self) -> Option<Duration> {
        self.believed_at.get().map(|at| self.world.now().since(at))
    }

    /// Whether the drive is still what it was when it was opened; not counted as an
    /// operation.
    ///
    /// # Errors
    /// It is not.
    pub async fn check(&self) -> Result<(), DriveError> {
        self.drive(("check", DriveOffset(0), 0))?.check().await
    }

    /// Writes durably.
    ///
    /// Each write is made durable by itself. Sharing flushes between writes here
    /// was slower: they then wait for each other in lockstep, while kernel and
    /// drive merge what is in flight together anyway (docs/internals/performance.md).
    ///
    /// # Errors
    /// What the drive said: what was written may be lost or torn.
    pub async fn write_durably(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        match self.successor_that_takes(at) {
            None => self.write_durably_here(at, data).await,
            Some(beside) => {
                let own = self.unless_planted(self.write_durably_here(at, data.clone()));
                let theirs = beside.member().write_durably_here(at, data);
                Box::pin(beside.both(self, own, theirs)).await
            }
        }
    }

    /// Writes durably to a log: other commands make way for it.
    ///
    /// # Errors
    /// As of [`Member::write_durably`].
    pub async fn write_log(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        let write = self.overdue.begin(Class::Log, self.world.now());
        let written = self.write_durably(at, data).await;
        let bug = "others make way for a write of the log that has ended";
        if self.world.planted(bug) {
            std::mem::forget(write);
        }
        written
    }

    /// Waits while a command is overdue, if this is a disk. It says in `held` when that has ended; of a read
    /// also that it waits.
    async fn make_way(
        &self,
        newcomer: Newcomer,
        drive: &View<W::Drive>,
        held: &Cell<Option<Time>>,
    ) {
        if !drive.geometry().rotational || !self.overdue.is_any(newcomer, self.world.now()) {
            return;
        }
        if newcomer == Newcomer::Read {
            held.set(Some(NOT_YET));
        }
        let sleep = async |time| self.world.sleep(time).await;
        let made = self.overdue.make_way(newcomer, || self.world.now(), sleep);
        if !Box::pin(made).await.is_zero() {
            self.world.reached(match newcomer {
                Newcomer::Read => "read makes way for another command",
                Newcomer::Write => "write in place makes way for another command",
            });
        }
        held.set(Some(self.world.now()));
    }

    /// A command that is no write of the logs begins; on a disk others make way for it if it is overdue.
    fn begins(&self, drive: &View<W::Drive>) -> Option<Command<'_>> {
        let begin = || self.overdue.begin(Class::Other, self.world.now());
        drive.geometry().rotational.then(begin)
    }

    async fn write_durably_here(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        bump(&self.vitals.writes);
        bump(&self.vitals.flushes);
        let operation = ("write", at, data.len() as u64);
        let drive = self.drive(operation)?;
        let writing = pin!(drive.write_durable(at, data));
        let run = self.run((Kind::Durable, Patience::Waits), writing, Result::is_err);
        self.answer(run.await, operation)
    }

    /// Writes without making it durable; [`Member::flush`] does.
    ///
    /// # Errors
    /// What the drive said: what was written may be lost or torn.
    pub async fn write(&self, at: DriveOffset, data: Slice) -> Result<(), DriveError> {
        self.write_with(at, data, true).await
    }

    /// Writes for work in the background, as [`Member::read_in_turn`] reads.
    ///
    /// # Errors
    /// As of [`Member::write`].
    pub async fn write_in_turn(
        &self,
        (at, data): (DriveOffset, Slice),
        patience: Option<Duration>,
        wanted: impl Future<Output = ()>,
    ) -> Result<(), DriveError> {
        let turn = self.turn((data.len() as u64, patience), wanted).await;
        self.write_with(at, data, turn.is_none()).await
    }

    async fn write_with(
        &self,
        at: DriveOffset,
        data: Slice,
        is_of_hosts: bool,
    ) -> Result<(), DriveError> {
        match self.successor_that_takes(at) {
            None => self.write_here(at, data, is_of_hosts).await,
            Some(beside) => {
                let own = self.unless_planted(self.write_here(at, data.clone(), is_of_hosts));
                let theirs = beside.member().write_here(at, data, is_of_hosts);
                Box::pin(beside.both(self, own, theirs)).await
            }
        }
    }

    async fn write_here(
        &self,
        at: DriveOffset,
        data: Slice,
        is_of_hosts: bool,
    ) -> Result<(), DriveError> {
        bump(&self.vitals.writes);
        let operation = ("write", at, data.len() as u64);
        let drive = self.drive(operation)?;
        let held = Cell::new(None);
        let writing = pin!(async {
            if is_of_hosts {
                self.make_way(Newcomer::Write, &drive, &held).await;
            }
            let _command = is_of_hosts.then(|| self.begins(&drive));
            drive.write(at, data).await
        });
        let (kind, now) = ((Kind::Write, Patience::Waits), || self.world.now());
        let run = self
            .vitals
            .run_held(kind, (now, Some(&held)), writing, Result::is_err);
        self.answer(run.await, operation)
    }

    /// Makes what an earlier owner may have left in the drive's cache durable.
    ///
    /// # Errors
    /// What the drive said.
    pub async fn flush(&self) -> Result<(), DriveError> {
        let beside = self.successor.borrow().clone();
        match beside {
            None => self.flush_here().await,
            Some(beside) => {
                let theirs = beside.member().flush_here();
                Box::pin(beside.both(self, self.flush_here(), theirs)).await
            }
        }
    }

    async fn flush_here(&self) -> Result<(), DriveError> {
        bump(&self.vitals.flushes);
        let operation = ("flush", DriveOffset(0), 0);
        let drive = self.drive(operation)?;
        let flushing = pin!(drive.flush());
        let run = self.run((Kind::Flush, Patience::Waits), flushing, Result::is_err);
        let flushed = self.answer(run.await, operation);
        match self.world.planted("failed flush taken for done") {
            true => Ok(()),
            false => flushed,
        }
    }

    /// As [`Member::flush`], of one that begins after the call, and may serve others, too.
    ///
    /// # Errors
    /// What the drive said.
    pub async fn flush_with_others(&self) -> Result<(), DriveError> {
        let is_busy = self.flushing.is_busy();
        if is_busy
            && self
                .world
                .planted("flush shared that began before the write")
        {
            return Ok(());
        }
        self.flushing.run(async || self.flush().await).await
    }

    /// The drive that it is copied to, where that gets what is written there.
    fn successor_that_takes(&self, at: DriveOffset) -> Option<Successor<W>> {
        let successor = self.successor.borrow();
        let beside = successor.as_ref().filter(|beside| beside.takes(at))?;
        let is_forgotten = self.world.planted("successor gets no writes");
        (!is_forgotten).then(|| beside.clone())
    }

    /// Whether its world has this bug.
    pub(crate) fn planted(&self, bug: &'static str) -> bool {
        self.world.planted(bug)
    }

    async fn unless_planted(
        &self,
        write: impl Future<Output = Result<(), DriveError>>,
    ) -> Result<(), DriveError> {
        match self.world.planted("copied drive gets no writes") {
            true => Ok(()),
            false => write.await,
        }
    }

    fn drive(&self, operation: Operation) -> Result<Rc<View<W::Drive>>, DriveError> {
        let drive = self.drive.borrow().clone();
        drive.ok_or_else(|| gone(operation, format!("drive '{}' is not there", self.name)))
    }

    fn given_up(&self, operation: Operation) -> DriveError {
        gone(operation, format!("drive '{}' was given up", self.name))
    }

    fn answer(
        &self,
        outcome: Outcome<Result<(), DriveError>>,
        operation: Operation,
    ) -> Result<(), DriveError> {
        match outcome {
            Outcome::Done(answer) => answer,
            Outcome::Late | Outcome::GivenUp => Err(self.given_up(operation)),
        }
    }

    /// The operation comes pinned: there are many of these futures, and each layer would
    /// hold, and move, another copy of what the drive's takes.
    fn run<T>(
        &self,
        kind: (Kind, Patience),
        operation: Pin<&mut impl Future<Output = T>>,
        failed: impl FnOnce(&T) -> bool,
    ) -> impl Future<Output = Outcome<T>> {
        self.vitals
            .run(kind, || self.world.now(), operation, failed)
    }

    /// The drive at a glance.
    pub fn info(&self) -> MemberInfo {
        MemberInfo {
            name: self.name.clone(),
            uuid: self.uuid,
            group: self.group(),
            place: self.place(),
            state: self.state.get(),
            successor: self.successor().map(|successor| successor.name.clone()),
            trouble: self.trouble.borrow().clone().filter(|_| self.is_doubted()),
            capacity_bytes: self.capacity_bytes,
            serial: self.serial(),
            reads: self.vitals.reads.get(),
            writes: self.vitals.writes.get(),
            flushes: self.vitals.flushes.get(),
            errors: self.vitals.errors.get(),
            mends: self.vitals.mends.get(),
            read_latency: self.vitals.read_latency(),
            write_latency: self.vitals.write_latency(),
        }
    }
}

/// An operation of so many bytes at an offset, by its name.
type Operation = (&'static str, DriveOffset, u64);

fn gone((operation, at, len_bytes): Operation, context: String) -> DriveError {
    DriveError {
        kind: DriveErrorKind::Gone,
        operation,
        at,
        len_bytes,
        context,
    }
}
