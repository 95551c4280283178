//! A circular log on several drives: an entry is durable on all of them before its caller is told
//! so, and entries come back after any crash, in order.
//!
//! Invariants:
//! - An append ends only when its batch and all batches before it are durable on
//!   every drive of the ring in use, and a drive that failed is out of use durably.
//! - Space is used again only after superblocks that no longer point to it are
//!   durable.
//! - What a recovery has given out is on every drive of the ring before it is given:
//!   a copy that is lost afterwards takes nothing back.
//! - A batch left over from before a recovery never follows one written after it
//!   (the superblock says from where on only batches of its incarnation count).
//!
//! Rooms: `format` (bytes), `append`, `trim`, `recover`, `copy` (to another drive). On the drive:
//! `docs/internals/format.md`, "Rings".

mod append;
mod copy;
pub(crate) mod format;
mod recover;
mod trim;

use crate::drive::DriveError;
use crate::drives::{DriveFault, Member};
use crate::layout::Layout;
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Slice, Uuid};
use format::SUPERBLOCKS_BYTES;
use futures_channel::oneshot;
use futures_util::future::LocalBoxFuture;
use futures_util::lock::Mutex;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Batches on their way to the drives at once.
const IN_FLIGHT_MAX: usize = 8;

/// Where a ring lies, and whose it is.
#[derive(Clone, Debug)]
pub struct RingSpec {
    /// The ring's name, for messages.
    pub label: &'static str,
    /// Identity of the pool that owns it.
    pub pool: Uuid,
    /// Known to the pool alone: nobody who writes to a volume can make a block that
    /// looks like a batch.
    pub salt: u64,
    /// Where it begins, on every drive.
    pub at: DriveOffset,
    /// Its length on every drive.
    pub len_bytes: u64,
    /// How its superblocks lie.
    pub layout: Layout,
}

impl RingSpec {
    /// Where the superblock of a version lies on a drive: of twins that lie apart, one is
    /// the first block of the ring, and the other the last.
    pub fn superblock_at(&self, version: u64) -> DriveOffset {
        match (version % 2, self.layout) {
            (0, _) => self.at,
            (_, Layout::Adjacent) => self.at + BLOCK,
            (_, Layout::Apart) => self.at + (self.len_bytes - BLOCK),
        }
    }

    /// Where offset `at` of the batch space lies on a drive.
    pub(crate) fn batch_at(&self, at: u64) -> DriveOffset {
        match self.layout {
            Layout::Adjacent => self.at + SUPERBLOCKS_BYTES + at,
            Layout::Apart => self.at + BLOCK + at,
        }
    }
}

/// An entry for a batch: a head that describes data, and the data.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Says what the data is; the ring does not look at it.
    pub head: Vec<u8>,
    /// The data itself, in whole blocks.
    pub data: SmallVec<[Slice; 4]>,
}

impl Entry {
    fn data_bytes(&self) -> usize {
        self.data.iter().map(Slice::len).sum()
    }
}

/// An entry that is durable.
#[derive(Debug)]
pub struct Appended {
    /// Its place in the order of all entries of all rings that share the counter.
    pub stamp: u64,
    /// CRC-32C of all its data, where data has bytes.
    pub data_crc: Option<u32>,
    /// Keeps it in the ring.
    pub hold: Hold,
}

/// An entry that a recovery found.
#[derive(Debug)]
pub struct Recovered {
    pub stamp: u64,
    pub head: Vec<u8>,
    pub data: Vec<Slice>,
    /// Keeps it in the ring.
    pub hold: Hold,
}

/// Keeps an entry in the ring until it is dropped.
#[derive(Debug)]
pub struct Hold {
    live: Rc<Cell<u32>>,
}

impl Hold {
    fn new(live: &Rc<Cell<u32>>) -> Self {
        live.set(live.get() + 1);
        Hold {
            live: Rc::clone(live),
        }
    }

    /// One that holds nothing, for tests of what is above.
    #[cfg(test)]
    pub fn of_no_ring() -> Self {
        Hold::new(&Rc::default())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.live.set(self.live.get() - 1);
    }
}

/// Who takes failed drives out of use.
pub trait Losses<W: World>: 'static {
    /// Ends well when the drives of `faults` are out of use, durably.
    fn absorb(&self, faults: Vec<DriveFault<W>>) -> LocalBoxFuture<'_, Result<(), DriveError>>;

    /// Whether every drive that is out of use is so durably; else `absorb` waits for it.
    fn are_durable(&self) -> bool;
}

/// What went wrong with a ring, as far as callers act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingErrorKind {
    /// The entry is larger than the ring takes.
    TooLarge,
    /// No drive has a ring that can be read.
    NoRing,
    /// A drive failed that can't be done without.
    Drive,
}

/// A failed operation of a ring. After `Drive` every later one fails the same way.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{context}")]
pub struct RingError {
    /// What callers match on.
    pub kind: RingErrorKind,
    /// A sentence for people that says what failed.
    pub context: String,
}

impl RingError {
    fn new(kind: RingErrorKind, context: String) -> Self {
        RingError { kind, context }
    }
}

type Outcome = Result<Appended, RingError>;

/// An append that waits for a batch.
struct Pending {
    entry: Entry,
    done: oneshot::Sender<Outcome>,
    /// It may take the reserve: see [`Ring::set_reserve`].
    takes_reserve: bool,
}

/// A batch in the ring.
struct Batch {
    at: u64,
    len_bytes: u64,
    /// With what was skipped at the end of the ring before it.
    taken_bytes: u64,
    first_stamp: u64,
    /// Holds on its entries.
    live: Rc<Cell<u32>>,
    /// On all drives.
    durable: bool,
    /// Who is told when it and all before it are durable.
    waiting: Vec<(oneshot::Sender<Outcome>, Appended)>,
    acknowledged: bool,
}

struct State {
    incarnation: u32,
    /// See [`format::Superblock::since_sequence`].
    since_sequence: u64,
    /// Version of the superblocks.
    version: u64,
    /// Where the next batch goes, if it fits there.
    head: u64,
    next_sequence: u64,
    /// First batch that the superblocks point to.
    tail: u64,
    tail_sequence: u64,
    tail_stamp: u64,
    used_bytes: u64,
    /// Bytes that appends have taken so far.
    taken_bytes: u64,
    /// From the tail on.
    batches: VecDeque<Batch>,
    pending: VecDeque<Pending>,
    in_flight: usize,
    paused: bool,
    quiet: Option<oneshot::Sender<()>>,
    waits_for_room: bool,
}

impl State {
    fn empty() -> Self {
        State {
            incarnation: 1,
            since_sequence: 1,
            version: 0,
            head: 0,
            next_sequence: 1,
            tail: 0,
            tail_sequence: 1,
            tail_stamp: 0,
            used_bytes: 0,
            taken_bytes: 0,
            batches: VecDeque::new(),
            pending: VecDeque::new(),
            in_flight: 0,
            paused: false,
            quiet: None,
            waits_for_room: false,
        }
    }

    /// An append takes so many bytes.
    fn take(&mut self, bytes: u64) {
        self.used_bytes += bytes;
        self.taken_bytes += bytes;
    }
}

/// A circular log on several drives.
pub struct Ring<W: World> {
    world: W,
    spec: RingSpec,
    members: RefCell<Vec<Rc<Member<W>>>>,
    losses: Rc<dyn Losses<W>>,
    stamps: Rc<Cell<u64>>,
    state: RefCell<State>,
    trimming: Mutex<()>,
    /// Room that ordinary appends leave, bytes.
    reserve_bytes: Cell<u64>,
    dead: RefCell<Option<String>>,
    /// Drive writes, and the bytes of them.
    writes: Cell<u64>,
    written_bytes: Cell<u64>,
}

impl<W: World> Ring<W> {
    fn with(
        world: W,
        spec: RingSpec,
        members: Vec<Rc<Member<W>>>,
        stamps: Rc<Cell<u64>>,
        losses: Rc<dyn Losses<W>>,
    ) -> Self {
        assert!(
            spec.len_bytes.is_multiple_of(BLOCK)
                && spec.len_bytes >= SUPERBLOCKS_BYTES + 16 * BLOCK,
            "a ring of {} bytes",
            spec.len_bytes
        );
        Ring {
            world,
            spec,
            members: RefCell::new(members),
            losses,
            stamps,
            state: RefCell::new(State::empty()),
            trimming: Mutex::new(()),
            reserve_bytes: Cell::new(0),
            dead: RefCell::new(None),
            writes: Cell::new(0),
            written_bytes: Cell::new(0),
        }
    }

    /// A new, empty ring.
    ///
    /// # Errors
    /// `Drive` when its superblocks can't be written.
    pub async fn format(
        world: W,
        spec: RingSpec,
        members: Vec<Rc<Member<W>>>,
        stamps: Rc<Cell<u64>>,
        losses: Rc<dyn Losses<W>>,
    ) -> Result<Rc<Self>, RingError> {
        let ring = Rc::new(Ring::with(world, spec, members, stamps, losses));
        // Both: until the first trim, one that breaks would be the only one.
        ring.write_superblocks().await?;
        ring.write_superblocks().await?;
        Ok(ring)
    }

    /// Its place on drives, and its owner.
    pub fn spec(&self) -> &RingSpec {
        &self.spec
    }

    /// Bytes that batches take.
    pub fn used_bytes(&self) -> u64 {
        self.state.borrow().used_bytes
    }

    /// Bytes that appends have taken since the opening.
    pub fn taken_bytes(&self) -> u64 {
        self.state.borrow().taken_bytes
    }

    /// Bytes that batches can take.
    pub fn capacity_bytes(&self) -> u64 {
        self.spec.len_bytes - SUPERBLOCKS_BYTES
    }

    /// Whether an append waits for room.
    pub fn waits_for_room(&self) -> bool {
        self.state.borrow().waits_for_room
    }

    /// Has ordinary appends leave so many bytes to [`Ring::append_with_reserve`].
    pub fn set_reserve(&self, bytes: u64) {
        self.reserve_bytes.set(bytes);
    }

    /// The first stamp that lies `bytes` or more behind the tail; one above all where less is used.
    pub fn stamp_behind_tail(&self, bytes: u64) -> u64 {
        let state = self.state.borrow();
        let mut passed = 0;
        let behind = state.batches.iter().find(|batch| {
            let found = passed >= bytes;
            passed += batch.taken_bytes;
            found
        });
        behind.map_or(self.stamps.get() + 1, |batch| batch.first_stamp)
    }

    /// The stamps of its oldest and its newest entry: whether these stay tells that nothing was let go
    /// of, and nothing was appended.
    pub fn ends(&self) -> (u64, u64) {
        (self.tail_stamp(), self.last_stamp())
    }

    /// Entries with a lower stamp are gone for good.
    pub fn tail_stamp(&self) -> u64 {
        self.state.borrow().tail_stamp
    }

    /// The stamp of the last entry so far, of all rings that share the counter.
    pub fn last_stamp(&self) -> u64 {
        self.stamps.get()
    }

    /// The drives that carry it.
    pub fn members(&self) -> Vec<Rc<Member<W>>> {
        self.members.borrow().clone()
    }

    /// Drive writes so far, and their bytes.
    pub fn writes(&self) -> (u64, u64) {
        (self.writes.get(), self.written_bytes.get())
    }

    fn in_use(&self) -> Vec<Rc<Member<W>>> {
        let members = self.members.borrow();
        members
            .iter()
            .filter(|member| member.is_writable())
            .map(Rc::clone)
            .collect()
    }

    /// Where offset `at` of the batch space lies on a drive.
    fn on_drive(&self, at: u64) -> DriveOffset {
        self.spec.batch_at(at)
    }

    /// The pool has stopped, for `reason`: all that waits is refused, and all that comes.
    pub fn die(&self, reason: &str) {
        self.dead
            .borrow_mut()
            .get_or_insert_with(|| format!("{}: the pool has stopped: {reason}", self.spec.label));
        self.refuse_all();
    }

    fn check(&self) -> Result<(), RingError> {
        match self.dead.borrow().as_ref() {
            None => Ok(()),
            Some(reason) => Err(RingError::new(RingErrorKind::Drive, reason.clone())),
        }
    }

    /// Takes the drives of `faults` out of use; the ring is dead when that can't be.
    async fn absorb(&self, faults: Vec<DriveFault<W>>) -> Result<(), RingError> {
        if faults.is_empty() && self.losses.are_durable() {
            return Ok(());
        }
        if let Err(error) = self.losses.absorb(faults).await {
            let reason = format!("{}: {error}", self.spec.label);
            self.dead.borrow_mut().get_or_insert(reason);
        }
        self.check()
    }

    /// Writes `data` durably at `at` on every drive in use.
    async fn write_all(&self, at: DriveOffset, data: &Slice) -> Result<(), RingError> {
        let lazy = self.world.planted("ack before the second log copy");
        let writes = self
            .in_use()
            .into_iter()
            .enumerate()
            .map(|(index, member)| {
                self.writes.set(self.writes.get() + 1);
                self.written_bytes
                    .set(self.written_bytes.get() + data.len() as u64);
                let data = data.clone();
                async move {
                    let outcome = match lazy && index > 0 {
                        true => member.write(at, data).await,
                        false => member.write_log(at, data).await,
                    };
                    outcome.err().map(|error| DriveFault { member, error })
                }
            });
        let faults: Vec<_> = futures_util::future::join_all(writes)
            .await
            .into_iter()
            .flatten()
            .collect();
        self.absorb(faults).await
    }
}
