//! The data path: volume → page → group.
//!
//! Invariants:
//! - A write that ends well is durable on every healthy copy.
//! - While a write to a block is in flight, nobody reads or writes that block: so
//!   copies are never written in different orders, and no reader sees a value that
//!   a later reader doesn't.
//! - A page enters the map only when all of it, zeroes included, is durable on
//!   every copy. So a page never shows what was there before.

use super::{IoError, IoErrorKind, Volume};
use crate::drive::{DriveError, DriveErrorKind};
use crate::meta::Record;
use crate::pool::{Inner, PoolError};
use crate::range_lock::Guard;
use crate::world::World;
use base::{
    BLOCK_BYTES, GroupOffset, PageIndex, Payload, PhysPage, SECTOR_BYTES, Slice, VolumeOffset,
};
use futures_util::future::join_all;
use std::rc::Rc;

/// A run of bytes inside one page.
#[derive(Clone, Copy, Debug)]
struct Run {
    page: PageIndex,
    /// Offset in the page.
    inside: u64,
    /// Offset in the request.
    start: usize,
    len: usize,
}

/// The runs of `len` bytes at `at`, one a page.
fn runs(page_bytes: u64, at: u64, len: usize) -> impl Iterator<Item = Run> {
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

/// The whole blocks around a run of bytes.
fn block_span(at: u64, len: usize) -> (u64, u64) {
    let block = BLOCK_BYTES as u64;
    (
        at / block * block,
        (at + len as u64).next_multiple_of(block),
    )
}

impl<W: World> Volume<W> {
    /// Reads `len` bytes from `at`, both multiples of [`base::SECTOR_BYTES`].
    /// Zeroes where nothing was ever written.
    ///
    /// # Errors
    /// `OutOfRange`, `Media` with the first byte that no copy could give, `Deleted`,
    /// `PoolFailed`.
    pub async fn read(&self, at: VolumeOffset, len: usize) -> Result<Payload, IoError> {
        self.check_range(at, len)?;
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        if len == 0 {
            return Ok(Payload::new());
        }
        let (start, end) = block_span(at.0, len);
        let _range = self.core.live.ranges.shared(start, end).await;
        let blocks = self.read_blocks(start, (end - start) as usize).await?;
        Ok(blocks.slice((at.0 - start) as usize, len))
    }

    /// Writes `data` at `at`, both multiples of [`base::SECTOR_BYTES`]. When it
    /// ends well the data is durable.
    ///
    /// # Errors
    /// `OutOfRange`, `Media`, `PoolFull`, `Deleted`, `PoolFailed`. What the range
    /// holds after an error is, sector by sector, what was there or `data`.
    pub async fn write(&self, at: VolumeOffset, data: Slice) -> Result<(), IoError> {
        self.check_range(at, data.len())?;
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        if data.is_empty() {
            return Ok(());
        }
        let (start, end) = block_span(at.0, data.len());
        let _range = self.core.live.ranges.exclusive(start, end).await;
        let data = if data.len() as u64 == end - start && data.is_aligned() {
            data
        } else {
            Box::pin(self.whole_blocks(start, end, at, data)).await?
        };
        let page_bytes = self.inner.page_bytes();
        if start / page_bytes == (end - 1) / page_bytes {
            for run in runs(page_bytes, start, data.len()) {
                self.write_run(run, data.clone()).await?;
            }
        } else {
            let write = |run: Run| self.write_run(run, data.slice(run.start, run.len));
            let writes = runs(page_bytes, start, data.len()).map(write);
            let written = Box::pin(join_all(writes)).await;
            written.into_iter().collect::<Result<(), IoError>>()?;
        }
        self.settle(at).await
    }

    /// Ends when everything acknowledged before is durable (it is already; this
    /// reports a pool that has failed).
    ///
    /// # Errors
    /// `Deleted`, `PoolFailed`.
    pub async fn flush(&self) -> Result<(), IoError> {
        let at = VolumeOffset(0);
        let _operation = self.core.live.begin().ok_or_else(|| self.deleted(at))?;
        self.settle(at).await
    }

    /// Before anything is acknowledged: the pool is sound, and drives that missed
    /// something are out of use on the labels of the others.
    async fn settle(&self, at: VolumeOffset) -> Result<(), IoError> {
        self.inner.settle_labels().await;
        self.inner.check().map_err(|error| failed(at, error))
    }

    fn check_range(&self, at: VolumeOffset, len: usize) -> Result<(), IoError> {
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
        self.inner.check().map_err(|error| failed(at, error))
    }

    fn deleted(&self, at: VolumeOffset) -> IoError {
        let context = format!("volume '{}' is deleted", self.core.name);
        IoError {
            kind: IoErrorKind::Deleted,
            at,
            context,
        }
    }

    fn media(&self, at: u64, error: &DriveError) -> IoError {
        let context = format!("volume '{}' at {at}: {error}", self.core.name);
        IoError {
            kind: IoErrorKind::Media,
            at: VolumeOffset(at),
            context,
        }
    }

    /// Reads whole blocks; the caller holds their range.
    async fn read_blocks(&self, at: u64, len: usize) -> Result<Payload, IoError> {
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
        let Some(phys) = self.lookup(run.page) else {
            return Ok(self.zeros(run.len));
        };
        let page_bytes = self.inner.page_bytes();
        let at = GroupOffset(phys.0 * page_bytes + run.inside);
        self.inner
            .read_group(at, run.len)
            .await
            .map_err(|(start, error)| {
                self.media(run.page.0 * page_bytes + run.inside + start as u64, &error)
            })
    }

    fn zeros(&self, len: usize) -> Payload {
        let buffers = self.inner.world.buffers();
        let mut zeros = Payload::new();
        let mut left = len;
        while left > 0 {
            let part = left.min(base::buffer::POOLED_BYTES_MAX);
            zeros.push(buffers.zeros(part));
            left -= part;
        }
        zeros
    }

    fn lookup(&self, page: PageIndex) -> Option<PhysPage> {
        self.core.map.borrow().get(page)
    }

    /// `data` widened to the whole blocks `start..end`, with what is there around it.
    async fn whole_blocks(
        &self,
        start: u64,
        end: u64,
        at: VolumeOffset,
        data: Slice,
    ) -> Result<Slice, IoError> {
        let len = (end - start) as usize;
        let mut whole = self.inner.world.buffers().data(len);
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
            let mut to = (edge - start) as usize;
            for part in self.read_blocks(edge, BLOCK_BYTES).await?.parts {
                whole.put(to, &part);
                to += part.len();
            }
        }
        whole.put((at.0 - start) as usize, &data);
        Ok(whole.freeze())
    }

    /// Writes whole blocks of one page; the caller holds their range.
    async fn write_run(&self, run: Run, data: Slice) -> Result<(), IoError> {
        loop {
            if let Some(phys) = self.lookup(run.page) {
                return self.overwrite(run, phys, &data).await;
            }
            let Some(_allocation) = self.core.live.allocate(run.page).await else {
                continue;
            };
            // Between the look at the map and the right to allocate, nothing was
            // awaited; but the look may have come before somebody else's end.
            if self.lookup(run.page).is_none() {
                return Box::pin(self.fill_new_page(run, &data)).await;
            }
        }
    }

    async fn overwrite(&self, run: Run, phys: PhysPage, data: &Slice) -> Result<(), IoError> {
        let page_bytes = self.inner.page_bytes();
        let volume_at = run.page.0 * page_bytes + run.inside;
        let at = GroupOffset(phys.0 * page_bytes + run.inside);
        if !self.inner.has_copies() {
            let written = self.inner.write_group(at, data).await;
            return written.map_err(|error| self.media(volume_at, &error));
        }
        let regions = self.inner.regions.borrow().of(at, data.len());
        let unmarked = self.inner.regions.borrow_mut().begin(regions.clone());
        let marks = unmarked.iter().map(|region| Record::Dirty {
            region: *region,
            count: 1,
        });
        let outcome = match self.inner.commit(marks.collect()).await {
            Ok(()) => {
                self.inner.regions.borrow_mut().marked(&unmarked);
                let written = self.inner.write_group(at, data).await;
                written.map_err(|error| self.media(volume_at, &error))
            }
            Err(error) => Err(failed(VolumeOffset(volume_at), error)),
        };
        self.inner
            .regions
            .borrow_mut()
            .end(regions, self.inner.world.now());
        outcome
    }

    /// Allocates a page, makes all of it durable, then maps it.
    async fn fill_new_page(&self, run: Run, data: &Slice) -> Result<(), IoError> {
        let inner = &self.inner;
        let page_bytes = inner.page_bytes();
        let at = VolumeOffset(run.page.0 * page_bytes + run.inside);
        let allocated = inner.space.borrow_mut().allocate();
        let phys = allocated.ok_or_else(|| IoError {
            kind: IoErrorKind::PoolFull,
            at,
            context: format!(
                "pool '{}' is full: volume '{}' can't have another page",
                inner.identity.name, self.core.name
            ),
        })?;
        let whole = if data.len() as u64 == page_bytes {
            data.clone()
        } else {
            let mut page = inner.world.buffers().zeroed(page_bytes as usize);
            page.put(run.inside as usize, data);
            page.freeze()
        };
        if let Err(error) = inner
            .write_group(GroupOffset(phys.0 * page_bytes), &whole)
            .await
        {
            inner.space.borrow_mut().release(phys);
            return Err(self.media(at.0, &error));
        }
        let map = Record::Map {
            id: self.core.id,
            page: run.page,
            phys,
            count: 1,
        };
        // When this fails the pool has stopped: the page stays taken, mapped or not.
        inner
            .commit(vec![map])
            .await
            .map_err(|error| failed(at, error))
    }
}

fn failed(at: VolumeOffset, error: PoolError) -> IoError {
    IoError {
        kind: IoErrorKind::PoolFailed,
        at,
        context: error.context,
    }
}

impl<W: World> Inner<W> {
    /// Reads a run of the group. Where copies may differ after a crash they are
    /// made equal first, so that an answer once given stays, whatever drive fails.
    ///
    /// # Errors
    /// The offset in the run that no copy could give, and what the last one said.
    pub(crate) async fn read_group(
        self: &Rc<Self>,
        at: GroupOffset,
        len: usize,
    ) -> Result<Payload, (usize, DriveError)> {
        if let Some(_alone) = self.alone_if_suspect(at, len).await {
            let equal = Box::pin(self.equalise(at, len)).await;
            equal.map_err(|error| (0, error))?;
        }
        let outcome = self.group.read(at, len).await;
        if !outcome.faults.is_empty() {
            // A drive that is gone is taken out of use; bad media are one copy
            // fewer of these bytes. What matters to the reader is the data.
            let gone = |kind| kind == DriveErrorKind::Gone;
            let gone: Vec<_> = outcome
                .faults
                .into_iter()
                .filter(|fault| gone(fault.error.kind))
                .collect();
            let _ = Box::pin(self.absorb(&gone)).await;
        }
        outcome.data
    }

    /// Writes a run of the group durably to every healthy copy.
    ///
    /// # Errors
    /// What the last copy of some of it said.
    pub(crate) async fn write_group(
        self: &Rc<Self>,
        at: GroupOffset,
        data: &Slice,
    ) -> Result<(), DriveError> {
        let _alone = self.alone_if_suspect(at, data.len()).await;
        let faults = self.group.write(at, data).await;
        if faults.is_empty() {
            Ok(())
        } else {
            Box::pin(self.absorb(&faults)).await
        }
    }

    /// Keeps others from making this run's copies equal, where that is still to be
    /// done.
    async fn alone_if_suspect(&self, at: GroupOffset, len: usize) -> Option<Guard> {
        let suspect = self.has_copies() && {
            let regions = self.regions.borrow();
            regions.is_suspect(regions.of(at, len))
        };
        match suspect {
            true => Some(self.equalising.exclusive(at.0, at.0 + len as u64).await),
            false => None,
        }
    }

    /// Makes the copies of a run equal, durably. The caller holds the run.
    ///
    /// # Errors
    /// What a copy said that is needed and can't be written.
    pub(crate) async fn equalise(&self, at: GroupOffset, len: usize) -> Result<(), DriveError> {
        let faults = self.group.equalise(at, len).await;
        self.absorb(&faults).await
    }
}
