//! Making changed sums durable.

use super::areas::Areas;
use super::block::{self, BlockId, SUMS, Version};
use super::sums::Sums;
use super::{Cached, Integrity, Sum};
use crate::drive::DriveError;
use crate::drives::Zone;
use crate::drives::doubt::{LOOKS, PATIENCE, PAUSE};
use crate::drives::{DriveFault, Member, flush_each};
use crate::world::World;
use base::{BLOCK_BYTES, DriveOffset, Slice};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use std::cell::RefCell;
use std::rc::Rc;

/// An area is formatted this much at a time.
const TRANSFER_BYTES: u64 = 256 << 10;

/// Blocks that are put right, or written anew, together.
pub(super) const BLOCKS_AT_ONCE: usize = 128;

/// Blocks on their way at the same time: for each drive of the pool, and at least and at most.
const BLOCKS_PER_DRIVE: usize = 8;
const BLOCKS_MIN: usize = 32;
const BLOCKS_MAX: usize = 1024;

/// The way it was: a copy that was asked for while its block was being flushed.
const FORGOTTEN: &str = "copy of sums forgotten by a rebuild";

impl<W: World> Integrity<W> {
    /// Makes everything that was set before the call durable on every copy in use.
    ///
    /// # Errors
    /// What a drive said that can't be done without.
    pub async fn flush(&self) -> Result<(), DriveError> {
        self.flushing
            .run(async || self.flush_in_parts().await)
            .await
    }

    async fn flush_in_parts(&self) -> Result<(), DriveError> {
        loop {
            let some = self.load_found(self.part_blocks()).await;
            if some.is_empty() {
                break;
            }
            self.flush_parts(some).await?;
        }
        let all = {
            // What somebody is writing now is not dirty any more, and not durable yet.
            let _alone = self.write_alone().await;
            self.dirty.all()
        };
        self.flush_parts(all).await
    }

    /// Makes durable what has changed in a zone. Where records are kept, much of it stays in RAM for
    /// long otherwise.
    ///
    /// # Errors
    /// What a drive said that can't be done without.
    pub async fn flush_zone(&self, zone: u32) -> Result<(), DriveError> {
        self.flush_parts(self.dirty.of_zone(zone)).await
    }

    /// Makes these blocks durable. Others who write blocks get their turn between parts.
    async fn flush_parts(&self, mut all: Vec<Rc<Cached>>) -> Result<(), DriveError> {
        all.sort_by_cached_key(|cached| self.place_in_sweep(cached));
        for part in all.chunks(self.part_blocks()) {
            let _alone = self.write_alone().await;
            let dirty = part.iter().filter(|cached| cached.dirty.get());
            self.flush_all(dirty.cloned().collect()).await?;
        }
        Ok(())
    }

    /// Makes these blocks durable on every copy in use. The caller holds `writing`.
    pub(super) async fn flush_all(&self, mut dirty: Vec<Rc<Cached>>) -> Result<(), DriveError> {
        // What is asked of a block from here on is for the next flush: this one may be past it
        // already. A block may be named twice.
        if !self.world.planted(FORGOTTEN) {
            dirty.retain(|cached| cached.set_clean(&self.dirty));
        }
        let is_unfit = |c: &Rc<Cached>| c.anew.get() || !c.behind.borrow().is_empty();
        self.is_mending.set(dirty.iter().any(is_unfit));
        for some in dirty.chunks(BLOCKS_AT_ONCE) {
            let areas = self.areas_behind(some).await;
            let copies = some.iter().map(|cached| self.put_right(cached, &areas));
            let outcomes = join_all(copies).await;
            outcomes.into_iter().collect::<Result<(), _>>()?;
        }
        self.flush_sweep(&dirty).await?;
        // Those that are to be written anew are still in the list.
        let anew: Vec<_> = dirty.iter().filter(|c| c.anew.get()).collect();
        for some in anew.chunks(BLOCKS_AT_ONCE) {
            let flushes = some.iter().map(|cached| self.flush_apart(cached));
            let outcomes = join_all(flushes).await;
            outcomes.into_iter().collect::<Result<(), _>>()?;
        }
        self.is_mending.set(false);
        dirty.iter().for_each(|cached| cached.arrive());
        Ok(())
    }

    /// Gives copies that are behind what a whole one has, slot by slot and durably; no
    /// whole copy is touched, so a crash takes nothing that was there.
    async fn put_right(&self, cached: &Rc<Cached>, areas: &Areas) -> Result<(), DriveError> {
        let behind = cached.behind.take();
        if cached.anew.get() {
            // No copy is whole: all are written.
            return Ok(());
        }
        let Some(zone) = self.drives.zone(cached.zone).filter(|_| !behind.is_empty()) else {
            return Ok(());
        };
        let (index, version) = (u64::from(cached.index), cached.version.get());
        let found = self.whole_pair_at_last(&zone, (index, version), &behind, areas);
        let Some(slots) = found.await else {
            cached.anew.set(true);
            return Ok(());
        };
        let copies = zone.shape.copies(index);
        let writes = copies
            .filter(|(place, _)| behind.contains(place))
            .map(|(place, pair)| {
                let (slots, member) = (slots.clone(), zone.place(place));
                self.put_pair(member, &zone, pair, slots, version)
            });
        let faults: Vec<_> = join_all(writes).await.into_iter().flatten().collect();
        self.may_be_torn
            .borrow_mut()
            .remove(&super::key(cached.zone, index));
        match faults.is_empty() && self.drives.are_losses_durable() {
            true => Ok(()),
            false => self.drives.absorb(faults).await,
        }
    }

    /// A whole copy of that version. Where there may be one it is looked for several times: its
    /// drive may be cut off for a moment. To write the block anew would go over that copy.
    async fn whole_pair_at_last(
        &self,
        zone: &Zone<W>,
        of: (u64, u64),
        behind: &[usize],
        areas: &Areas,
    ) -> Option<[Slice; 2]> {
        if !areas.is_empty()
            && let Some(found) = self.whole_pair(zone, of, behind, areas).await
        {
            return Some(found);
        }
        // From here on the drives are asked.
        let areas = &Areas::default();
        for _ in 0..LOOKS {
            let began = self.world.now();
            let found = self.whole_pair(zone, of, behind, areas).await;
            let mut others = zone
                .shape
                .copies(of.0)
                .filter(|(place, _)| !behind.contains(place))
                .map(|(place, _)| zone.place(place));
            let may_be_whole = others.any(|other| other.is_readable(zone.shape.zone));
            if found.is_some() || !may_be_whole || self.world.now().since(began) > PATIENCE {
                return found;
            }
            self.world.sleep(PAUSE).await;
        }
        self.whole_pair(zone, of, behind, areas).await
    }

    /// Writes the older slot of a pair, then the newer one.
    pub(super) async fn put_pair(
        &self,
        member: Rc<Member<W>>,
        zone: &Zone<W>,
        pair: u64,
        slots: [Slice; 2],
        version: u64,
    ) -> Option<DriveFault<W>> {
        for version in [version - 1, version] {
            if !member.is_writable() {
                return None;
            }
            self.count(|stats| stats.writes += 1);
            let data = slots[(version % 2) as usize].clone();
            let at = zone.shape.slot_at(pair, version);
            if let Err(error) = member.write_durably(at, data).await {
                return Some(DriveFault { member, error });
            }
        }
        None
    }

    /// Writes a block of which no copy is whole, or could be had: one copy after the
    /// other, and each slot by itself. Both slots are new afterwards.
    async fn flush_apart(&self, cached: &Rc<Cached>) -> Result<(), DriveError> {
        cached.anew.set(false);
        cached.set_out(&self.dirty);
        let Some(zone) = self.drives.zone(cached.zone) else {
            return Ok(());
        };
        let version = cached.version.get();
        cached.version.set(version + 2);
        let sums = cached.sums.borrow().clone();
        let up_to = self.up_to_of(cached);
        let id = self.block_id(&zone, u64::from(cached.index));
        for (place, pair) in zone.shape.copies(u64::from(cached.index)) {
            for number in [version + 1, version + 2] {
                let version = Version { number, up_to };
                let data = self.slot(id, version, &sums);
                let at = zone.shape.slot_at(pair, number);
                for taker in zone.takers(place) {
                    self.count(|stats| stats.writes += 1);
                    let written = taker.member.write_durably(at, data.clone()).await;
                    if let Err(error) = written
                        && !taker.excuses()
                    {
                        let member = taker.member;
                        let fault = DriveFault { member, error };
                        self.drives.absorb(vec![fault]).await?;
                    }
                }
            }
        }
        let key = super::key(cached.zone, u64::from(cached.index));
        self.may_be_torn.borrow_mut().remove(&key);
        self.drives.absorb(Vec::new()).await
    }

    /// Up to which stamp log entries are in a block as it is now. A replay, while it goes
    /// on, takes nothing from what the drives had already.
    pub(super) fn up_to_of(&self, cached: &Cached) -> u64 {
        self.watermark.up_to().max(cached.up_to)
    }

    /// What is written of a version.
    fn slot(&self, id: BlockId, version: Version, sums: &Sums) -> Slice {
        let buffers = self.world.buffers();
        match self.is_byteless() {
            true => buffers.data(BLOCK_BYTES).freeze(),
            false => {
                let bytes = block::encode(id, version, &sums.each());
                buffers.copy_of(&bytes).freeze()
            }
        }
    }

    /// Writes blocks in the order in which they lie on the drives, a bounded number at a time, and
    /// then flushes each drive once.
    async fn flush_sweep(&self, dirty: &[Rc<Cached>]) -> Result<(), DriveError> {
        let mut sweep: Vec<&Rc<Cached>> = dirty.iter().filter(|c| !c.anew.get()).collect();
        sweep.sort_by_cached_key(|cached| self.place_in_sweep(cached));
        let touched = RefCell::new(Vec::new());
        let writes = sweep.iter().map(|cached| self.flush_one(cached, &touched));
        let writes = stream::iter(writes).buffer_unordered(self.blocks_at_once());
        let mut faults: Vec<DriveFault<W>> = writes.concat().await;
        faults.extend(flush_each(touched.into_inner(), Member::flush).await);
        if !(faults.is_empty() && self.drives.are_losses_durable()) {
            self.drives.absorb(faults).await?;
        }
        let mut torn = self.may_be_torn.borrow_mut();
        for cached in sweep {
            torn.remove(&super::key(cached.zone, u64::from(cached.index)));
        }
        Ok(())
    }

    /// Blocks on their way to the drives at the same time. Host reads wait behind them in the
    /// drives' queues.
    fn blocks_at_once(&self) -> usize {
        (self.drives.count() * BLOCKS_PER_DRIVE).clamp(BLOCKS_MIN, BLOCKS_MAX)
    }

    /// The order in which blocks are written: as their first copies lie on the drives.
    pub(super) fn place_in_sweep(&self, cached: &Cached) -> (Option<DriveOffset>, u32, u32) {
        let first = self.drives.zone(cached.zone).and_then(|zone| {
            let mut copies = zone.shape.copies(u64::from(cached.index));
            copies.next().map(|(_, pair)| zone.shape.slot_at(pair, 0))
        });
        (first, cached.zone, cached.index)
    }

    /// Writes the next version of a block to all copies in use, not durably; notes their drives.
    async fn flush_one(
        &self,
        cached: &Cached,
        touched: &RefCell<Vec<Rc<Member<W>>>>,
    ) -> Vec<DriveFault<W>> {
        if self.world.planted(FORGOTTEN) {
            cached.set_clean(&self.dirty);
        }
        if !cached.set_out(&self.dirty) {
            return Vec::new();
        }
        if self.world.planted("sums on their way taken for durable") {
            cached.unrecorded.set(false);
        }
        let Some(zone) = self.drives.zone(cached.zone) else {
            return Vec::new();
        };
        let (number, data) = self.next_version(cached, &zone);
        let slot = match self.world.planted("integrity slot not alternated") {
            true => 0,
            false => number,
        };
        let copies = zone.shape.copies(u64::from(cached.index));
        let takers = copies.flat_map(|(place, pair)| {
            let takers = zone.takers(place);
            takers.map(move |taker| (pair, taker))
        });
        let writes = takers.map(|(pair, taker)| {
            let mut touched = touched.borrow_mut();
            if !touched.iter().any(|other| Rc::ptr_eq(other, &taker.member)) {
                touched.push(Rc::clone(&taker.member));
            }
            self.count(|stats| stats.writes += 1);
            let (at, data) = (zone.shape.slot_at(pair, slot), data.clone());
            async move {
                let error = taker.member.write(at, data).await.err()?;
                let (is_fault, member) = (!taker.excuses(), taker.member);
                is_fault.then_some(DriveFault { member, error })
            }
        });
        join_all(writes).await.into_iter().flatten().collect()
    }

    /// The number of a block's next version, and its bytes.
    fn next_version(&self, cached: &Cached, zone: &Zone<W>) -> (u64, Slice) {
        cached.version.set(cached.version.get() + 1);
        let number = cached.version.get();
        let id = self.block_id(zone, u64::from(cached.index));
        let up_to = self.up_to_of(cached);
        let data = self.slot(id, Version { number, up_to }, &cached.sums.borrow());
        (number, data)
    }

    /// Writes all sums of a zone as unwritten, to every copy, durably.
    ///
    /// # Errors
    /// What a drive said that can't be done without.
    pub async fn format_zone(&self, zone: &Zone<W>) -> Result<(), DriveError> {
        let geometry = zone.shape.geometry;
        let total = zone.shape.sums.count();
        let version = Version {
            number: self.first_version(),
            up_to: self.watermark.up_to(),
        };
        if self.is_byteless() {
            let mut kept = self.kept.borrow_mut();
            kept.format(zone.shape.zone, total, version.number);
        }
        let area = block::area_bytes(geometry, zone.shape.slots, zone.zone_bytes());
        let places: Vec<(usize, Rc<Member<W>>)> = (0..geometry.places())
            .map(|place| (place, zone.place(place)))
            .filter(|(_, member)| member.is_writable())
            .collect();
        let formats = places
            .iter()
            .map(|place| self.format_area(zone, place, area, version));
        let mut faults: Vec<DriveFault<W>> =
            join_all(formats).await.into_iter().flatten().collect();
        if !self.world.planted("sums of a new zone not flushed") {
            let members = places.into_iter().map(|(_, member)| member).collect();
            faults.extend(flush_each(members, Member::flush).await);
        }
        match faults.is_empty() && self.drives.are_losses_durable() {
            true => Ok(()),
            false => self.drives.absorb(faults).await,
        }
    }

    async fn format_area(
        &self,
        zone: &Zone<W>,
        (place, member): &(usize, Rc<Member<W>>),
        area: u64,
        version: Version,
    ) -> Option<DriveFault<W>> {
        let empty = [Sum::UNWRITTEN; SUMS];
        let before = Version {
            number: version.number - 1,
            ..version
        };
        let mut at = zone.shape.slots.first();
        while at < area {
            let len = TRANSFER_BYTES.min(area - at);
            let mut buf = self.world.buffers().zeroed(len as usize);
            if let Some(bytes) = buf.bytes_mut() {
                let blocks = (at..)
                    .step_by(BLOCK_BYTES)
                    .zip(bytes.chunks_mut(BLOCK_BYTES));
                for (at, block_at) in blocks {
                    let Some((pair, slot)) = zone.shape.slots.slot_at(at) else {
                        continue;
                    };
                    if let Some(index) = zone.shape.copy_at(*place, pair) {
                        // Versions that are next to each other: the copy is whole.
                        let version = if slot == 0 { version } else { before };
                        let id = self.block_id(zone, index);
                        block_at.copy_from_slice(&block::encode(id, version, &empty));
                    }
                }
            }
            let offset: DriveOffset = zone.shape.area + at;
            if let Err(error) = member.write(offset, buf.freeze()).await {
                let member = Rc::clone(member);
                return Some(DriveFault { member, error });
            }
            at += len;
        }
        None
    }

    /// The blocks of a zone's sums of which the drive at `place` has a copy.
    pub(super) fn hosted(&self, zone: &Zone<W>, place: usize) -> Vec<u64> {
        let total = zone.shape.sums.count();
        let is_there = |index: &u64| zone.shape.copies(*index).any(|(at, _)| at == place);
        (0..total).filter(is_there).collect()
    }

    /// Gives a drive that is being rebuilt its copies of a zone's sums.
    ///
    /// # Errors
    /// What a drive said that can't be done without.
    pub async fn rebuild_copies(&self, zone: &Zone<W>, place: usize) -> Result<(), DriveError> {
        let hosted = self.hosted(zone, place);
        for some in hosted.chunks(BLOCKS_AT_ONCE) {
            let mut held = Vec::with_capacity(some.len());
            self.load_ahead(zone, some.iter().copied()).await;
            for index in some {
                let cached = self.cached(zone.shape.zone, *index).await;
                cached.set_behind([place], &self.dirty);
                held.push(cached);
            }
            self.flush().await?;
            for cached in &held {
                assert!(
                    !cached.behind.borrow().contains(&place),
                    "checksums {} of zone {} are not on a rebuilt drive",
                    cached.index,
                    cached.zone
                );
            }
        }
        Ok(())
    }
}
