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
//! - A record may be made while its block is being written. It has what that version changes, too:
//!   so it is right on top of the version that is durable, and of the one on its way.
//! - A record is held until its block is durable or a newer record of the block is.
//! - A record on top of an older version than the drives have is of no use, and does no harm: what
//!   it says is in the newer version.
//! - The room that records take in the log is bounded, and so is the RAM of what they are about.
//!   Beyond it blocks are written, in the order in which they lie on the drives.

use super::block::SUMS;
use super::dirty::Dirty;
use super::held::Held;
use super::{Cached, Integrity, Slot, Sum};
use crate::codec::{Reader, Writer};
use crate::drive::DriveError;
use crate::range_lock::Guard;
use crate::ring::{Entry, Hold, Ring, RingError};
use crate::world::World;
use base::BLOCK_BYTES;
use futures_util::StreamExt;
use futures_util::future::{join, join_all};
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

/// The kind of a record that was made while its block was being written.
pub const SUMS_ON_THEIR_WAY_ITEM: u8 = 5;

/// Beyond one in so many parts of the log that records take, blocks are written.
const LOG_PARTS: u64 = 16;

/// From there to one in so many parts of it, fewer and fewer stripes go in place beside that.
const LOG_PARTS_SLOW: u64 = 11;

/// Beyond one in so many parts of it, the logs wait for that.
const LOG_PARTS_MOST: u64 = 9;

/// The log keeps one in so many parts of itself for records that are due. That is more than all records
/// take, so a full log has room to make those at its tail anew.
const RESERVE_PARTS: u64 = 8;

/// Records that are made anew leave one in so many parts of the log to those of new changes.
const LEFT_TO_CHANGES_PARTS: u64 = 32;

/// Records that are made anew at the same time take one in so many parts of the log, about.
const MADE_ANEW_PARTS: u64 = 64;

/// Records that lie in the first of so many parts of the log, from its tail on, are made anew.
const TAIL_PARTS: u64 = 8;

/// An entry of records ends with the first one beyond so many bytes, or beyond one in so many parts
/// of the log.
const ENTRY_BYTES: u64 = 128 << 10;
const ENTRY_BYTES_MIN: u64 = 2048;
const ENTRY_PARTS: u64 = 512;

/// A log with less room than this keeps no records: an entry would hardly have a place.
const LOG_BYTES_MIN: u64 = 24 * BLOCK;

/// Steps between a whole window and none.
const SHARES: u64 = 256;

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
    /// The version that these are changes of, which is durable.
    pub base: u64,
    /// They are right on top of versions up to this one, too, which is on its way to the drives.
    pub newest: u64,
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
        let ahead = self.newest - self.base;
        w.u8(match ahead {
            0 => SUMS_ITEM,
            _ => SUMS_ON_THEIR_WAY_ITEM,
        });
        w.u64(self.key());
        w.u32(self.changes.len() as u32);
        w.u32(self.incarnation);
        w.u64(self.base);
        w.u64(self.up_to);
        if ahead > 0 {
            w.u64(self.newest);
        }
        for (at, sum) in &self.changes {
            w.u16(*at);
            w.u32(sum.0);
        }
    }

    /// The item's rest, after its kind, the block and how many changes there are; `None` when it is
    /// none.
    pub(crate) fn decode(kind: u8, key: u64, changes: u32, r: &mut Reader<'_>) -> Option<Self> {
        let (incarnation, base, up_to) = (r.u32()?, r.u64()?, r.u64()?);
        let newest = match kind {
            SUMS_ON_THEIR_WAY_ITEM => r.u64().filter(|newest| *newest > base)?,
            _ => base,
        };
        let mut change = || Some((r.u16()?, Sum(r.u32()?)));
        let changes: Vec<(u16, Sum)> = (0..changes).map(|_| change()).collect::<Option<_>>()?;
        let is_of_block = |(at, _): &(u16, Sum)| usize::from(*at) < SUMS;
        changes.iter().all(is_of_block).then_some(SumRecord {
            zone: (key >> 32) as u32,
            incarnation,
            index: key as u32,
            base,
            newest,
            up_to,
            changes,
        })
    }
}

/// A record that a replay has found, of a block that is not in RAM.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) record: SumRecord,
    pub(super) held: Held,
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

    /// Blocks have a record with that stamp.
    fn note(&self, stamp: u64, keys: impl IntoIterator<Item = u64>) {
        let mut by_stamp = self.by_stamp.borrow_mut();
        let at = by_stamp.partition_point(|(at, _)| *at < stamp);
        match by_stamp.get_mut(at).filter(|(at, _)| *at == stamp) {
            Some((_, of_entry)) => of_entry.extend(keys),
            None => by_stamp.insert(at, (stamp, keys.into_iter().collect())),
        }
    }

    /// Takes off the blocks of the oldest entry, with its stamp, if that is lower than `stamp`.
    fn take_oldest(&self, stamp: u64) -> Option<(u64, Vec<u64>)> {
        let mut by_stamp = self.by_stamp.borrow_mut();
        by_stamp.front().filter(|(at, _)| *at < stamp)?;
        by_stamp.pop_front()
    }

    /// Whether the oldest entry has a stamp lower than `stamp`.
    fn begin_before(&self, stamp: u64) -> bool {
        let by_stamp = self.by_stamp.borrow();
        by_stamp.front().is_some_and(|(oldest, _)| *oldest < stamp)
    }

    /// Forgets entries that are not in the log any more.
    fn forget_before(&self, tail_stamp: u64) {
        let mut by_stamp = self.by_stamp.borrow_mut();
        let gone = by_stamp.partition_point(|(at, _)| *at < tail_stamp);
        by_stamp.drain(..gone);
    }
}

impl Cached {
    /// Changes what a record says; nothing has changed since the record but what follows.
    pub(super) fn take_up(self: &Rc<Self>, found: Found, dirty: &Dirty) {
        for (at, sum) in &found.record.changes {
            self.sums.borrow_mut().set(usize::from(*at), *sum);
            self.set_recorded(usize::from(*at), dirty);
        }
        // A record of nothing would stay in the log for ever.
        if self.is_ahead() {
            self.set_record(found.held);
        }
    }
}

/// Records on their way to the log, with what they are made of.
struct Entries {
    /// The blocks of each entry.
    keys: Vec<Vec<u64>>,
    entries: Vec<Entry>,
}

/// What came of putting records down.
#[derive(Default)]
struct PutDown {
    /// What they take in the log.
    bytes: usize,
    /// The blocks of those for which the log has no room.
    without_room: Vec<u64>,
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
        let has_disks = || self.drives.has_disks();
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
        if !is_of_it || u64::from(record.index) >= zone.shape.sums.count() {
            return;
        }
        let key = record.key();
        let held = Held {
            stamp,
            _hold: Rc::clone(hold),
        };
        // It may have been on its way to the drives, or was written anew at an opening before.
        self.may_be_torn.borrow_mut().insert(key);
        self.records.note(stamp, [key]);
        let found = Found { record, held };
        self.records.found.borrow_mut().insert(key, found);
    }

    /// Writes the next part of what is dirty; a smaller one when the drives are idle. The log may
    /// take records meanwhile.
    ///
    /// # Errors
    /// What a drive said that can't be done without.
    pub async fn write_part(&self, is_idle: bool) -> Result<(), DriveError> {
        let _alone = self.write_alone().await;
        // Nothing urges what is written at rest, and reads may go on.
        let part = match is_idle {
            true => self.part_blocks().div_ceil(REST_PARTS),
            false => self.part_blocks(),
        };
        let mut some = self.next_of_sweep(part);
        if some.is_empty() {
            self.load_found(part).await;
            some = self.next_of_sweep(part);
        }
        if some.len() < self.dirty.blocks() {
            self.world.reached("part of the sums written");
        }
        self.flush_all(some).await
    }

    /// Writes blocks while records would take too much of the log.
    async fn write_while_far_over(&self, log: &Ring<W>) -> Result<(), DriveError> {
        // What becomes dirty meanwhile is for the next call: the logs wait for this one.
        let mut most = self.dirty.blocks() + self.records.found();
        while most > 0 && self.is_far_over(log) {
            self.world.reached("logs wait for sums to be written");
            self.write_part(false).await?;
            most = most.saturating_sub(self.part_blocks());
        }
        Ok(())
    }

    /// Writes all that is dirty, where no records are kept.
    async fn write_all(&self) -> Result<(), DriveError> {
        let _alone = self.write_alone().await;
        drop((self.dirty.take_unfit(), self.dirty.take_unrecorded()));
        self.load_found(self.part_blocks()).await;
        self.flush_all(self.dirty.all()).await
    }

    /// Writes what records can't speak for, and ends when others have written such blocks, too.
    async fn mend(&self) -> Result<(), DriveError> {
        while self.dirty.has_unfit() || self.is_mending.get() {
            let _alone = self.write_alone().await;
            self.flush_all(self.dirty.take_unfit()).await?;
        }
        Ok(())
    }

    /// Makes durable what has changed: in that log, where records are kept. It makes those anew that
    /// keep the log's tail from moving, when it `wants_room`. Returns the bytes that this took.
    /// Where the log has no room, blocks are written.
    ///
    /// # Errors
    /// What the log said, or a drive that can't be done without.
    pub async fn record(&self, log: &Rc<Ring<W>>, wants_room: bool) -> Result<usize, RecordError> {
        self.records.forget_before(log.tail_stamp());
        if !self.keeps_records() {
            self.write_all().await?;
            return Ok(0);
        }
        self.write_while_far_over(log).await?;
        let _alone = self.recording.lock().await;
        self.mend().await?;
        let changed = self.dirty.take_unrecorded();
        let of_changed: Vec<_> = changed.iter().filter_map(|c| self.record_of(c)).collect();
        let made: FxHashSet<u64> = of_changed.iter().map(SumRecord::key).collect();
        let keeps_very_tail = self.keeps_very_tail(log);
        let of_older = match wants_room {
            true => self.made_anew(log, &made),
            false => Vec::new(),
        };
        let leaves_bytes = log.capacity_bytes() / LEFT_TO_CHANGES_PARTS;
        let both = join(
            self.put_down(log, of_changed, 0),
            self.put_down(log, of_older, leaves_bytes),
        );
        let (changed, older) = both.await;
        let (changed, older) = (changed?, older?);
        self.write_instead(&changed.without_room).await?;
        let older_keys = &older.without_room;
        // The blocks are written where nothing else would make room. That takes long, and the log does
        // not move meanwhile.
        let most = match keeps_very_tail {
            true => self.part_blocks(),
            false => 0,
        };
        let (now, later) = older_keys.split_at(older_keys.len().min(most));
        later.iter().for_each(|key| self.note_again(*key));
        self.write_instead(now).await?;
        Ok(changed.bytes + older.bytes)
    }

    /// Puts records down in that log, all of them or none; of its room they leave so many bytes.
    async fn put_down(
        &self,
        log: &Rc<Ring<W>>,
        records: Vec<SumRecord>,
        leaves_bytes: u64,
    ) -> Result<PutDown, RecordError> {
        if records.is_empty() {
            return Ok(PutDown::default());
        }
        let Entries { keys, entries } = entries_of(records, log.capacity_bytes());
        let bytes = entries.iter().map(|entry| entry.head.len()).sum();
        let Some(appended) = log.append_with_reserve(entries, leaves_bytes).await else {
            self.world.reached("log without room for records of sums");
            return Ok(PutDown {
                bytes: 0,
                without_room: keys.concat(),
            });
        };
        for (keys, appended) in keys.into_iter().zip(appended?) {
            self.hold(keys, appended.stamp, appended.hold);
        }
        Ok(PutDown {
            bytes,
            without_room: Vec::new(),
        })
    }

    /// The record of a block is made anew later.
    fn note_again(&self, key: u64) {
        if let Some(stamp) = self.record_stamp(key) {
            self.records.note(stamp, [key]);
        }
    }

    /// The stamp of a block's newest record in the log.
    fn record_stamp(&self, key: u64) -> Option<u64> {
        if let Some(found) = self.records.found.borrow().get(&key) {
            return Some(found.held.stamp);
        }
        match self.slots.borrow().get(&key) {
            Some(Slot::Loaded(cached)) => cached.record_stamp(),
            _ => None,
        }
    }

    /// Whether records that could be made anew keep the log's tail from moving.
    pub fn keeps_tail(&self, log: &Ring<W>) -> bool {
        let behind = log.stamp_behind_tail(log.capacity_bytes() / TAIL_PARTS);
        self.keeps_records() && self.records.begin_before(behind)
    }

    /// Whether one of them is the oldest that the log holds, as far as the records know.
    fn keeps_very_tail(&self, log: &Ring<W>) -> bool {
        self.records.begin_before(log.stamp_behind_tail(1))
    }

    /// Records in the place of those that lie at the log's tail, but for the blocks of which some are
    /// `made`: as many as take [`MADE_ANEW_PARTS`] of the log.
    fn made_anew(&self, log: &Ring<W>, made: &FxHashSet<u64>) -> Vec<SumRecord> {
        let most_bytes = log.capacity_bytes() / MADE_ANEW_PARTS;
        let up_to = log.stamp_behind_tail(log.capacity_bytes() / TAIL_PARTS);
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < most_bytes
            && let Some((stamp, keys)) = self.records.take_oldest(up_to)
        {
            let others = keys.iter().filter(|key| !made.contains(key));
            for record in others.filter_map(|key| self.old_record(stamp, *key)) {
                bytes += HEAD_BYTES + CHANGE_BYTES * record.changes.len() as u64;
                records.push(record);
            }
        }
        if !records.is_empty() {
            self.world.reached("record of sums made anew");
        }
        records
    }

    /// The record of a block as it is now, if its newest one has that stamp.
    fn old_record(&self, stamp: u64, key: u64) -> Option<SumRecord> {
        if self.record_stamp(key) != Some(stamp) {
            return None;
        }
        if let Some(found) = self.records.found.borrow().get(&key) {
            return Some(found.record.clone());
        }
        match self.slots.borrow().get(&key) {
            Some(Slot::Loaded(cached)) => self.record_of(cached),
            _ => None,
        }
    }

    fn record_of(&self, cached: &Rc<Cached>) -> Option<SumRecord> {
        let zone = self.drives.zone(cached.zone)?;
        if !cached.is_ahead() {
            return None;
        }
        let flight = cached.flight.borrow();
        let flight = flight.as_ref();
        let base = flight.map_or(cached.version.get(), |flight| flight.base);
        if flight.is_some() {
            self.world.reached("record of sums on their way");
        }
        let is_planted = self.world.planted("record without sums on their way");
        Some(SumRecord {
            zone: cached.zone,
            incarnation: zone.shape.incarnation,
            index: cached.index,
            base,
            newest: cached.version.get(),
            up_to: self.up_to_of(cached),
            changes: cached.changes(flight.filter(|_| !is_planted)),
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
                (None, Some(Slot::Loaded(cached))) if cached.is_ahead() => {
                    cached.set_record(held.clone());
                }
                // What the log had of it turned out to be old meanwhile.
                _ => {}
            }
        }
        self.records.note(stamp, keys);
    }

    /// Writes these blocks, of which the log has no room for records.
    async fn write_instead(&self, keys: &[u64]) -> Result<(), DriveError> {
        if keys.is_empty() {
            return Ok(());
        }
        let _alone = self.write_alone().await;
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
    pub(super) async fn load_found(&self, most: usize) -> Vec<Rc<Cached>> {
        let keys: Vec<u64> = {
            let found = self.records.found.borrow();
            found.keys().copied().take(most).collect()
        };
        let loads = keys.into_iter().map(|key| self.cached_of(key));
        stream::iter(loads)
            .buffer_unordered(LOADS_AT_ONCE)
            .collect()
            .await
    }

    /// Whoever has this writes blocks alone.
    pub(super) async fn write_alone(&self) -> Guard {
        self.writing.exclusive(0, 1).await
    }

    /// Whether records take so much of the log, or dirty blocks of the RAM, that blocks are to be
    /// written.
    pub fn wants_part(&self, log: &Ring<W>) -> bool {
        self.keeps_records()
            && (self.recorded_bytes() * LOG_PARTS > log.capacity_bytes() || self.wants_flush())
    }

    /// The part of its window that the destager may use, in parts of so many. It is smaller the more room
    /// records take, from where blocks are written on, and the more of the RAM is dirty.
    pub fn window_share(&self, log: &Ring<W>) -> (u64, u64) {
        if !self.keeps_records() {
            return (SHARES, SHARES);
        }
        let (capacity, budget) = (log.capacity_bytes(), self.budget_blocks.get() as u64);
        let share_of = |used: u64, (from, to): (u64, u64)| {
            let over = used.clamp(from, to) - from;
            over * SHARES / (to - from).max(1)
        };
        let of_log = share_of(
            self.recorded_bytes(),
            (capacity / LOG_PARTS, capacity / LOG_PARTS_SLOW),
        );
        let of_ram = share_of(
            self.dirty.blocks() as u64,
            (budget / 2, budget / 2 + budget / 4),
        );
        (SHARES - of_log.max(of_ram), SHARES)
    }

    /// Whether they take more than they may.
    fn is_far_over(&self, log: &Ring<W>) -> bool {
        self.recorded_bytes() * LOG_PARTS_MOST > log.capacity_bytes()
            || self.dirty.blocks() * 4 > self.budget_blocks.get() * 3
    }

    /// Bytes that records of all that is dirty take, about.
    fn recorded_bytes(&self) -> u64 {
        let blocks = (self.dirty.blocks() + self.records.found()) as u64;
        blocks * HEAD_BYTES + self.dirty.changes() * CHANGE_BYTES
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
