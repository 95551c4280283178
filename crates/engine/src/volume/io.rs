//! The data path: volume → page → group.
//!
//! Invariants:
//! - A write that ends well is durable, in the log or in place.
//! - While a write to a block is in flight, nobody reads or writes that block: so
//!   no reader sees a value that a later reader doesn't.
//! - A page enters the map only when all of it, zeroes included, is durable. So a
//!   page never shows what was there before.

use super::{IoError, IoErrorKind, Volume};
use crate::error::PoolError;
use crate::meta::Record;
use crate::space::Claim;
use crate::store::{Unreadable, Write};
use crate::world::World;
use base::{
    BLOCK_BYTES, PageIndex, Payload, PhysPage, PoolOffset, SECTOR_BYTES, Slice, VolumeOffset,
};
use futures_util::future::{join, join_all};

/// A run of bytes inside one page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub page: PageIndex,
    /// Offset in the page.
    pub inside: u64,
    /// Offset in the request.
    pub start: usize,
    pub len: usize,
}

/// The runs of `len` bytes at `at`, one a page.
pub(super) fn runs(page_bytes: u64, at: u64, len: usize) -> impl Iterator<Item = Run> {
    let mut start = 0;
    std::iter::from_fn(move || {
        if start == len {
            return None;
        }
        let address = at + start as u64;
        let inside = address % page_bytes;
        let taken = (page_bytes - inside).min((len - start) as u64) as usize;
        let run = Run {
            page: PageIndex(address / page_bytes),
            inside,
            start,
            len: taken,
        };
        start += taken;
        Some(run)
    })
}

/// Pages of a map looked at at once.
const LOOKED_PAGES_MAX: u64 = 64 << 10;

/// The whole blocks around a run of bytes.
pub(super) fn block_span(at: u64, len: u64) -> (u64, u64) {
    let block = BLOCK_BYTES as u64;
    (at / block * block, (at + len).next_multiple_of(block))
}

impl<W: World> Volume<W> {
    /// Reads `len` bytes from `at`, both multiples of [`base::SECTOR_BYTES`].
    /// Zeroes where nothing was ever written.
    ///
    /// # Errors
    /// `OutOfRange`, `Media` with the first byte that no copy could give, `Deleted`,
    /// `PoolFailed`.
    pub async fn read(&self, at: VolumeOffset, len: usize) -> Result<Payload, IoError> {
        if let Some(there) = self.core.live.moved() {
            return there.read(at, len).await;
        }
        self.check_range(at, len)?;
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        if len == 0 {
            return Ok(Payload::new());
        }
        self.inner.store().counts.host_read(len);
        let (start, end) = block_span(at.0, len as u64);
        self.follow(start, end);
        let range = self.core.live.ranges.shared(start, end).await;
        if let Some(there) = self.core.live.moved() {
            drop(range);
            return there.read(at, len).await;
        }
        self.check_end(at, len as u64)?;
        let blocks = self.read_blocks(start, (end - start) as usize).await;
        if blocks.is_err() {
            // What could not be read because the pool has stopped is not lost.
            self.settle(at)?;
        }
        let blocks = blocks.map_err(|error| error.within(at, len as u64))?;
        Ok(blocks.slice((at.0 - start) as usize, len))
    }

    /// Writes `data` at `at`, both multiples of [`base::SECTOR_BYTES`]. When it
    /// ends well the data is durable.
    ///
    /// # Errors
    /// `OutOfRange`, `Media`, `PoolFull`, `Deleted`, `PoolFailed`. What the range
    /// holds after an error is, sector by sector, what was there or `data`.
    pub async fn write(&self, at: VolumeOffset, data: Slice) -> Result<(), IoError> {
        if let Some(there) = self.core.live.moved() {
            return there.write(at, data).await;
        }
        self.check_range(at, data.len())?;
        self.check_writable(at)?;
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        if data.is_empty() {
            return Ok(());
        }
        self.inner.store().counts.host_write(data.len());
        let (start, end) = block_span(at.0, data.len() as u64);
        let (from, to) = match self
            .inner
            .world()
            .planted("lock not widened to whole blocks")
        {
            true => (at.0, at.0 + data.len() as u64),
            false => (start, end),
        };
        let range = self.core.live.ranges.exclusive(from, to).await;
        if let Some(there) = self.core.live.moved() {
            drop(range);
            return there.write(at, data).await;
        }
        self.check_end(at, data.len() as u64)?;
        let len = data.len() as u64;
        let mirrored = self.core.live.mirror().map(|_| data.clone());
        let written = self.write_held(at, data).await;
        if let Some(data) = mirrored {
            Box::pin(self.mirror_write(at.0, data, written.is_ok())).await;
        }
        // What could not be copied because the pool has stopped is not lost.
        self.settle(at)?;
        written.map_err(|error| error.within(at, len))
    }

    /// Ends when everything acknowledged before is durable (it is already; this
    /// reports a pool that has failed).
    ///
    /// # Errors
    /// `Deleted`, `PoolFailed`.
    pub async fn flush(&self) -> Result<(), IoError> {
        let at = VolumeOffset(0);
        if let Some(there) = self.core.live.moved() {
            return there.flush().await;
        }
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        self.settle(at)
    }

    /// Before anything is acknowledged: the pool is sound.
    pub(super) fn settle(&self, at: VolumeOffset) -> Result<(), IoError> {
        self.inner.check().map_err(|error| failed(at, error))
    }

    pub(super) fn check_range(&self, at: VolumeOffset, len: usize) -> Result<(), IoError> {
        let sector = SECTOR_BYTES as u64;
        let size = self.size_bytes();
        let end = at.0.checked_add(len as u64);
        let whole = at.0.is_multiple_of(sector) && (len as u64).is_multiple_of(sector);
        if !whole || end.is_none_or(|end| end > size) {
            let context = format!(
                "{len} bytes at {at} of volume '{}': allowed are whole sectors up to {size}",
                self.core.name
            );
            return Err(IoError {
                kind: IoErrorKind::OutOfRange,
                at,
                context,
            });
        }
        if self.core.live.withheld.get() {
            return Err(self.withheld(at));
        }
        self.inner.go_on().map_err(|error| failed(at, error))
    }

    /// That it may not be what it was last.
    fn withheld(&self, at: VolumeOffset) -> IoError {
        let transit = self.core.properties.get().transit;
        let other = transit.map_or(String::new(), |transit| transit.pool_name);
        IoError {
            kind: IoErrorKind::Withheld,
            at,
            context: format!(
                "volume '{}' was on its way between pools '{}' and '{other}', and may be older here: serve '{other}', too, or call the move off",
                self.core.name,
                self.inner.identity().name
            ),
        }
    }

    pub(super) fn check_writable(&self, at: VolumeOffset) -> Result<(), IoError> {
        match self.core.read_only {
            false => Ok(()),
            true => Err(IoError {
                kind: IoErrorKind::ReadOnly,
                at,
                context: format!(
                    "volume '{}' is a snapshot and not written: clone it",
                    self.core.name
                ),
            }),
        }
    }

    pub(super) fn deleted(&self, at: VolumeOffset) -> IoError {
        let context = format!("volume '{}' is deleted", self.core.name);
        IoError {
            kind: IoErrorKind::Deleted,
            at,
            context,
        }
    }

    /// Reads what need not be whole blocks, into one buffer; the caller holds the blocks.
    pub(super) async fn read_held(&self, at: u64, len: u64) -> Result<Slice, IoError> {
        let (start, end) = block_span(at, len);
        let read = self.read_blocks(start, (end - start) as usize).await;
        let read = read.map_err(|error| error.within(VolumeOffset(at), len))?;
        let mut whole = self.inner.world().buffers().data((end - start) as usize);
        whole.put_all(0, &read);
        Ok(whole.freeze().slice((at - start) as usize, len as usize))
    }

    /// Writes what need not be whole blocks; the caller holds the blocks.
    pub(super) async fn write_held(&self, at: VolumeOffset, data: Slice) -> Result<(), IoError> {
        let (start, end) = block_span(at.0, data.len() as u64);
        let data = match data.len() as u64 == end - start && data.is_aligned() {
            true => data,
            false => Box::pin(self.whole_blocks(start, end, at, data)).await?,
        };
        match self.core.detects_zeroes.get() {
            false => self.write_blocks(start, data).await,
            true => Box::pin(self.write_but_zeroes(start, data)).await,
        }
    }

    /// Reads whole blocks; the caller holds their range.
    pub(super) async fn read_blocks(&self, at: u64, len: usize) -> Result<Payload, IoError> {
        let page_bytes = self.inner.page_bytes();
        let mut runs = runs(page_bytes, at, len);
        match (runs.next(), runs.next()) {
            (Some(run), None) => self.read_run(run).await,
            (first, second) => {
                let runs = first.into_iter().chain(second).chain(runs);
                Box::pin(self.read_runs(runs.collect())).await
            }
        }
    }

    async fn read_runs(&self, runs: Vec<Run>) -> Result<Payload, IoError> {
        let mut whole = Payload::new();
        for part in join_all(runs.into_iter().map(|run| self.read_run(run))).await {
            part?.parts.into_iter().for_each(|slice| whole.push(slice));
        }
        Ok(whole)
    }

    async fn read_run(&self, run: Run) -> Result<Payload, IoError> {
        let copied = &self.core.live.copied;
        let read = loop {
            let before = copied.count(run.page);
            let Some(phys) = self.lookup(run.page) else {
                return Ok(self.zeros(run.len));
            };
            let read = self.read_at(phys, run.inside, run.len).await;
            // A write to blocks of the page that are not held here may have copied it, and
            // the volumes that it was shared with may have let go of it since: it may be a
            // page of others by now, who write to it.
            let has_moved = self.lookup(run.page) != Some(phys) || copied.count(run.page) != before;
            if !has_moved || self.inner.world().planted("page read after it was let go") {
                break read;
            }
            self.inner
                .world()
                .reached("page read again where it is now");
        };
        let start = run.page.0 * self.inner.page_bytes() + run.inside;
        read.map_err(|unreadable| self.unreadable(start, unreadable))
    }

    /// What is told of a run that begins at `start`.
    pub(super) fn unreadable(&self, start: u64, unreadable: Unreadable) -> IoError {
        let at = start + unreadable.start as u64;
        IoError {
            kind: IoErrorKind::Media,
            at: VolumeOffset(at),
            context: format!(
                "volume '{}' at {at}: {}",
                self.core.name, unreadable.context
            ),
        }
    }

    fn zeros(&self, len: usize) -> Payload {
        let buffers = self.inner.world().buffers();
        let mut zeros = Payload::new();
        let mut left = len;
        while left > 0 {
            let part = left.min(base::buffer::POOLED_BYTES_MAX);
            zeros.push(buffers.zeros(part));
            left -= part;
        }
        zeros
    }

    /// Whether what is at `at` is mapped, and how many bytes from there on are alike in
    /// that: `max` at most.
    pub(crate) fn mapped_run(&self, at: u64, max: u64) -> (bool, u64) {
        let page_bytes = self.inner.page_bytes();
        let first = at / page_bytes;
        let pages = (at + max).div_ceil(page_bytes) - first;
        let map = self.core.map.borrow();
        let (is_mapped, alike) = map.alike(PageIndex(first), pages.min(LOOKED_PAGES_MAX));
        (is_mapped, ((first + alike) * page_bytes - at).min(max))
    }

    pub(super) fn lookup(&self, page: PageIndex) -> Option<PhysPage> {
        self.core.map.borrow().get(page)
    }

    /// Where a page lies, and whether other volumes have it there, too: nobody writes
    /// there then.
    pub(super) fn place(&self, page: PageIndex) -> Option<(PhysPage, bool)> {
        let place = self.core.map.borrow().place(page, &self.inner.state().refs);
        if self.inner.world().planted("shared page written in place") {
            return place.map(|(phys, _)| (phys, false));
        }
        // Others may let go of it while it is being copied; the copy counts all the same.
        let is_copied = || self.core.live.is_allocating(page);
        place.map(|(phys, shared)| (phys, shared || is_copied()))
    }

    /// `data` widened to the whole blocks `start..end`, with what is there around it.
    pub(super) async fn whole_blocks(
        &self,
        start: u64,
        end: u64,
        at: VolumeOffset,
        data: Slice,
    ) -> Result<Slice, IoError> {
        let len = (end - start) as usize;
        let mut whole = self.inner.world().buffers().data(len);
        let data_end = at.0 + data.len() as u64;
        let mut edges = Vec::new();
        if at.0 > start {
            edges.push(start);
        }
        let last = end - BLOCK_BYTES as u64;
        if data_end < end && !edges.contains(&last) {
            edges.push(last);
        }
        for edge in edges {
            let block = self.read_blocks(edge, BLOCK_BYTES).await?;
            whole.put_all((edge - start) as usize, &block);
        }
        whole.put((at.0 - start) as usize, &data);
        Ok(whole.freeze())
    }

    /// Writes whole blocks; the caller holds their range.
    pub(super) async fn write_blocks(&self, start: u64, data: Slice) -> Result<(), IoError> {
        let page_bytes = self.inner.page_bytes();
        if start / page_bytes == (start + data.len() as u64 - 1) / page_bytes
            && let Some((phys, false)) = self.place(PageIndex(start / page_bytes))
            && (data.len() as u64) < page_bytes
        {
            // The common write: some blocks of one page that is there.
            let at = PoolOffset(phys.0 * page_bytes + start % page_bytes);
            let written = self.inner.store().write(vec![Write::Data(at, data)]).await;
            return written.map_err(|error| failed(VolumeOffset(start), error));
        }
        Box::pin(self.write_pages(start, data)).await
    }

    async fn write_pages(&self, start: u64, data: Slice) -> Result<(), IoError> {
        let page_bytes = self.inner.page_bytes();
        let (whole, parts): (Vec<Run>, Vec<Run>) =
            runs(page_bytes, start, data.len()).partition(|run| run.len as u64 == page_bytes);
        let whole = async {
            match whole.first() {
                None => Ok(()),
                Some(first) => {
                    let data = data.slice(first.start, whole.len() * page_bytes as usize);
                    self.write_whole_pages(first.page, data).await
                }
            }
        };
        let parts = join_all(
            parts
                .iter()
                .map(|run| self.write_part(*run, data.slice(run.start, run.len))),
        );
        let (whole, parts) = join(whole, parts).await;
        parts
            .into_iter()
            .fold(whole, |outcome, part| outcome.and(part))
    }

    /// Writes a part of one page.
    pub(super) async fn write_part(&self, run: Run, data: Slice) -> Result<(), IoError> {
        let page_bytes = self.inner.page_bytes();
        let volume_at = VolumeOffset(run.page.0 * page_bytes + run.inside);
        loop {
            match self.place(run.page) {
                Some((phys, false)) => {
                    let at = PoolOffset(phys.0 * page_bytes + run.inside);
                    let written = self.inner.store().write(vec![Write::Data(at, data)]).await;
                    return written.map_err(|error| failed(volume_at, error));
                }
                Some((_, true)) => match self.overlay(run, &data).await? {
                    true => return Ok(()),
                    false => continue,
                },
                None => {}
            }
            let Some(_allocation) = self.core.live.allocate(run.page).await else {
                continue;
            };
            // Between the look at the map and the right to allocate, nothing was
            // awaited; but the look may have come before somebody else's end.
            if self.lookup(run.page).is_none() {
                return self.fill_new_page(run, data).await;
            }
        }
    }

    /// Allocates a page, makes all of it durable, then maps it.
    async fn fill_new_page(&self, run: Run, data: Slice) -> Result<(), IoError> {
        let (world, page_bytes) = (self.inner.world(), self.inner.page_bytes());
        let store = self.inner.store();
        let at = VolumeOffset(run.page.0 * page_bytes + run.inside);
        let _reserved = self.reserve_new_pages(run.page, 1, at)?;
        let (phys, _) = self.take(1, at, self.claim()).await?;
        let start = PoolOffset(phys.0 * page_bytes);
        let block = BLOCK_BYTES as u64;
        let mut writes = Vec::new();
        if store.needs_zeroing(start, page_bytes / block).await {
            // What was there before must not show around the data.
            let end = run.inside + data.len() as u64;
            if run.inside > 0 {
                writes.push(Write::Zero(start, run.inside / block));
            }
            let last = match world.planted("last block of a page not zeroed") {
                true => page_bytes - block,
                false => page_bytes,
            };
            if end < last {
                writes.push(Write::Zero(start + end, (last - end) / block));
            }
        }
        if world.planted("page not zeroed around the data") {
            writes.clear();
        }
        writes.push(Write::Data(start + run.inside, data));
        let map = Record::Map {
            id: self.core.id,
            page: run.page,
            phys,
            count: 1,
        };
        if world.planted("map record before data") {
            let mapped = self.inner.journal().commit(vec![map]).await;
            mapped.map_err(|error| failed(at, error))?;
            let written = store.write(writes).await;
            return written.map_err(|error| failed(at, error));
        }
        // When this fails the pool has stopped: the page stays taken, mapped or not.
        let written = store.write(writes).await;
        written.map_err(|error| failed(at, error))?;
        let mapped = self.inner.journal().commit(vec![map]).await;
        mapped.map_err(|error| failed(at, error))
    }

    /// Writes whole pages: to new ones, so that whole stripes can go in place at once
    /// and nothing needs to be read; in the log, where there is no room to move.
    async fn write_whole_pages(&self, first: PageIndex, data: Slice) -> Result<(), IoError> {
        let page_bytes = self.inner.page_bytes();
        let count = data.len() as u64 / page_bytes;
        let (mut done, mut found_room) = (0, true);
        while done < count {
            let page = PageIndex(first.0 + done);
            let rest = |pages: u64| {
                data.slice((done * page_bytes) as usize, (pages * page_bytes) as usize)
            };
            let at = VolumeOffset(page.0 * page_bytes);
            let place = self.place(page);
            let may_move = found_room && self.has_room_to_move();
            if matches!(place, Some((_, false))) && !may_move {
                let run = Run {
                    page,
                    inside: 0,
                    start: 0,
                    len: page_bytes as usize,
                };
                self.write_part(run, rest(1)).await?;
                done += 1;
                continue;
            }
            let _reserved = self.reserve_new_pages(page, count - done, at)?;
            // Whole pages are held alone by their ranges: nobody else allocates them.
            let (phys, pages) = match place {
                None => {
                    let (max, claim) = self.new_pages(page, count - done);
                    self.take(max, at, claim).await?
                }
                // Where others have it, too, it can't stay.
                Some((_, true)) => self.take(count - done, at, Claim::Open).await?,
                Some((_, false)) => {
                    let supply = self.inner.supply();
                    let taken = supply.take_pages(count - done, Claim::Open).await;
                    match taken.map_err(|error| failed(at, error))? {
                        Some(taken) => taken,
                        // There is no room, or none for this lane: the log takes the rest.
                        None => {
                            found_room = self.inner.world().planted("page asked for without end");
                            continue;
                        }
                    }
                }
            };
            let moving = self.inner.zone_changes().move_pages(pages);
            let to = PoolOffset(phys.0 * page_bytes);
            let written = self.inner.store().write_fresh(to, &rest(pages)).await;
            let mapped = match written {
                Ok(()) => self.map_pages(page, phys, pages).await,
                Err(error) => Err(error),
            };
            drop(moving);
            mapped.map_err(|error| failed(at, error))?;
            done += pages;
        }
        Ok(())
    }

    /// Whether there are so many free pages, in zones not yet in use, too, that an
    /// overwrite may take new ones.
    pub(super) fn has_room_to_move(&self) -> bool {
        let pages = self.inner.space().pages();
        self.inner.pledges().unpromised_pages() * 8 > pages
    }

    /// On what ground it takes pages where it has none.
    pub(super) fn claim(&self) -> Claim {
        match self.core.is_promised.get() {
            false => Claim::Open,
            true => Claim::Promised,
        }
    }

    /// How many new pages to take at once where `first` is not mapped, and on what
    /// ground: none is promised for those that are.
    fn new_pages(&self, first: PageIndex, max: u64) -> (u64, Claim) {
        match self.claim() {
            Claim::Promised => (self.core.map.borrow().alike(first, max).1, Claim::Promised),
            claim => (max, claim),
        }
    }

    pub(super) async fn take(
        &self,
        max: u64,
        at: VolumeOffset,
        claim: Claim,
    ) -> Result<(PhysPage, u64), IoError> {
        let taken = self
            .inner
            .supply()
            .take_pages_or_wait(max, claim)
            .await
            .map_err(|error| failed(at, error))?;
        if taken.is_none() {
            self.inner.occupancy().say_refused();
        }
        taken.ok_or_else(|| IoError {
            kind: IoErrorKind::PoolFull,
            at,
            context: format!(
                "pool '{}' is full: volume '{}' can't have another page",
                self.inner.identity().name,
                self.core.name
            ),
        })
    }

    /// Maps a run of pages to new ones; those they had are free afterwards.
    pub(super) async fn map_pages(
        &self,
        first: PageIndex,
        phys: PhysPage,
        count: u64,
    ) -> Result<(), PoolError> {
        let id = self.core.id;
        let mut records: Vec<Record> = Vec::new();
        for offset in 0..count {
            let (page, phys) = (PageIndex(first.0 + offset), PhysPage(phys.0 + offset));
            if self.lookup(page).is_some() {
                records.push(Record::Remap { id, page, phys });
                continue;
            }
            match records.last_mut() {
                Some(Record::Map {
                    page: start, count, ..
                }) if start.0 + u64::from(*count) == page.0 => *count += 1,
                _ => records.push(Record::Map {
                    id,
                    page,
                    phys,
                    count: 1,
                }),
            }
        }
        self.inner.journal().commit(records).await
    }
}

pub(super) fn failed(at: VolumeOffset, error: PoolError) -> IoError {
    IoError {
        kind: IoErrorKind::PoolFailed,
        at,
        context: error.context,
    }
}
