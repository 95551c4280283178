//! The media of an adversarial drive: stable blocks, and those only in its cache.
//!
//! Invariants:
//! - The media outlive the world. A drive of a world is a door to them.
//! - `current` is what reads see; `stable` is what no power cut can take away.
//! - Every write that ended and is not yet covered by a flush is in `unsynced`,
//!   in the order of ending; every one begun and not ended is in `in_flight`.
//! - At a power cut every sector of these is lost or kept, in any order against
//!   other writes: tearing is at sector grain, reordering is free.

use super::faults::{Faults, block_range};
use base::{BLOCK_BYTES, BufPool, DriveOffset, Prng, SECTOR_BYTES, Slice};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::task::Waker;

type Block = Box<[u8; BLOCK_BYTES]>;

/// What the drive over these media is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSpec {
    /// Name of the drive in traces and errors.
    pub name: String,
    /// A multiple of [`BLOCK_BYTES`]. Kept small: an index over all blocks is held.
    pub capacity_bytes: u64,
    /// What the drive says of itself.
    pub rotational: bool,
    /// Whether it takes discards.
    pub discards: bool,
    /// It acknowledges flushes and does nothing. A drive that lies; here to prove
    /// that a checker notices.
    pub ignores_flush: bool,
}

impl MediaSpec {
    /// Flash that does what it is told to, and takes no discards.
    pub fn new(name: impl Into<String>, capacity_bytes: u64) -> Self {
        MediaSpec {
            name: name.into(),
            capacity_bytes,
            rotational: false,
            discards: false,
            ignores_flush: false,
        }
    }
}

/// In-memory media that survive worlds and power cuts.
pub struct Media {
    spec: MediaSpec,
    state: RefCell<State>,
    faults: RefCell<Faults>,
    /// Operations that wait for a drive that hangs.
    hanging: RefCell<Vec<Waker>>,
    /// Operations that are worked on.
    running: Cell<u32>,
    owner: Cell<u64>,
    trespasses: Cell<u64>,
    prng: RefCell<Prng>,
}

/// What a drive held at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(Vec<Option<Block>>);

/// An operation that the drive works on.
pub(super) struct InQueue<'a>(&'a Media);

impl Drop for InQueue<'_> {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
    }
}

struct State {
    current: Vec<Option<Block>>,
    stable: Vec<Option<Block>>,
    unsynced: Vec<Unsynced>,
    in_flight: Vec<Unsynced>,
    /// Blocks that were changed behind the owner's back, and not written durably since.
    corrupted: BTreeSet<u64>,
    /// Writes begun so far.
    begun: u64,
    /// Writes ended so far.
    ended: u64,
}

struct Unsynced {
    /// Which write while it is in flight; its place in the order of ending after.
    sequence: u64,
    at: DriveOffset,
    data: Slice,
}

impl Unsynced {
    /// Where `newer` is durable, this write can't come back over it.
    fn give_way_to(&mut self, newer: &Unsynced) {
        let len = |write: &Unsynced| write.data.len() as u64;
        let from = self.at.0.max(newer.at.0);
        let to = (self.at.0 + len(self)).min(newer.at.0 + len(newer));
        let Some(older) = self.data.bytes().filter(|_| from < to) else {
            return;
        };
        let mut merged = BufPool::new().copy_of(older);
        let part = newer
            .data
            .slice((from - newer.at.0) as usize, (to - from) as usize);
        merged.put((from - self.at.0) as usize, &part);
        self.data = merged.freeze();
    }
}

/// Which sectors of a write that ends have reached the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    All,
    /// All, and past the cache.
    Durably,
    Nothing,
    Some,
}

/// How a power cut treats what is not flushed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loss {
    All,
    Nothing,
    Writes,
    Sectors,
}

impl Media {
    /// Blank media. `prng` decides latencies, mixed reads and power cuts.
    ///
    /// # Panics
    /// When the capacity is not a whole number of blocks.
    pub fn new(spec: MediaSpec, prng: Prng) -> Self {
        assert!(
            spec.capacity_bytes.is_multiple_of(BLOCK_BYTES as u64),
            "a capacity in blocks"
        );
        let blocks = (spec.capacity_bytes / BLOCK_BYTES as u64) as usize;
        let empty = || (0..blocks).map(|_| None).collect();
        let state = State {
            current: empty(),
            stable: empty(),
            unsynced: Vec::new(),
            in_flight: Vec::new(),
            corrupted: BTreeSet::new(),
            begun: 0,
            ended: 0,
        };
        Media {
            spec,
            state: RefCell::new(state),
            faults: RefCell::default(),
            hanging: RefCell::default(),
            running: Cell::new(0),
            owner: Cell::new(0),
            trespasses: Cell::new(0),
            prng: RefCell::new(prng),
        }
    }

    /// A drive of `capacity_bytes` with what this one holds now, as far as it
    /// fits: a copy made behind the pool's back.
    pub fn copied(&self, capacity_bytes: u64, prng: Prng) -> Self {
        let spec = MediaSpec {
            capacity_bytes,
            ..self.spec.clone()
        };
        let copy = Media::new(spec, prng);
        {
            let (from, mut to) = (self.state.borrow(), copy.state.borrow_mut());
            for (block, content) in from.current.iter().take(to.current.len()).enumerate() {
                to.current[block].clone_from(content);
                to.stable[block].clone_from(content);
            }
        }
        copy
    }

    /// What the drive holds, to come back to.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.state.borrow().current.clone())
    }

    /// The drive holds again what it held at a snapshot, as after an image of it was
    /// put back. Not while it is in use.
    pub fn restore(&self, snapshot: &Snapshot) {
        let mut state = self.state.borrow_mut();
        state.current.clone_from(&snapshot.0);
        state.stable.clone_from(&snapshot.0);
        state.unsynced.clear();
        state.in_flight.clear();
    }

    /// Changes what lies in a block, unnoticed.
    pub fn corrupt(&self, block: u64) {
        let prng = &mut *self.prng.borrow_mut();
        let state = &mut *self.state.borrow_mut();
        let mut content = match &state.current[block as usize] {
            Some(content) => content.clone(),
            None => Box::new([0; BLOCK_BYTES]),
        };
        match prng.below(3) {
            0 => content[prng.below(BLOCK_BYTES as u64) as usize] ^= 1 << prng.below(8),
            1 => prng.fill(&mut content[..]),
            _ => content.fill(0),
        }
        state.current[block as usize] = Some(content.clone());
        state.stable[block as usize] = Some(content);
        let first = DriveOffset(block * BLOCK_BYTES as u64);
        let overlaps = |write: &Unsynced| {
            let end = write.at.0 + write.data.len() as u64;
            write.at.0 < first.0 + BLOCK_BYTES as u64 && first.0 < end
        };
        state.unsynced.retain(|write| !overlaps(write));
        state.corrupted.insert(block);
    }

    /// Blocks that were damaged, and not written durably since.
    pub fn damaged(&self) -> BTreeSet<u64> {
        let mut damaged = self.state.borrow().corrupted.clone();
        damaged.extend(&self.faults.borrow().unreadable);
        damaged
    }

    /// A place in the drive's queue, when it has one: given back when it is dropped.
    pub(super) fn enter_queue(&self) -> Option<InQueue<'_>> {
        let depth = self.with_faults(|faults| faults.queue_depth);
        let full = depth > 0 && self.running.get() >= depth;
        (!full).then(|| {
            self.running.set(self.running.get() + 1);
            InQueue(self)
        })
    }

    /// Somewhere on the drive where `len_bytes` fit.
    pub(super) fn anywhere(&self, len_bytes: u64) -> DriveOffset {
        let block = BLOCK_BYTES as u64;
        let room = (self.spec.capacity_bytes - len_bytes) / block;
        DriveOffset(self.draw(|prng| prng.below(room + 1)) * block)
    }

    /// What the drive is like.
    pub fn spec(&self) -> &MediaSpec {
        &self.spec
    }

    /// Changes the faults of the drive.
    pub fn with_faults<T>(&self, change: impl FnOnce(&mut Faults) -> T) -> T {
        let (changed, answers) = {
            let mut faults = self.faults.borrow_mut();
            let changed = change(&mut faults);
            (changed, faults.hangs_from.is_none())
        };
        if answers {
            let hanging = std::mem::take(&mut *self.hanging.borrow_mut());
            hanging.into_iter().for_each(Waker::wake);
        }
        changed
    }

    /// Is told when the drive does not hang any more.
    pub(super) fn hang(&self, waker: &Waker) {
        self.hanging.borrow_mut().push(waker.clone());
    }

    /// Another owner has the drive from now on: nobody else may write it.
    pub fn hand_over(&self) {
        self.owner.set(self.owner.get() + 1);
    }

    /// Which owner has the drive.
    pub(super) fn owner(&self) -> u64 {
        self.owner.get()
    }

    /// An owner that has it no more has written.
    pub(super) fn trespass(&self) {
        self.trespasses.set(self.trespasses.get() + 1);
    }

    /// Writes begun by owners that had the drive no more.
    pub fn trespasses(&self) -> u64 {
        self.trespasses.get()
    }

    /// Operations that the drive works on.
    pub fn running(&self) -> u32 {
        self.running.get()
    }

    /// Writes, begun or ended, that no flush has covered.
    pub fn unsynced_writes(&self) -> usize {
        let state = self.state.borrow();
        state.unsynced.len() + state.in_flight.len()
    }

    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Prng) -> T) -> T {
        draw(&mut self.prng.borrow_mut())
    }

    /// Loses or keeps every sector that is not flushed.
    pub fn power_cut(&self) {
        let prng = &mut *self.prng.borrow_mut();
        let state = &mut *self.state.borrow_mut();
        let mut writes = std::mem::take(&mut state.unsynced);
        writes.append(&mut state.in_flight);
        if prng.chance(2, 3) {
            shuffle(&mut writes, prng);
        }
        let loss = *prng.pick(&[Loss::All, Loss::Nothing, Loss::Writes, Loss::Sectors]);
        let kept_of_8 = prng.between(1, 7);
        for write in &writes {
            match loss {
                Loss::All => {}
                Loss::Nothing => put(&mut state.stable, write.at, &write.data),
                Loss::Writes if prng.chance(kept_of_8, 8) => {
                    put(&mut state.stable, write.at, &write.data);
                }
                Loss::Writes => {}
                Loss::Sectors => {
                    let keeps = || prng.chance(kept_of_8, 8);
                    put_some(&mut state.stable, write.at, &write.data, keeps);
                }
            }
        }
        for write in &writes {
            let (first, end) = block_range(write.at, write.data.len() as u64);
            for block in first as usize..end as usize {
                state.current[block].clone_from(&state.stable[block]);
            }
        }
    }

    pub(super) fn begin_write(&self, at: DriveOffset, data: Slice) -> u64 {
        let mut state = self.state.borrow_mut();
        state.begun += 1;
        let sequence = state.begun;
        state.in_flight.push(Unsynced { sequence, at, data });
        sequence
    }

    /// The write `sequence` ends. Nothing happens when a power cut came before.
    pub(super) fn end_write(&self, sequence: u64, reach: Reach) {
        let state = &mut *self.state.borrow_mut();
        let Some(place) = state
            .in_flight
            .iter()
            .position(|write| write.sequence == sequence)
        else {
            return;
        };
        let mut write = state.in_flight.swap_remove(place);
        match reach {
            Reach::All => put(&mut state.current, write.at, &write.data),
            Reach::Durably => {
                put(&mut state.current, write.at, &write.data);
                if !self.spec.ignores_flush {
                    put(&mut state.stable, write.at, &write.data);
                    forget(&mut state.corrupted, &write);
                    state
                        .unsynced
                        .iter_mut()
                        .for_each(|older| older.give_way_to(&write));
                    return;
                }
            }
            Reach::Nothing => return,
            Reach::Some => {
                let prng = &mut *self.prng.borrow_mut();
                put_some(&mut state.current, write.at, &write.data, || {
                    prng.chance(1, 2)
                });
                // What lies in the cache now is what may be kept or lost.
                write.data = copy_of(&state.current, write.at, write.data.len());
            }
        }
        state.ended += 1;
        write.sequence = state.ended;
        state.unsynced.push(write);
    }

    /// Writes ended so far: what a flush that begins now must cover.
    pub(super) fn ended(&self) -> u64 {
        self.state.borrow().ended
    }

    /// Makes the first `ended` writes durable.
    pub(super) fn settle(&self, ended: u64) {
        if self.spec.ignores_flush {
            return;
        }
        let state = &mut *self.state.borrow_mut();
        let covered = state
            .unsynced
            .partition_point(|write| write.sequence <= ended);
        for write in state.unsynced.drain(..covered) {
            put(&mut state.stable, write.at, &write.data);
            forget(&mut state.corrupted, &write);
        }
    }

    /// Fills `bytes` with what lies at `at`; a sector with writes in flight gives
    /// what was there or what is coming.
    pub(super) fn fill(&self, at: DriveOffset, bytes: &mut [u8]) {
        let state = self.state.borrow();
        for (place, block) in bytes
            .chunks_mut(BLOCK_BYTES)
            .zip(at.0 as usize / BLOCK_BYTES..)
        {
            match &state.current[block] {
                Some(content) => place.copy_from_slice(&content[..]),
                None => place.fill(0),
            }
        }
        let prng = &mut *self.prng.borrow_mut();
        for write in &state.in_flight {
            let from = write.at.0.max(at.0);
            let to = (write.at.0 + write.data.len() as u64).min(at.0 + bytes.len() as u64);
            let Some(data) = write.data.bytes() else {
                continue;
            };
            for sector in (from..to).step_by(SECTOR_BYTES) {
                if prng.chance(1, 2) {
                    let (read, written) =
                        ((sector - at.0) as usize, (sector - write.at.0) as usize);
                    bytes[read..read + SECTOR_BYTES]
                        .copy_from_slice(&data[written..written + SECTOR_BYTES]);
                }
            }
        }
    }

    /// What a discarded run may give from now on: per block the old content,
    /// zeroes or garbage.
    pub(super) fn discarded(&self, at: DriveOffset, len_bytes: u64) -> Slice {
        let mut garbage = BufPool::new().bytes(len_bytes as usize);
        if let Some(bytes) = garbage.bytes_mut() {
            self.fill(at, bytes);
            let prng = &mut *self.prng.borrow_mut();
            for block in bytes.chunks_mut(BLOCK_BYTES) {
                match prng.below(3) {
                    0 => {}
                    1 => block.fill(0),
                    _ => prng.fill(block),
                }
            }
        }
        garbage.freeze()
    }

    /// Whether a write there needs a block that was never written.
    pub(super) fn grows(&self, at: DriveOffset, len_bytes: u64) -> bool {
        let (first, end) = block_range(at, len_bytes);
        self.state.borrow().current[first as usize..end as usize]
            .iter()
            .any(Option::is_none)
    }
}

/// What `write` covers is not as it was damaged any more.
fn forget(corrupted: &mut BTreeSet<u64>, write: &Unsynced) {
    if !corrupted.is_empty() {
        let (first, end) = block_range(write.at, write.data.len() as u64);
        corrupted.retain(|block| !(first..end).contains(block));
    }
}

fn shuffle<T>(items: &mut [T], prng: &mut Prng) {
    for last in (1..items.len()).rev() {
        items.swap(last, prng.below(last as u64 + 1) as usize);
    }
}

fn copy_of(blocks: &[Option<Block>], at: DriveOffset, len: usize) -> Slice {
    let mut copy = BufPool::new().zeroed(len);
    if let Some(bytes) = copy.bytes_mut() {
        for (place, block) in bytes
            .chunks_mut(BLOCK_BYTES)
            .zip(at.0 as usize / BLOCK_BYTES..)
        {
            if let Some(content) = &blocks[block] {
                place.copy_from_slice(&content[..]);
            }
        }
    }
    copy.freeze()
}

/// Puts `data` at `at` into `blocks`.
fn put(blocks: &mut [Option<Block>], at: DriveOffset, data: &Slice) {
    let Some(data) = data.bytes() else { return };
    let (written, _) = data.as_chunks::<BLOCK_BYTES>();
    for (written, block) in written.iter().zip(at.0 as usize / BLOCK_BYTES..) {
        let content = blocks[block].get_or_insert_with(|| Box::new([0; BLOCK_BYTES]));
        content.copy_from_slice(written);
    }
}

/// Puts those sectors of `data` at `at` into `blocks` for which `reaches` says so.
fn put_some(
    blocks: &mut [Option<Block>],
    at: DriveOffset,
    data: &Slice,
    mut reaches: impl FnMut() -> bool,
) {
    let Some(data) = data.bytes() else { return };
    let (written, _) = data.as_chunks::<BLOCK_BYTES>();
    for (written, block) in written.iter().zip(at.0 as usize / BLOCK_BYTES..) {
        let content = blocks[block].get_or_insert_with(|| Box::new([0; BLOCK_BYTES]));
        let (sectors, _) = content.as_chunks_mut::<SECTOR_BYTES>();
        let (written, _) = written.as_chunks::<SECTOR_BYTES>();
        for (to, from) in sectors.iter_mut().zip(written) {
            if reaches() {
                to.copy_from_slice(from);
            }
        }
    }
}
