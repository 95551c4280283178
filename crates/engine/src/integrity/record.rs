//! Changes of sums that are durable in the data log, and not in their blocks yet.
//!
//! A block of sums speaks for megabytes, and random writes change a few sums of it each. To write
//! the block for each of them costs as much as the data. So the keeper writes down in the log what
//! has changed, a few bytes a sum, and lets go of the entries that changed it. The block is written
//! once many of its sums have changed.
//!
//! Invariants:
//! - A record has all changes of its block since the version that is durable on the drives: the
//!   newest one of a block, on top of that version, is the block.
//! - A record is made while no block is being written, and held until its block is durable or a
//!   newer record of the block is.
//! - A record on top of an older version than the drives have is of no use, and does no harm: what
//!   it says is in the newer version.
//! - The room that records take in the log is bounded, and so is the RAM of what they are about.
//!   Beyond it blocks are written, in the order in which they lie on the drives.

use super::block::{self, SUMS};
use super::dirty::Dirty;
use super::{Cached, Integrity, Slot, Sum};
use crate::codec::{Reader, Writer};
use crate::drive::DriveError;
use crate::range_lock::Guard;
use crate::ring::{Entry, Hold, Ring, RingError};
use crate::world::World;
use base::BLOCK_BYTES;
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::rc::Rc;

const BLOCK: u64 = BLOCK_BYTES as u64;

/// The kind of item that a record is in the data log.
pub const SUMS_ITEM: u8 = 4;

/// Records may take one in so many parts of the log.
const LOG_PARTS: u64 = 16;

/// The log keeps one in so many parts of itself for records that are due.
const RESERVE_PARTS: u64 = 32;

/// Records that lie in the first of so many parts of the log, from its tail on, are made anew.
const TAIL_PARTS: u64 = 12;

/// Entries whose records are made anew at once: less than the log keeps for them.
const RENEWED_MAX: usize = 8;

/// An entry of records ends with the first one beyond so many bytes, or beyond one in so many parts
/// of the log.
const ENTRY_BYTES: u64 = 128 << 10;
const ENTRY_BYTES_MIN: u64 = 2048;
const ENTRY_PARTS: u64 = 512;

/// A log with less room than this keeps no records: an entry would hardly have a place.
const LOG_BYTES_MIN: u64 = 24 * BLOCK;

/// Blocks that are written together, for each drive of the pool: about half a second of a disk.
const PART_PER_DRIVE: usize = 32;

/// At rest a part is so many times smaller.
const REST_PARTS: usize = 4;

/// Blocks that are written together, at least.
const PART_MIN: usize = 128;

/// Blocks that are read together for records that a replay has found.
const LOADS_AT_ONCE: usize = 128;

/// Bytes of a record without its changes, and of each change.
const HEAD_BYTES: u64 = 33;
const CHANGE_BYTES: u64 = 6;

/// Why sums could not be made durable.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The log takes nothing any more.
    #[error("{0}")]
    Log(#[from] RingError),
    /// A drive failed that can't be done without.
    #[error("{0}")]
    Drive(#[from] DriveError),
}

/// What has changed in a block of sums since its version on the drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumRecord {
    pub zone: u32,
    pub incarnation: u32,
    pub index: u32,
    /// The version that these are changes of.
    pub base: u64,
    /// Of the log entries up to this stamp, all changes of sums are in.
    pub up_to: u64,
    /// Places in the block, in their order, and the sums there.
    pub changes: Vec<(u16, Sum)>,
}

impl SumRecord {
    /// Zone and index in one number.
    pub(crate) fn key(&self) -> u64 {
        super::key(self.zone, u64::from(self.index))
    }

    /// The whole item.
    pub(crate) fn encode(&self, w: &mut Writer) {
        w.u8(SUMS_ITEM);
        w.u64(self.key());
        w.u32(self.changes.len() as u32);
        w.u32(self.incarnation);
        w.u64(self.base);
        w.u64(self.up_to);
        for (at, sum) in &self.changes {
            w.u16(*at);
            w.u32(sum.0);
        }
    }

    /// The item's rest, after its kind, the block and how many changes there are; `None` when it is
    /// none.
    pub(crate) fn decode(key: u64, changes: u32, r: &mut Reader<'_>) -> Option<Self> {
        let (incarnation, base, up_to) = (r.u32()?, r.u64()?, r.u64()?);
        let mut change = || Some((r.u16()?, Sum(r.u32()?)));
        let changes: Vec<(u16, Sum)> = (0..changes).map(|_| change()).collect::<Option<_>>()?;
        let is_of_block = |(at, _): &(u16, Sum)| usize::from(*at) < SUMS;
        changes.iter().all(is_of_block).then_some(SumRecord {
            zone: (key >> 32) as u32,
            incarnation,
            index: key as u32,
            base,
            up_to,
            changes,
        })
    }
}

/// The newest record of a block, in the log.
#[derive(Clone, Debug)]
pub(super) struct Held {
    stamp: u64,
    _hold: Rc<Hold>,
}

/// A record that a replay has found, of a block that is not in RAM.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) record: SumRecord,
    held: Held,
}

/// The records that lie in the log.
#[derive(Default)]
pub(super) struct Records {
    /// By block, as long as it is not in RAM.
    found: RefCell<BTreeMap<u64, Found>>,
    /// Blocks by the stamp of their record. Some have newer records, or none any more.
    by_stamp: RefCell<VecDeque<(u64, Vec<u64>)>>,
    /// Blocks that are written together, where that is not for the drives to say.
    part_blocks: Cell<Option<usize>>,
    /// Whether there are any, where that is not for the drives to say.
    keeps: Cell<Option<bool>>,
    kept: Cell<bool>,
}

impl Records {
    /// Records of blocks that are not in RAM.
    pub(super) fn found(&self) -> usize {
        self.found.borrow().len()
    }

    /// Whether one of them is of a block of that zone.
    pub(super) fn has_any_of(&self, zone: u32) -> bool {
        let found = self.found.borrow();
        let of_zone = super::key(zone, 0)..=super::key(zone, u64::from(u32::MAX));
        found.range(of_zone).next().is_some()
    }

    /// What is found of a block that comes into RAM.
    pub(super) fn take_found(&self, key: u64) -> Option<Found> {
        self.found.borrow_mut().remove(&key)
    }

    /// Takes off the blocks whose records are older than `stamp`, with the stamps, of some entries.
    fn take_older(&self, stamp: u64) -> Vec<(u64, Vec<u64>)> {
        let mut by_stamp = self.by_stamp.borrow_mut();
        let older = by_stamp.partition_point(|(at, _)| *at < stamp);
        by_stamp.drain(..older.min(RENEWED_MAX)).collect()
    }

    /// Forgets entries that are not in the log any more.
    fn forget_before(&self, tail_stamp: u64) {
        let mut by_stamp = self.by_stamp.borrow_mut();
        let gone = by_stamp.partition_point(|(at, _)| *at < tail_stamp);
        by_stamp.drain(..gone);
    }

    /// They are made anew later.
    fn put_back(&self, older: impl DoubleEndedIterator<Item = (u64, Vec<u64>)>) {
        let mut by_stamp = self.by_stamp.borrow_mut();
        older.rev().for_each(|entry| by_stamp.push_front(entry));
    }
}

impl Cached {
    fn key(&self) -> u64 {
        super::key(self.zone, u64::from(self.index))
    }

    /// Changes what a record says; nothing has changed since the record but what follows.
    pub(super) fn take_up(self: &Rc<Self>, found: Found, dirty: &Dirty) {
        for (at, sum) in &found.record.changes {
            self.sums.borrow_mut().set(usize::from(*at), *sum);
            self.set_changed(usize::from(*at), dirty);
        }
        self.record.replace(Some(found.held));
    }
}

/// Records on their way to the log, with what they are made of.
struct Entries {
    /// The blocks of each entry.
    keys: Vec<Vec<u64>>,
    entries: Vec<Entry>,
}

impl<W: World> Integrity<W> {
    /// Has blocks be written in parts of so many.
    pub fn set_part_blocks(&self, blocks: Option<usize>) {
        self.records.part_blocks.set(blocks);
    }

    /// Has records be kept or not, whatever the drives are.
    pub fn set_keeps_records(&self, keeps: Option<bool>) {
        self.records.keeps.set(keeps);
    }

    /// Whether what changes is recorded in the log.
    pub fn keeps_records(&self) -> bool {
        self.records.kept.get()
    }

    /// Looks at the drives, whether records are to be kept, and has that log keep room for them. On
    /// disks each write of a block moves the arm; on flash records would take more of the processor
    /// than they save.
    pub fn choose_records(&self, log: &Ring<W>) {
        let has_disks = || {
            self.drives
                .members()
                .iter()
                .any(|member| member.is_rotational())
        };
        let kept = self.records.keeps.get().unwrap_or_else(has_disks);
        let kept = kept && log.capacity_bytes() >= LOG_BYTES_MIN;
        self.records.kept.set(kept);
        log.set_reserve(match kept {
            true => (log.capacity_bytes() / RESERVE_PARTS).next_multiple_of(BLOCK),
            false => 0,
        });
    }

    /// A replay has found a record in the log. Later ones of a block count.
    pub fn found_record(&self, record: SumRecord, stamp: u64, hold: &Rc<Hold>) {
        let Some(zone) = self.drives.zone(record.zone) else {
            return;
        };
        // What is of another use of the zone was let go before that ended.
        let is_of_it = zone.shape.incarnation == record.incarnation;
        if !is_of_it || u64::from(record.index) >= block::count(zone.shape.blocks) {
            return;
        }
        let key = record.key();
        let held = Held {
            stamp,
            _hold: Rc::clone(hold),
        };
        self.records
            .by_stamp
            .borrow_mut()
            .push_back((stamp, vec![key]));
        let found = Found { record, held };
        self.records.found.borrow_mut().insert(key, found);
    }

    /// Writes blocks until what is dirty is within its bounds, in that log, too; a part at least
    /// when the drives are idle. What records can't speak for is written first.
    ///
    /// # Errors
    /// What a drive said that can't be done without.
    pub async fn flush_due(&self, log: &Ring<W>, is_idle: bool) -> Result<(), DriveError> {
        let _alone = self.write_alone().await;
        let part = self.part_blocks();
        if !self.keeps_records() {
            drop((self.dirty.take_unfit(), self.dirty.take_unrecorded()));
            self.load_found(part).await;
            return self.flush_all(self.dirty.all()).await;
        }
        self.flush_all(self.dirty.take_unfit()).await?;
        // What becomes dirty meanwhile is for the next call: the logs wait for this one.
        let mut most = self.dirty.blocks() + self.records.found();
        let mut is_due = is_idle;
        while most > 0 && (is_due || self.is_over(log)) {
            // Nothing urges what is written at rest, and reads may go on.
            let part = match mem::take(&mut is_due) {
                true => part.div_ceil(REST_PARTS),
                false => part,
            };
            let mut some = self.next_of_sweep(part);
            if some.is_empty() {
                self.load_found(part).await;
                some = self.next_of_sweep(part);
            }
            most = most.saturating_sub(some.len().max(1));
            if some.len() < self.dirty.blocks() {
                self.world.reached("part of the sums written");
            }
            self.flush_all(some).await?;
        }
        Ok(())
    }

    /// Makes durable in that log what has changed since the last records, and makes those anew that
    /// keep the log's tail from moving, when it `is_short`. Returns the bytes that this took.
    /// Where the log has no room, blocks are written.
    ///
    /// # Errors
    /// What the log said, or a drive that can't be done without.
    pub async fn record(&self, log: &Rc<Ring<W>>, is_short: bool) -> Result<usize, RecordError> {
        let _alone = self.write_alone().await;
        if !self.keeps_records() {
            self.flush_all(self.dirty.all()).await?;
            return Ok(0);
        }
        self.records.forget_before(log.tail_stamp());
        let renewed_up_to = match is_short {
            true => log.stamp_behind_tail(log.capacity_bytes() / TAIL_PARTS),
            false => 0,
        };
        let changed = self.dirty.take_unrecorded();
        let mut older = self.records.take_older(renewed_up_to);
        let records = self.records_of(&changed, &older);
        if records.is_empty() {
            return Ok(0);
        }
        let Entries { keys, entries } = entries_of(records, log.capacity_bytes());
        let bytes = entries.iter().map(|entry| entry.head.len()).sum();
        let Some(appended) = log.append_with_reserve(entries).await else {
            self.world.reached("log without room for records of sums");
            let rest = older.split_off(older.len().min(1));
            self.records.put_back(rest.into_iter());
            let oldest = older.into_iter().flat_map(|(_, keys)| keys);
            let changed = changed.iter().map(|cached| cached.key());
            self.write_instead(&changed.chain(oldest).collect::<Vec<_>>())
                .await?;
            return Ok(0);
        };
        for (keys, appended) in keys.into_iter().zip(appended?) {
            self.hold(keys, appended.stamp, appended.hold);
        }
        Ok(bytes)
    }

    /// Whether records that could be made anew keep the log's tail from moving.
    pub fn keeps_tail(&self, log: &Ring<W>) -> bool {
        let oldest = self
            .records
            .by_stamp
            .borrow()
            .front()
            .map(|(stamp, _)| *stamp);
        let behind = log.stamp_behind_tail(log.capacity_bytes() / TAIL_PARTS);
        oldest.is_some_and(|stamp| stamp < behind)
    }

    /// Records of blocks that have changed, and of those with old ones.
    fn records_of(&self, changed: &[Rc<Cached>], older: &[(u64, Vec<u64>)]) -> Vec<SumRecord> {
        let mut records: Vec<SumRecord> = Vec::with_capacity(changed.len());
        records.extend(changed.iter().filter_map(|cached| self.record_of(cached)));
        if older.is_empty() {
            return records;
        }
        let made: FxHashSet<u64> = records.iter().map(SumRecord::key).collect();
        let (slots, found) = (self.slots.borrow(), self.records.found.borrow());
        let old = |stamp: u64, key: &u64| {
            if made.contains(key) {
                return None;
            }
            if let Some(found) = found.get(key) {
                return (found.held.stamp == stamp).then(|| found.record.clone());
            }
            let Some(Slot::Loaded(cached)) = slots.get(key) else {
                return None;
            };
            let record = cached.record.borrow();
            let is_it = record.as_ref().is_some_and(|held| held.stamp == stamp);
            is_it.then(|| self.record_of(cached))?
        };
        let of_entry = older
            .iter()
            .flat_map(|(stamp, keys)| keys.iter().filter_map(|key| old(*stamp, key)));
        let before = records.len();
        records.extend(of_entry);
        if records.len() > before {
            self.world.reached("record of sums made anew");
        }
        records
    }

    fn record_of(&self, cached: &Rc<Cached>) -> Option<SumRecord> {
        let zone = self.drives.zone(cached.zone)?;
        Some(SumRecord {
            zone: cached.zone,
            incarnation: zone.shape.incarnation,
            index: cached.index,
            base: cached.version.get(),
            up_to: self.up_to_of(cached),
            changes: cached.changes(),
        })
    }

    /// The records of these blocks are in the log.
    fn hold(&self, keys: Vec<u64>, stamp: u64, hold: Hold) {
        let held = Held {
            stamp,
            _hold: Rc::new(hold),
        };
        self.count(|stats| stats.records += keys.len() as u64);
        if self.world.planted("records of sums not held") {
            return;
        }
        let slots = self.slots.borrow();
        let mut all_found = self.records.found.borrow_mut();
        for key in &keys {
            match (all_found.get_mut(key), slots.get(key)) {
                (Some(found), _) => found.held = held.clone(),
                (None, Some(Slot::Loaded(cached))) if cached.changed.get() => {
                    cached.record.replace(Some(held.clone()));
                }
                // What the log had of it turned out to be old meanwhile.
                _ => {}
            }
        }
        self.records.by_stamp.borrow_mut().push_back((stamp, keys));
    }

    /// Writes these blocks, of which the log has no room for records.
    async fn write_instead(&self, keys: &[u64]) -> Result<(), DriveError> {
        for part in keys.chunks(self.part_blocks()) {
            // Others are on the drives as they are.
            let known = part.iter().filter(|key| self.is_known(**key));
            let blocks = join_all(known.map(|key| self.cached_of(*key))).await;
            let dirty = blocks.into_iter().filter(|cached| cached.dirty.get());
            self.flush_all(dirty.collect()).await?;
        }
        Ok(())
    }

    /// Whether a block is in RAM, or has a record that a replay has found.
    fn is_known(&self, key: u64) -> bool {
        self.slots.borrow().contains_key(&key) || self.records.found.borrow().contains_key(&key)
    }

    async fn cached_of(&self, key: u64) -> Rc<Cached> {
        let (zone, index) = (key >> 32, key & u64::from(u32::MAX));
        self.cached(zone as u32, index).await
    }

    /// Brings blocks into RAM of which a replay has found records, so many.
    pub(super) async fn load_found(&self, most: usize) {
        let keys: Vec<u64> = {
            let found = self.records.found.borrow();
            found.keys().copied().take(most).collect()
        };
        let loads = keys
            .into_iter()
            .map(async |key| drop(self.cached_of(key).await));
        stream::iter(loads)
            .buffer_unordered(LOADS_AT_ONCE)
            .collect::<()>()
            .await;
    }

    /// Whoever has this writes blocks, or makes records of them, alone.
    pub(super) async fn write_alone(&self) -> Guard {
        self.writing.exclusive(0, 1).await
    }

    /// Whether records take more of the log than they may, or dirty blocks more RAM.
    fn is_over(&self, log: &Ring<W>) -> bool {
        let blocks = (self.dirty.blocks() + self.records.found()) as u64;
        let bytes = blocks * HEAD_BYTES + self.dirty.changes() * CHANGE_BYTES;
        bytes * LOG_PARTS > log.capacity_bytes() || self.wants_flush()
    }

    pub(super) fn part_blocks(&self) -> usize {
        let of_drives = (self.drives.count() * PART_PER_DRIVE).max(PART_MIN);
        self.records.part_blocks.get().unwrap_or(of_drives)
    }

    fn next_of_sweep(&self, most: usize) -> Vec<Rc<Cached>> {
        let place = |cached: &Rc<Cached>| self.place_in_sweep(cached);
        self.dirty.next_of_sweep(most, place)
    }
}

/// Entries with these records, for a log of so many bytes.
fn entries_of(records: Vec<SumRecord>, capacity_bytes: u64) -> Entries {
    let most = (capacity_bytes / ENTRY_PARTS).clamp(ENTRY_BYTES_MIN, ENTRY_BYTES);
    let (mut keys, mut entries) = (Vec::new(), Vec::new());
    let (mut head, mut of_entry) = (Writer::default(), Vec::new());
    let mut end = |head: &mut Writer, of_entry: &mut Vec<u64>| {
        let (head, data) = (mem::take(&mut head.bytes), SmallVec::new());
        entries.push(Entry { head, data });
        keys.push(mem::take(of_entry));
    };
    for record in records {
        record.encode(&mut head);
        of_entry.push(record.key());
        if head.bytes.len() as u64 >= most {
            end(&mut head, &mut of_entry);
        }
    }
    if !of_entry.is_empty() {
        end(&mut head, &mut of_entry);
    }
    Entries { keys, entries }
}
